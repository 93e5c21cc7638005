package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

const modeHelp = `Without an argument tells how the read-only wall stands. While a slot is read-only it records nothing, resets nothing, and lets no native call pass that
could change the backend. Going read-only waits for the writes that are under way. With --run and --user one scope alone is set. The mode survives
restarts; that of the whole slot survives swaps too.`

func (a *app) modeCommand() *cobra.Command {
	var reason string
	var f scopeFlags
	cmd := &cobra.Command{
		Use: "mode [read-only|write]", Short: "Show or set the read-only mode", Long: modeHelp,
		Args: cobra.MaximumNArgs(1), ValidArgs: []string{"read-only", "write"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var mode *abi.AdapterMode
			if len(args) == 1 {
				if args[0] != "read-only" && args[0] != "write" {
					return usageError("mode: found "+quote(args[0])+", want read-only or write", "")
				}
				mode = &abi.AdapterMode{ReadOnly: args[0] == "read-only", Reason: reason}
			} else if reason != "" || f != (scopeFlags{}) {
				return usageError("mode: --reason and a scope go with read-only or write", "")
			}
			if f != (scopeFlags{}) {
				if err := f.complete(a); err != nil {
					return err
				}
				scope := f.scope()
				mode.Scope = &scope
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error { return a.mode(ctx, d, mode) })
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever wonders later")
	return cmd
}

func (a *app) mode(ctx context.Context, d *door, mode *abi.AdapterMode) (err error) {
	var r *abi.ModeReceipt
	if mode == nil {
		r, err = d.Mode(ctx)
	} else {
		r, err = d.SetMode(ctx, mode)
	}
	if err != nil {
		return err
	}
	if a.out.json {
		return a.out.value(r)
	}
	word := "write"
	if r.ReadOnly {
		word = "read-only"
	}
	if r.Scope != nil {
		word = "run " + quote(r.Scope.RunID) + ", user " + quote(r.Scope.PersonaID) + ": " + word
	}
	line := fmt.Sprintf("%s since %s", word, r.Since)
	if r.InFlight > 0 {
		line += fmt.Sprintf(", still under way from before: %d", r.InFlight)
	}
	if len(r.NotReady) > 0 {
		line += ", writes not arrived yet: in " + count(len(r.NotReady), "scope")
	}
	a.out.print("%s\n", line)
	for _, warning := range r.Warnings {
		a.out.note("  warning: %s", printable(warning))
	}
	return nil
}
