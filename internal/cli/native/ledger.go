package native

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// ledgerCommand is the command line of ledger_memory: its native queries and mutations by their usual names.
func (a *commands) ledgerCommand() *cobra.Command {
	root := &cobra.Command{Use: "ledger", Short: "Look at and change a ledger (ledger_memory)", Args: cli.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	root.AddCommand(
		a.ledgerVerb("log", "log", "List the commits of a branch, newest first", nil, false, "branch"),
		a.ledgerVerb("branches", "branches", "List the branches", nil, false),
		a.ledgerVerb("view", "view", "Show what a branch has", nil, false, "branch", "scope"),
		a.ledgerGraph(), a.ledgerStats(), a.ledgerExport(), a.ledgerImport(), a.ledgerHeartbeat(),
		a.ledgerVerb("fsck", "fsck", "Check every object and chain; exit 1 where something is damaged", nil, false),
		a.ledgerVerb("checkout NAME", "checkout", "Make a branch the current one", []string{"name"}, true),
		a.ledgerVerb("create-branch NAME", "create_branch", "Make a branch", []string{"name"}, true, "persona", "from",
			"metadata"),
		a.ledgerVerb("merge SOURCE", "merge", "Bring a branch's changes onto another; exit 1 where conflicts are left open",
			[]string{"source"}, true, "into", "on-conflict"),
		a.ledgerVerb("cherry-pick COMMIT", "cherry_pick", "Put one commit's events into effect on another branch",
			[]string{"id"}, true, "to"),
		a.ledgerVerb("rebuild", "rebuild", "Make a branch's view anew from the ledger", nil, true, "branch"))
	for _, verb := range root.Commands() {
		check := verb.Args
		verb.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return cli.WrapUsage(cmd, err)
			}
			return nil
		}
	}
	return root
}

// ledgerVerb calls a native query, or mutation, with arguments and flags as its parameters, and prints the answer.
func (a *commands) ledgerVerb(use, name, short string, args []string, changes bool, flags ...string) *cobra.Command {
	var f cli.ScopeFlags
	values := map[string]*string{}
	var most int
	var all, orphan, oneline bool
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(len(args)),
		RunE: func(cmd *cobra.Command, given []string) error {
			params := map[string]abi.Raw{}
			for i, arg := range args {
				params[arg] = quoted(given[i])
			}
			for flag, value := range values {
				switch {
				case *value == "":
				case flag != "metadata":
					params[paramName(flag)] = quoted(*value)
				case !abi.ValidJSON([]byte(*value)):
					return cli.UsageError("--metadata: not JSON", "want a JSON object")
				default:
					params[flag] = abi.Raw(*value)
				}
			}
			if most > 0 {
				params["limit"] = abi.Raw(fmt.Sprint(most))
			}
			if all {
				params["all"] = abi.Raw("true")
			}
			if orphan {
				params["orphan"] = abi.Raw("true")
			}
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *cli.Door) error {
				if changes {
					return a.ledgerChange(ctx, d, &abi.NativeMutation{Scope: f.Scope(), Name: name, Params: params})
				}
				if oneline {
					return a.ledgerLines(ctx, d, &abi.NativeQuery{Scope: f.Scope(), Name: name, Params: params})
				}
				return a.ledgerLook(ctx, d, &abi.NativeQuery{Scope: f.Scope(), Name: name, Params: params})
			})
		}}
	f.Add(cmd.Flags())
	if name == "create_branch" { // here --persona is the branch's
		cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(name)
		})
	}
	for _, flag := range flags {
		values[flag] = cmd.Flags().String(flag, "", "")
	}
	switch name {
	case "log":
		cmd.Flags().IntVarP(&most, "limit", "n", 20, "how many commits")
		cmd.Flags().BoolVar(&oneline, "oneline", false, "a line for each: the beginning of its id, and its message")
	case "view":
		cmd.Flags().BoolVar(&all, "all", false, "forgotten and expired entries too")
	case "create_branch":
		cmd.Flags().BoolVar(&orphan, "orphan", false, "begin with nothing")
	}
	return cmd
}

// paramName is a flag's parameter.
func paramName(flag string) string {
	switch flag {
	case "on-conflict":
		return "on_conflict"
	case "into", "to":
		return "target"
	}
	return flag
}

func quoted(s string) abi.Raw {
	// A string is always JSON.
	text, _ := json.Marshal(s)
	return text
}

// ledgerLines prints a log in lines.
func (a *commands) ledgerLines(ctx context.Context, d *cli.Door, q *abi.NativeQuery) error {
	r, err := d.NativeQuery(ctx, q)
	if err != nil {
		return err
	}
	var commits []ledgerCommit
	if err := json.Unmarshal(r.Result, &commits); err != nil {
		return abi.NewError(abi.CodeBackend, "log: "+err.Error())
	}
	for _, k := range commits {
		a.Out.Print("%s\n", k.line())
	}
	return nil
}

func (a *commands) ledgerLook(ctx context.Context, d *cli.Door, q *abi.NativeQuery) error {
	r, err := d.NativeQuery(ctx, q)
	if err != nil {
		return err
	}
	if shown, err := a.ledgerShown(q.Name, r.Result); shown || err != nil {
		return err
	}
	if err := a.Out.Raw(r.Result); err != nil {
		return err
	}
	var state struct{ OK *bool }
	if q.Name == "fsck" && json.Unmarshal(r.Result, &state) == nil && state.OK != nil && !*state.OK {
		return cli.Done(cli.ExitFailed)
	}
	return nil
}

func (a *commands) ledgerChange(ctx context.Context, d *cli.Door, m *abi.NativeMutation) error {
	r, err := d.NativeMutation(ctx, m)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if err := a.Out.Value(r); err != nil {
			return err
		}
	} else {
		a.ledgerChanged(r)
	}
	if r.Status == "skipped_read_only" {
		return cli.Done(cli.ExitRefused)
	}
	if leftOpen(r) {
		return cli.Done(cli.ExitFailed)
	}
	return nil
}

// leftOpen reports whether a conflict of a merge is not settled.
func leftOpen(r *abi.MutationReceipt) bool {
	var conflicts []struct{ Severity, Settled string }
	if r.Trace == nil || json.Unmarshal(r.Trace.Details["conflicts"], &conflicts) != nil {
		return false
	}
	for _, c := range conflicts {
		if c.Severity == "blocking" && c.Settled == "" {
			return true
		}
	}
	return false
}

// ledgerChanged prints the result of a change: its status and the module's details, one a line.
func (a *commands) ledgerChanged(r *abi.MutationReceipt) {
	a.Out.Print("%s\n", r.Status)
	if r.Trace == nil {
		return
	}
	for _, name := range abi.SortedKeys(r.Trace.Details) {
		value := r.Trace.Details[name]
		if text := string(value); text == "null" || text == "[]" {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			list = []json.RawMessage{json.RawMessage(value)}
		}
		for _, item := range list {
			text := string(item)
			var plain string
			if json.Unmarshal(item, &plain) == nil {
				text = plain
			}
			a.Out.Print("%s: %s\n", name, text)
		}
	}
	for _, w := range r.Trace.Warnings {
		a.Out.Note("%s", w)
	}
}
