package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) setupCommand() *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{
		Use: "setup", Short: "Make a scope ready", Args: cobra.NoArgs,
		Long: "Makes a scope ready in the backend. It is never needed, since the first write does it; it shows the " +
			"native ids under which the scope is kept.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.Begins = true
			if err := f.Complete(a.App); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error { return a.setup(ctx, d, &f) })
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

func (a *commands) setup(ctx context.Context, d *cli.Door, f *cli.ScopeFlags) error {
	r, err := d.SetupScope(ctx, f.Scope())
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(r)
	}
	state := "made"
	if r.Existed != nil && *r.Existed {
		state = "was there"
	}
	if mode, err := d.Mode(ctx); err == nil && mode.ReadOnly {
		state = "only checked, the slot is read-only"
	}
	a.Out.Print("ready (%s): run %s, user %s\n", state, cli.Quote(f.Run), cli.Quote(f.User))
	for _, name := range slices.Sorted(maps.Keys(r.NativeScope)) {
		a.Out.Print("  %s: %s\n", name, r.NativeScope[name])
	}
	for _, w := range r.Warnings {
		a.Out.Note("  warning: %s", w)
	}
	return nil
}
