// Package moving has the commands that move to another provider (swap, backfill, shadow), and those for the archive and
// for backups. A slot that serves uses its Backfiller.
package moving

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands that move to another provider, those for the archive, and backup.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupUse, a.swapCommand(), a.backfillCommand(), a.shadowCommand(), a.archiveCommand(),
		a.backupCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
