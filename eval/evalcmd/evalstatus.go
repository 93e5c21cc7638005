package evalcmd

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) evalStatusCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "status RUN", Short: "How far a run is", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			for {
				r, err := rundir.Open(args[0])
				if err != nil {
					return err
				}
				if a.Out.JSON {
					err = a.Out.Object(r)
				} else {
					err = a.evalStatus(args[0], r)
				}
				if err != nil || !follow || ended(r) || ctx.Err() != nil {
					return err
				}
				a.Sleep(ctx, 2*time.Second)
			}
		}}
	cmd.Flags().BoolVar(&follow, "follow", false,
		"print it again every two seconds, until every cell is complete or failed")
	return cmd
}

// ended reports whether no cell of a run is waiting or running.
func ended(r *rundir.Run) bool {
	return !slices.ContainsFunc(r.Cells, func(c *rundir.Cell) bool {
		return c.State != rundir.Complete && c.State != rundir.Failed
	})
}

func (a *commands) evalStatus(folder string, r *rundir.Run) error {
	a.Out.Print("%s, begun %s\n", r.Lab.Name, r.BegunAt)
	for _, c := range r.Cells {
		records, probes := 0, 0
		for line, err := range journal.Read(filepath.Join(c.Folder(folder), journal.Name)) {
			if err != nil {
				break // being written, or not started
			}
			switch line.Kind {
			case journal.KindRecord:
				if line.Record.Error == nil { // a failed event is recorded again when the run is resumed
					records++
				}
			case journal.KindProbe:
				if line.Probe.Read == 1 {
					probes++
				}
			}
		}
		total := r.Pack.Counts.Probes * len(r.Lab.BudgetsOf(r.Lab.Find(c.Label)))
		a.Out.Print("  %-28s %-9s %6d of %d events, %5d of %d retrievals\n", fmt.Sprintf("%s/%d", c.Label, c.Replicate),
			c.State, records, r.Pack.Counts.Events, probes, total)
	}
	return nil
}

func (a *commands) evalVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{Use: "verify RUN", Short: "Check that nothing of a run was changed later",
		Args: cobra.ExactArgs(1),
		Long: `Reads every journal, checks that each line follows the one before, and holds the last one to the head
that run.json seals. That finds a change of one file. Somebody who writes journals and run.json anew makes a chain that
is whole: --head compares the run with a head that was noted elsewhere when it was made.`,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := rundir.Open(args[0])
			if err != nil {
				return err
			}
			found := r.Head()
			for _, c := range r.Cells {
				if c.State != rundir.Complete {
					return abi.NewError(abi.CodeConflict,
						fmt.Sprintf("cell %s/%d is %s: its head is not sealed yet", c.Label, c.Replicate, c.State))
				}
				lines, err := journal.Verify(filepath.Join(c.Folder(args[0]), journal.Name), c.Head)
				if err != nil {
					return err
				}
				if !a.Out.JSON {
					a.Out.Print("%s %s/%d: %d lines, head %.12s\n", a.Out.Passed(), c.Label, c.Replicate, lines, c.Head)
				}
			}
			if head != "" && head != found {
				a.Out.Note("the run's head is %s, not %s", found, head)
				return cli.Done(cli.ExitDiffers)
			}
			if a.Out.JSON {
				return a.Out.Object(map[string]string{"head": found})
			}
			a.Out.Print("head %s\n", found)
			return nil
		}}
	cmd.Flags().StringVar(&head, "head", "", "the head that was noted when the run was made")
	return cmd
}
