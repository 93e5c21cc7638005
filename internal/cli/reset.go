package cli

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

const resetHelp = `Erases the memory of one scope and starts its next generation: what was recorded before is gone, from the archive
too, and may be recorded again. On a terminal it asks first; elsewhere it wants --yes. "outside" are copies that the
slot cannot reach, such as a database's files. The exit code is 0 when the reset is done, 3 while it is in progress and 1 when something remains.`

func (a *app) resetCommand() *cobra.Command {
	var f scopeFlags
	var yes bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Erase a scope's memory", Long: resetHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(a); err != nil {
				return err
			}
			if !yes && !isTerminal(a.Stdin) {
				return usageError("reset erases the memory of run "+quote(f.run)+", user "+quote(f.user)+" and cannot ask here",
					"say --yes if that is meant")
			}
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				return a.reset(ctx, d, &f, yes)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) reset(ctx context.Context, d *door, f *scopeFlags, yes bool) error {
	if !yes {
		m, err := d.Manifest(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "Erase what %s (%s) remembers of run %s, user %s? Type yes: ", m.Provider, d.where(),
			quote(f.run), quote(f.user))
		if err := a.confirmed(ctx, "nothing was erased"); err != nil {
			return err
		}
	}
	r, err := d.ResetScope(ctx, f.scope())
	if err != nil {
		return err
	}
	if a.out.json {
		if err := a.out.value(r); err != nil {
			return err
		}
	} else {
		a.showReset(r, d.whose(ctx))
	}
	switch r.Status {
	case abi.ResetDone:
		return nil
	case abi.ResetInProgress:
		return &doneError{exitRetry}
	}
	return &doneError{exitFailed}
}

func (a *app) showReset(r *abi.ResetReceipt, whose string) {
	a.out.print("%s, generation %d: %s\n", r.Status, r.NewGeneration, whose)
	for _, kind := range slices.Sorted(maps.Keys(r.Removed)) {
		n := "an unknown number"
		if c := r.Removed[kind]; c != nil {
			n = fmt.Sprint(*c)
		}
		a.out.print("  removed: %s of %s\n", n, printable(kind))
	}
	for _, what := range r.Remains {
		a.out.print("  remains: %s\n", printable(what))
	}
	a.showRemains(nil, r.Outside)
	for _, w := range r.Warnings {
		a.out.note("  warning: %s", printable(w))
	}
}

// ask reads one line of what a person types. An interruption does not wait for it.
func (a *app) ask(ctx context.Context) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(a.Stdin).ReadString('\n') // an empty line is an answer, too
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", errInterrupted
	}
}
