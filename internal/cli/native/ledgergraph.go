package native

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// oldestFirst lists the commits by their time; commits of the same time follow their parents.
func (l *ledgerFiles) oldestFirst() []*ledgerCommit {
	depth := map[string]int{"": 0}
	for id := range l.commits {
		var chain []string
		for ; l.commits[id] != nil; id = l.commits[id].ParentID {
			if _, known := depth[id]; known {
				break
			}
			chain = append(chain, id)
		}
		for i := len(chain) - 1; i >= 0; i-- {
			depth[chain[i]] = depth[l.commits[chain[i]].ParentID] + 1
		}
	}
	return slices.SortedFunc(maps.Values(l.commits), func(a, b *ledgerCommit) int {
		if c := strings.Compare(a.Timestamp, b.Timestamp); c != 0 {
			return c
		}
		if c := depth[a.ID] - depth[b.ID]; c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// mostDrawn is how many commits a graph has at most.
const mostDrawn = 200

// mermaid draws the commits as a gitGraph.
func (l *ledgerFiles) mermaid() string {
	var b strings.Builder
	b.WriteString("gitGraph\n")
	drawn, tips, on := map[string]bool{}, map[string]bool{"main": true}, "main"
	list := l.oldestFirst()
	for i, k := range list {
		if i == mostDrawn {
			fmt.Fprintf(&b, "%%%% the first %d of %d commits\n", mostDrawn, len(list))
			break
		}
		if !tips[k.Branch] {
			if parent := l.commits[k.ParentID]; parent != nil && drawn[parent.ID] && parent.Branch != on {
				fmt.Fprintf(&b, "  checkout %s\n", mermaidName(parent.Branch))
			}
			fmt.Fprintf(&b, "  branch %s\n", mermaidName(k.Branch))
			tips[k.Branch], on = true, k.Branch
		}
		if k.Branch != on {
			fmt.Fprintf(&b, "  checkout %s\n", mermaidName(k.Branch))
			on = k.Branch
		}
		from := l.commits[k.MergeParentID]
		switch {
		case from != nil && drawn[from.ID] && from.Branch != k.Branch && drawn[k.ParentID]:
			fmt.Fprintf(&b, "  merge %s id: %q\n", mermaidName(from.Branch), k.label())
		case k.Metadata.CherryPickedFrom != "":
			from := k.Metadata.CherryPickedFrom
			fmt.Fprintf(&b, "  commit id: %q tag: %q\n", k.label(), "cherry-pick "+from[:min(8, len(from))])
		default:
			fmt.Fprintf(&b, "  commit id: %q\n", k.label())
		}
		drawn[k.ID] = true
	}
	return b.String()
}

// mermaidName keeps a branch's name from being read as a word of the language.
func mermaidName(name string) string { return `"` + name + `"` }

// label is a commit's id and message without what ends a quoted text.
func (k *ledgerCommit) label() string {
	message := strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case strings.ContainsRune("[](){}<>\\", r) || r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, k.Message)
	if cut := []rune(message); len(cut) > 60 {
		message = string(cut[:60])
	}
	return k.ID[:min(8, len(k.ID))] + ": " + message
}

// timeline is a line for each commit, by day.
func (l *ledgerFiles) timeline() string {
	var b strings.Builder
	day := ""
	for _, k := range l.oldestFirst() {
		if d, _, _ := strings.Cut(k.Timestamp, "T"); d != day {
			day = d
			b.WriteString(day + "\n")
		}
		fmt.Fprintf(&b, "  %s %s %s\n", strings.TrimSuffix(strings.TrimPrefix(k.Timestamp, day+"T"), "Z"), k.Branch, k.line())
	}
	return b.String()
}

func (a *commands) ledgerGraph() *cobra.Command {
	var f cli.ScopeFlags
	var format string
	cmd := &cobra.Command{Use: "graph", Short: "Draw the commits of all branches", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if format != "mermaid" && format != "timeline" {
			return cli.UsageError("--format is "+format, "want mermaid or timeline")
		}
		return a.withLedger(cmd.Context(), &f, func(_ context.Context, _ *cli.Door, l *ledgerFiles) error {
			if format == "timeline" {
				a.Out.Print("%s", l.timeline())
			} else {
				a.Out.Print("%s", l.mermaid())
			}
			return nil
		})
	}
	f.Add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "mermaid", "mermaid or timeline")
	return cmd
}
