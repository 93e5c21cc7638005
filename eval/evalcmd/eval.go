package evalcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

const evalHelp = `Compares memories on one timeline of conversations and questions, so that every figure can be recomputed.

  memhost eval demo                                  30 s, nothing to install
  memhost eval pack build locomo locomo10.json -o locomo.pack
  memhost eval run lab.yaml --out runs/first         or: --pack locomo.pack --providers no_memory,full_history,mem0
  memhost eval report runs/first --open

Each provider runs in a cell of its own: accumulate, then read-only test sessions. A run that was ended, however, goes on with "resume".`

func (a *commands) evalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "eval", Short: "Compare memories: packs, runs, metrics, reports", Long: evalHelp,
		Args: cli.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	packs := &cobra.Command{Use: "pack", Short: "Make and check packs", Args: cli.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	packs.AddCommand(a.evalPackBuildCommand(), a.evalPackLintCommand(), a.evalPackShowCommand())
	cmd.AddCommand(a.evalDemoCommand(), packs, a.evalRunCommand(), a.evalResumeCommand(), a.evalStatusCommand(),
		a.evalScoreCommand(), a.evalReportCommand(), a.evalJudgeCommand(), a.evalShowCommand(), a.evalFailuresCommand(),
		a.evalCompareCommand(),
		a.evalVerifyCommand(), a.evalReplayCommand(), a.evalLabelCommand(), a.evalAuditCommand())
	return cmd
}
