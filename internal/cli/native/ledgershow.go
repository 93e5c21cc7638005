package native

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memhost/memhost/abi"
)

// What the verbs of `memhost ledger` print for people. With --json they print the module's answer unchanged.

// ledgerShown prints an answer of a native query of ledger_memory for people; false if it has no such form.
func (a *commands) ledgerShown(name string, answer abi.Raw) (shown bool, err error) {
	show := map[string]func(io.Writer, abi.Raw) error{"log": showLog, "view": showView, "branches": showBranches}[name]
	if show == nil || a.Out.JSON {
		return false, nil
	}
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	if err := show(w, answer); err != nil {
		return false, nil // another form than this program knows is printed as it came
	}
	return true, w.Flush()
}

// showLog prints commits, newest first: a head line each, and a line for each change.
func showLog(w io.Writer, answer abi.Raw) error {
	var commits []struct {
		ledgerCommit
		Changes []struct{ Text string }
	}
	if err := json.Unmarshal(answer, &commits); err != nil {
		return err
	}
	for _, k := range commits {
		parents := ""
		if k.MergeParentID != "" {
			parents = ", merges " + shortID(k.MergeParentID)
		}
		if _, err := fmt.Fprintf(w, "%s  %s  on %s%s\n    %s\n", shortID(k.ID), k.Timestamp, k.Branch,
			parents,
			k.Message); err != nil {
			return err
		}
		for _, c := range k.Changes {
			if _, err := fmt.Fprintf(w, "      %s\n", c.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// showView prints what a branch has, an entry a line.
func showView(w io.Writer, answer abi.Raw) error {
	var v struct {
		Branch  string
		Next    string
		Entries []struct {
			ID, Subject, Predicate, Object, Scope, Topic string
			UpdatedAt                                    string `json:"updated_at"`
			ForgottenAt                                  string `json:"forgotten_at"`
			Confidence                                   json.Number
		}
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return err
	}
	entries := fmt.Sprintf("%d entries", len(v.Entries))
	if len(v.Entries) == 1 {
		entries = "1 entry"
	}
	if _, err := fmt.Fprintf(w, "branch %s: %s\n", v.Branch, entries); err != nil {
		return err
	}
	for _, e := range v.Entries {
		about := slices.DeleteFunc([]string{e.Scope, e.Topic}, func(word string) bool { return word == "" })
		when := e.UpdatedAt
		if e.ForgottenAt != "" {
			when = "forgotten " + e.ForgottenAt
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", shortID(e.ID),
			strings.Join([]string{e.Subject, e.Predicate, e.Object}, " "),
			strings.Join(about, "/"),
			when); err != nil {
			return err
		}
	}
	if v.Next != "" {
		_, err := fmt.Fprintf(w, "there is more: memhost query view --params '{\"after\": %q}'\n", v.Next)
		return err
	}
	return nil
}

// showBranches prints the branches, with an asterisk before the current one.
func showBranches(w io.Writer, answer abi.Raw) error {
	var list struct {
		Current  string
		Branches []ledgerBranch
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	for _, b := range list.Branches {
		mark, head, persona := " ", "empty", ""
		if b.Name == list.Current {
			mark = "*"
		}
		if b.Head != nil && *b.Head != "" {
			head = shortID(*b.Head)
		}
		if b.Persona != nil {
			persona = *b.Persona
		}
		if _, err := fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, b.Name, head, b.CreatedAt,
			persona); err != nil {
			return err
		}
	}
	return nil
}

// showCounts prints the counts of `ledger stats`, in lines; what is counted by kind has a line for each kind.
func (a *commands) showCounts(stats map[string]any) error {
	if a.Out.JSON {
		return a.Out.Object(stats)
	}
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	for _, name := range abi.SortedKeys(stats) {
		label := strings.ReplaceAll(name, "_", " ")
		switch value := stats[name].(type) {
		case map[string]int:
			for _, kind := range abi.SortedKeys(value) {
				_, _ = fmt.Fprintf(w, "%s, %s\t%d\n", label, kind, value[kind])
			}
		case map[string]map[string]int:
			for _, state := range abi.SortedKeys(value) {
				for _, kind := range abi.SortedKeys(value[state]) {
					_, _ = fmt.Fprintf(w, "%s, %s, %s\t%d\n", label, state, kind, value[state][kind])
				}
			}
		default:
			_, _ = fmt.Fprintf(w, "%s\t%v\n", label, value)
		}
	}
	return w.Flush()
}

func shortID(id string) string { return id[:min(8, len(id))] }
