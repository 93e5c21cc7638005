package memory

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

const modeHelp = `Without an argument tells how the read-only wall stands. While a slot is read-only it records nothing, resets nothing, and lets no native call pass that
could change the backend. Going read-only waits for the writes that are under way. With --run and --user one scope alone is set. The mode survives
restarts; that of the whole slot survives swaps too.`

func (a *commands) modeCommand() *cobra.Command {
	var reason string
	var f cli.ScopeFlags
	cmd := &cobra.Command{
		Use: "mode [read-only|write]", Short: "Show or set the read-only mode", Long: modeHelp,
		Args: cobra.MaximumNArgs(1), ValidArgs: []string{"read-only", "write"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var mode *abi.AdapterMode
			if len(args) == 1 {
				if args[0] != "read-only" && args[0] != "write" {
					return cli.UsageError("mode: found "+cli.Quote(args[0])+", want read-only or write", "")
				}
				a.Begins = true
				mode = &abi.AdapterMode{ReadOnly: args[0] == "read-only", Reason: reason}
			} else if reason != "" || f != (cli.ScopeFlags{}) {
				return cli.UsageError("mode: --reason and a scope go with read-only or write", "")
			}
			if f != (cli.ScopeFlags{}) {
				if err := f.Complete(a.App); err != nil {
					return err
				}
				scope := f.Scope()
				mode.Scope = &scope
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error { return a.mode(ctx, d, mode) })
		},
	}
	f.Add(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why it changes; shown with the mode")
	return cmd
}

func (a *commands) mode(ctx context.Context, d *cli.Door, mode *abi.AdapterMode) (err error) {
	var r *abi.ModeReceipt
	if mode == nil {
		r, err = d.Mode(ctx)
	} else {
		if mode.Scope != nil {
			a.TellNearScopes(ctx, d, *mode.Scope)
		}
		r, err = d.SetMode(ctx, mode)
	}
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(r)
	}
	word := "write"
	if r.ReadOnly {
		word = "read-only"
	}
	if r.Scope != nil {
		word = "run " + cli.Quote(r.Scope.RunID) + ", user " + cli.Quote(r.Scope.PersonaID) + ": " + word
	}
	line := fmt.Sprintf("%s since %s", word, r.Since)
	if r.InFlight > 0 {
		line += fmt.Sprintf(", still under way from before: %d", r.InFlight)
	}
	if len(r.NotReady) > 0 {
		line += ", writes not arrived yet: in " + cli.Count(len(r.NotReady), "scope")
	}
	a.Out.Print("%s\n", line)
	for _, warning := range r.Warnings {
		a.Out.Note("  warning: %s", warning)
	}
	return nil
}
