package memory

import (
	"context"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// The commands of optional capabilities. Each ends with unsupported (exit code 6) if the provider lacks the capability.

const provenanceHelp = `Asks where memory came from: by the backend's id, by an event's, or by a range of time. Each item is a line; with --json the items come with what the backend
says of them.`

func (a *commands) provenanceCommand() *cobra.Command {
	var f cli.ScopeFlags
	var r abi.ProvenanceRequest
	cmd := &cobra.Command{
		Use: "provenance (--native-id ID | --event ID | --from TIME --to TIME)", Short: "Ask where memory came from",
		Long: provenanceHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Complete(a.App); err != nil {
				return err
			}
			r.Scope = f.Scope()
			if err := r.Validate(); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				return a.provenance(ctx, d, &r)
			})
		},
	}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&r.NativeID, "native-id", "", "the backend's id of an item")
	fs.StringVar(&r.EventID, "event", "", "the id of an event")
	fs.StringVar(&r.From, "from", "", "the beginning of a range (RFC 3339)")
	fs.StringVar(&r.To, "to", "", "its end")
	fs.Int64Var(&r.Limit, "limit", 0, "the most items")
	fs.StringVar(&r.Cursor, "cursor", "", "go on where an answer before ended")
	return cmd
}

func (a *commands) provenance(ctx context.Context, d *cli.Door, r *abi.ProvenanceRequest) error {
	p, err := d.Provenance(ctx, r)
	if abi.CodeOf(err) == abi.CodeNotFound {
		a.TellNearScopes(ctx, d, r.Scope)
	}
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(p)
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
		a.Out.Print("%s\n", strings.ReplaceAll(strings.Join(parts, "  "), "\n", " "))
	}
	if len(p.Items) == 0 {
		a.TellNearScopes(ctx, d, r.Scope)
	}
	if p.NextCursor != "" {
		a.Out.Note("  there is more: --cursor %s", cli.Quote(p.NextCursor))
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

func (a *commands) inventoryCommand() *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{
		Use: "inventory", Short: "Count what a scope holds", Long: inventoryHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Complete(a.App); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				i, err := d.Inventory(ctx, &abi.InventoryRequest{Scope: f.Scope()})
				if err != nil {
					return err
				}
				a.TellNearScopes(ctx, d, f.Scope())
				return a.showInventory(i)
			})
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

func (a *commands) showInventory(i *abi.Inventory) error {
	if a.Out.JSON {
		return a.Out.Value(i)
	}
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	for _, k := range i.Kinds {
		if _, err := w.Write([]byte(k.Kind + "\t" + cli.Count(int(k.Count), "item") + "\t" +
			k.Digest + "\n")); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !i.Complete {
		a.Out.Note("  not complete: the backend cannot list everything")
	}
	if !i.Quiescent {
		a.Out.Note("  the backend still works on earlier writes")
	}
	return nil
}

const readinessHelp = `Asks whether what was recorded in a scope can be retrieved by now. With --timeout it waits for that.

Events that arrived, and of which the backend kept nothing, are listed as empty until somebody decides: its model failed, or there was nothing to remember. Events that failed or were lost are listed until they are sent again, even if the backend has caught up. --retry sends all of these once more: from the archive (memory.archive), if it has them, otherwise when they are recorded again. An event of which the backend kept a part may be doubled.

The exit code is 0 for ready and degraded, 3 while something is pending, and 1 when something failed or was lost, or the provider cannot tell.`

func (a *commands) readinessCommand() *cobra.Command {
	var f cli.ScopeFlags
	var timeout time.Duration
	var retry bool
	cmd := &cobra.Command{
		Use: "readiness", Short: "Ask whether what was recorded has arrived", Long: readinessHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout < 0 {
				return cli.UsageError("--timeout: want 0 or more, found "+timeout.String(), "")
			}
			if err := f.Complete(a.App); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				r, err := d.Readiness(ctx, &abi.ReadinessRequest{Scope: f.Scope(), TimeoutMS: timeout.Milliseconds(),
					RetryEmpty: retry})
				if err != nil {
					return err
				}
				a.TellNearScopes(ctx, d, f.Scope())
				return a.showReadiness(r)
			})
		},
	}
	f.Add(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait for ready, as 30s; 0 is one look")
	cmd.Flags().BoolVar(&retry, "retry", false, "send events once more that failed or were lost, or of which the backend kept nothing")
	return cmd
}

func (a *commands) showReadiness(r *abi.BackendReadiness) error {
	if a.Out.JSON {
		if err := a.Out.Value(r); err != nil {
			return err
		}
	} else {
		a.Out.Print("%s  %s\n", r.Status, r.Method)
		for _, l := range []struct {
			name string
			ids  []string
		}{{"pending", r.EventIDs.Pending}, {"lost", r.EventIDs.Lost}, {"failed", r.EventIDs.Failed},
			{"empty", r.EventIDs.Empty}, {"unknown", r.EventIDs.Unknown}} {
			if len(l.ids) > 0 {
				a.Out.Print("%s: %s\n", l.name, cli.Cut(strings.Join(l.ids, ", "), 400))
			}
		}
		for _, w := range r.Warnings {
			a.Out.Note("  warning: %s", w)
		}
	}
	switch r.Status {
	case abi.ReadinessReady, abi.ReadinessDegraded:
		return nil
	case abi.ReadinessPending:
		return cli.Done(cli.ExitRetry)
	}
	return cli.Done(cli.ExitFailed)
}
