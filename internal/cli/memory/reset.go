package memory

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

const resetHelp = `Erases the memory of one scope and starts its next generation: what was recorded before is gone, from the archive
too, and may be recorded again. On a terminal it asks first; elsewhere it wants --yes. "outside" are copies that the
slot cannot reach, such as a database's files. The exit code is 0 when the reset is done, 3 while it is in progress and 1 when something remains.`

func (a *commands) resetCommand() *cobra.Command {
	var f cli.ScopeFlags
	var yes bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Erase a scope's memory", Long: resetHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Complete(a.App); err != nil {
				return err
			}
			if !yes && !cli.IsTerminal(a.Stdin) {
				return cli.UsageError("reset erases the memory of run "+cli.Quote(f.Run)+", user "+cli.Quote(f.User)+" and cannot ask here",
					"say --yes if that is meant")
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				return a.reset(ctx, d, &f, yes)
			})
		},
	}
	f.Add(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *commands) reset(ctx context.Context, d *cli.Door, f *cli.ScopeFlags, yes bool) error {
	if !yes {
		m, err := d.Manifest(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out.Stderr, "Erase what %s (%s) remembers of run %s, user %s? Type yes: ", m.Provider, d.Where(),
			cli.Quote(f.Run), cli.Quote(f.User))
		if err := a.confirmed(ctx, "nothing was erased"); err != nil {
			return err
		}
	}
	a.TellNearScopes(ctx, d, f.Scope()) // before the reset, which makes the scope known
	r, err := d.ResetScope(ctx, f.Scope())
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if err := a.Out.Value(r); err != nil {
			return err
		}
	} else {
		a.showReset(r, d.Owner(ctx))
	}
	switch r.Status {
	case abi.ResetDone:
		return nil
	case abi.ResetInProgress:
		return cli.Done(cli.ExitRetry)
	}
	return cli.Done(cli.ExitFailed)
}

func (a *commands) showReset(r *abi.ResetReceipt, whose string) {
	a.Out.Print("%s, generation %d: %s\n", r.Status, r.NewGeneration, whose)
	for _, kind := range slices.Sorted(maps.Keys(r.Removed)) {
		n := "an unknown number"
		if c := r.Removed[kind]; c != nil {
			n = fmt.Sprint(*c)
		}
		a.Out.Print("  removed: %s of %s\n", n, kind)
	}
	for _, what := range r.Remains {
		a.Out.Print("  remains: %s\n", what)
	}
	a.showRemains(nil, r.Outside)
	for _, w := range r.Warnings {
		a.Out.Note("  warning: %s", w)
	}
}

// ask reads a line that a person types. An interruption does not wait for it.
func (a *commands) ask(ctx context.Context) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(a.Stdin).ReadString('\n') // an empty line is an answer, too
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", cli.ErrInterrupted
	}
}
