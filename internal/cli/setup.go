package cli

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) setupCommand() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{
		Use: "setup", Short: "Make a scope ready", Args: cobra.NoArgs,
		Long: "Makes a scope ready in the backend. It is never needed, since the first write does it; it shows the " +
			"native ids under which the scope is kept.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(a); err != nil {
				return err
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error { return a.setup(ctx, d, &f) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (a *app) setup(ctx context.Context, d *door, f *scopeFlags) error {
	r, err := d.SetupScope(ctx, f.scope())
	if err != nil {
		return err
	}
	if a.out.json {
		return a.out.value(r)
	}
	state := "made"
	if r.Existed != nil && *r.Existed {
		state = "was there"
	}
	if mode, err := d.Mode(ctx); err == nil && mode.ReadOnly {
		state = "only checked, the slot is read-only"
	}
	a.out.print("ready (%s): run %s, user %s\n", state, quote(f.run), quote(f.user))
	for _, name := range slices.Sorted(maps.Keys(r.NativeScope)) {
		a.out.print("  %s: %s\n", printable(name), printable(r.NativeScope[name]))
	}
	for _, w := range r.Warnings {
		a.out.note("  warning: %s", printable(w))
	}
	return nil
}
