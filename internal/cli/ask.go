package cli

import (
	"context"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

// The verbs of optional capabilities. Each ends in unsupported (exit code 6) if the provider lacks the capability.

const queryHelp = `Asks one of the provider's own read queries by name, and prints the backend's answer as it came. For diagnosis: it never goes into a prompt. --params is a
JSON object. With --json the whole answer is printed, with its trace.`

func (a *app) queryCommand() *cobra.Command {
	var f scopeFlags
	var params string
	cmd := &cobra.Command{
		Use: "query NAME", Short: "Ask one of the provider's own queries", Long: queryHelp, Args: cobra.ExactArgs(1),
		Example: `  memhost query edges_of --params '{"node": "Zorvex"}' --run r1 --user ann`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(a); err != nil {
				return err
			}
			given, err := paramsOf(params)
			if err != nil {
				return err
			}
			q := &abi.NativeQuery{Scope: f.scope(), Name: args[0], Params: given}
			if err := q.Validate(); err != nil {
				return err
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				r, err := d.NativeQuery(ctx, q)
				if err != nil {
					return err
				}
				if a.out.json {
					return a.out.value(r)
				}
				if len(r.Result) == 0 {
					r.Result = abi.Raw("null")
				}
				return a.out.raw(r.Result)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&params, "params", "", "the query's parameters, a JSON object")
	return cmd
}

const provenanceHelp = `Asks where memory came from: by the backend's id, by an event's, or by a range of time. Each item is a line; with --json the items come with what the backend
says of them.`

func (a *app) provenanceCommand() *cobra.Command {
	var f scopeFlags
	var r abi.ProvenanceRequest
	cmd := &cobra.Command{
		Use: "provenance (--native-id ID | --event ID | --from TIME --to TIME)", Short: "Ask where memory came from",
		Long: provenanceHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(a); err != nil {
				return err
			}
			r.Scope = f.scope()
			if err := r.Validate(); err != nil {
				return err
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				return a.provenance(ctx, d, &r)
			})
		},
	}
	f.add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&r.NativeID, "native-id", "", "the backend's id of an item")
	fs.StringVar(&r.EventID, "event", "", "the id of an event")
	fs.StringVar(&r.From, "from", "", "the beginning of a range (RFC 3339)")
	fs.StringVar(&r.To, "to", "", "its end")
	fs.Int64Var(&r.Limit, "limit", 0, "the most items")
	fs.StringVar(&r.Cursor, "cursor", "", "go on where an answer before ended")
	return cmd
}

func (a *app) provenance(ctx context.Context, d *door, r *abi.ProvenanceRequest) error {
	p, err := d.Provenance(ctx, r)
	if err != nil {
		return err
	}
	if a.out.json {
		return a.out.value(p)
	}
	for _, i := range p.Items {
		e := i.Evidence
		parts := []string{e.NativeID, e.NativeType, firstOf(e.ValidAt, e.CreatedAt),
			strings.Join(e.SourceEventIDs, ","), e.Text}
		for n, part := range parts {
			if part == "" {
				parts[n] = "-"
			}
		}
		a.out.print("%s\n", printable(strings.ReplaceAll(strings.Join(parts, "  "), "\n", " ")))
	}
	if p.NextCursor != "" {
		a.out.note("  there is more: --cursor %s", quote(p.NextCursor))
	}
	return nil
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

const inventoryHelp = `Counts what the backend holds of a scope, by its own types. Two inventories with the same counts and digests are of the same memory, where both are complete.`

func (a *app) inventoryCommand() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{
		Use: "inventory", Short: "Count what a scope holds", Long: inventoryHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(a); err != nil {
				return err
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				i, err := d.Inventory(ctx, &abi.InventoryRequest{Scope: f.scope()})
				if err != nil {
					return err
				}
				return a.showInventory(i)
			})
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (a *app) showInventory(i *abi.Inventory) error {
	if a.out.json {
		return a.out.value(i)
	}
	w := tabwriter.NewWriter(a.out.stdout, 0, 0, 2, ' ', 0)
	for _, k := range i.Kinds {
		if _, err := w.Write([]byte(printable(k.Kind) + "\t" + count(int(k.Count), "item") + "\t" +
			printable(k.Digest) + "\n")); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !i.Complete {
		a.out.note("  not complete: the backend cannot list everything")
	}
	if !i.Quiescent {
		a.out.note("  the backend still works on earlier writes")
	}
	return nil
}

const readinessHelp = `Asks whether what was recorded in a scope can be retrieved by now. With --timeout it waits for that.

Events that arrived, and of which the backend kept nothing, are listed as empty until somebody decides: its model failed, or there was nothing to remember. --retry sends them once more: from the archive (memory.archive), where it has them, otherwise when they are recorded again. What was kept of a part may be doubled.

The exit code is 0 for ready and degraded, 3 while something is pending, and 1 when something failed or was lost, or the provider cannot tell.`

func (a *app) readinessCommand() *cobra.Command {
	var f scopeFlags
	var timeout time.Duration
	var retry bool
	cmd := &cobra.Command{
		Use: "readiness", Short: "Ask whether what was recorded has arrived", Long: readinessHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout < 0 {
				return usageError("--timeout: want 0 or more, found "+timeout.String(), "")
			}
			if err := f.complete(a); err != nil {
				return err
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				r, err := d.Readiness(ctx, &abi.ReadinessRequest{Scope: f.scope(), TimeoutMS: timeout.Milliseconds(),
					RetryEmpty: retry})
				if err != nil {
					return err
				}
				return a.showReadiness(r)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait for ready, as 30s; 0 is one look")
	cmd.Flags().BoolVar(&retry, "retry", false, "send events once more of which the backend kept nothing")
	return cmd
}

func (a *app) showReadiness(r *abi.BackendReadiness) error {
	if a.out.json {
		if err := a.out.value(r); err != nil {
			return err
		}
	} else {
		a.out.print("%s  %s\n", r.Status, printable(r.Method))
		for _, l := range []struct {
			name string
			ids  []string
		}{{"pending", r.EventIDs.Pending}, {"lost", r.EventIDs.Lost}, {"failed", r.EventIDs.Failed},
			{"empty", r.EventIDs.Empty}, {"unknown", r.EventIDs.Unknown}} {
			if len(l.ids) > 0 {
				a.out.print("%s: %s\n", l.name, printable(cut(strings.Join(l.ids, ", "), 400)))
			}
		}
		for _, w := range r.Warnings {
			a.out.note("  warning: %s", printable(w))
		}
	}
	switch r.Status {
	case abi.ReadinessReady, abi.ReadinessDegraded:
		return nil
	case abi.ReadinessPending:
		return &doneError{exitRetry}
	}
	return &doneError{exitFailed}
}
