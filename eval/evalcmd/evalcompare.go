package evalcmd

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) evalCompareCommand() *cobra.Command {
	return &cobra.Command{Use: "compare RUN RUN", Short: "Set two scored runs side by side, if they may be",
		Args: cobra.ExactArgs(2),
		Long: "Refuses runs that differ in pack, budgets, policies, tokenizer, frame or contract, and says in which.",
		RunE: func(_ *cobra.Command, args []string) error {
			var runs [2]*score.Metrics
			for i, folder := range args {
				m, err := score.Read(folder)
				if err != nil {
					return err
				}
				runs[i] = m
			}
			c, err := score.Compare(runs[0], runs[1])
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(c)
			}
			return a.showSideBySide(c)
		}}
}

// showSideBySide prints a line for each memory, budget and metric.
func (a *commands) showSideBySide(s *score.SideBySide) error {
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "memory\tbudget\tmetric\t%s\t%s\tdifference\n", s.A, s.B)
	for _, c := range s.Columns {
		for _, f := range c.Figures {
			difference := "–"
			if f.Difference != nil {
				difference = fmt.Sprintf("%+.3f", *f.Difference)
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", c.Label, f.Budget, f.Metric, meanOf(f.A), meanOf(f.B), difference)
		}
	}
	return w.Flush()
}

// meanOf formats a figure with its interval; a dash if there is none.
func meanOf(f *score.Figure) string {
	if f == nil || f.Value == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", f.Value.Mean, f.Value.Low, f.Value.High)
}

func (a *commands) evalFailuresCommand() *cobra.Command {
	var packPath string
	var o score.FailureOptions
	cmd := &cobra.Command{Use: "failures RUN", Short: "The probes that went worst, with what was expected",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			list, err := score.Failures(e.folder, e.pack, o)
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(list)
			}
			for i := range list {
				a.Out.Print("%s\n", failureLine(&list[i]))
			}
			return nil
		}}
	f := cmd.Flags()
	f.StringVar(&packPath, "pack", "", "where the pack is now")
	f.StringVar(&o.Label, "label", "", "one provider's only, by its label")
	f.IntVar(&o.Limit, "most", 20, "how many")
	return cmd
}

// failureLine describes a failed probe in one line.
func failureLine(f *score.Failure) string {
	var expected []string
	for _, group := range f.Probe.Gold.Answers {
		expected = append(expected, strings.Join(group, " or "))
	}
	outcome := "not shown"
	switch {
	case f.Error != "":
		outcome = "error " + f.Error
	case f.Unflagged:
		outcome = "a former value is shown as if it held"
	}
	return fmt.Sprintf("%s/%d, %d tokens, %s [%s] %s -> %s: %s", f.Label, f.Replicate, f.Budget,
		f.Probe.ProbeID, f.Probe.Label,
		cli.Cut(f.Probe.Query, 100), cli.Cut(strings.Join(expected, "; "), 80), outcome)
}

// scoreSubmission scores a ranking from another system, in the retrieval columns only.
func (a *commands) scoreSubmission(path, packPath string) error {
	p, err := pack.Open(packPath)
	if err != nil {
		return err
	}
	defer p.Close()
	f, err := os.Open(path)
	if err != nil {
		return cli.FileError(path, err)
	}
	defer f.Close()
	m, err := score.Submission(f, p)
	if err != nil {
		return err
	}
	return a.Out.Object(m)
}
