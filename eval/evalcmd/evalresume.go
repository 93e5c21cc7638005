package evalcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) evalResumeCommand() *cobra.Command {
	var packPath string
	cmd := &cobra.Command{Use: "resume RUN", Short: "Go on with a run that was ended", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := rundir.Open(args[0])
			if err != nil {
				return err
			}
			if packPath == "" {
				packPath = r.PackPath
			}
			p, err := pack.Open(packPath)
			if err != nil {
				return err
			}
			defer p.Close()
			return a.evalGo(cmd.Context(), args[0], r, p, a.evalOptions(r.Lab, p, r.Dir))
		}}
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *commands) evalReplayCommand() *cobra.Command {
	var packPath, out string
	cmd := &cobra.Command{Use: "replay RUN --out ANOTHER",
		Short: "Run it again from its cassettes, without any backend", Args: cobra.ExactArgs(1),
		Long: `Plays each cassette of a run that was made with cassettes: true through the module, which must answer
byte for byte as then, and makes a run of the same answers. Its metrics.json is that of every other replay. Models are
not asked again: what an agent said is not in it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return cli.UsageError("--out: required", "a new folder for the run")
			}
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			r, err := run.Replay(ctx, args[0], out, e.pack, a.evalOptions(e.run.Lab, e.pack, e.run.Dir))
			if err != nil {
				return err
			}
			a.Out.Note("%s %s from their cassettes: %s", a.Out.Passed(), cli.Count(len(r.Cells), "cell"), out)
			return nil
		}}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the new run's folder")
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}
