package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

const modeHelp = `Without an argument tells how the read-only wall stands. While a slot is read-only it records nothing, resets nothing, and lets no native call pass that
could change the backend. The mode survives restarts and swaps.`

func (a *app) modeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "mode [read-only|write]", Short: "Show or set the read-only mode", Long: modeHelp, Args: cobra.MaximumNArgs(1), ValidArgs: []string{"read-only", "write"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var mode *abi.AdapterMode
			if len(args) == 1 {
				if args[0] != "read-only" && args[0] != "write" {
					return usageError("mode: found "+quote(args[0])+", want read-only or write", "")
				}
				mode = &abi.AdapterMode{ReadOnly: args[0] == "read-only", Reason: reason}
			} else if reason != "" {
				return usageError("mode: --reason goes with read-only or write", "")
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error { return a.mode(ctx, d, mode) })
		},
	}
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
	line := fmt.Sprintf("%s since %s", word, r.Since)
	if r.InFlight > 0 {
		line += fmt.Sprintf(", %d writes that had begun are still under way", r.InFlight)
	}
	if len(r.NotReady) > 0 {
		line += fmt.Sprintf(", %d scopes whose writes have not arrived yet", len(r.NotReady))
	}
	a.out.print("%s\n", line)
	return nil
}
