// Package native has the commands for what a provider offers beyond the contract: query, mutate, ledger, dream,
// export and import.
package native

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands are those for what a provider offers beyond the contract's operations.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupUse, a.queryCommand(), a.mutateCommand(), a.ledgerCommand(), a.dreamCommand(),
		a.exportCommand(), a.importCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
