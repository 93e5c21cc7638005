package native

import (
	_ "embed" // the template

	"github.com/spf13/cobra"
)

// heartbeat is the task for an agent's HEARTBEAT.md.
//
//go:embed heartbeat.md
var heartbeat string

const heartbeatHelp = `Prints a task for an agent's HEARTBEAT.md, as Nanobot reads it every 30 minutes: what was said since the last time is recorded as facts, and the ledger is tidied.
The agent needs a shell. A ledger tidies itself with consolidate_minutes in its configuration.`

func (a *commands) ledgerHeartbeat() *cobra.Command {
	return &cobra.Command{Use: "heartbeat", Short: "Print a task for an agent's HEARTBEAT.md", Long: heartbeatHelp,
		Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			a.Out.Print("%s", heartbeat)
			return nil
		}}
}
