// Package memory has a command for each operation of the contract: record, retrieve, forget and the others.
package memory

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands of the contract's operations: record, retrieve, reset and the others.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return append(cli.InGroup(cli.GroupAgents, a.adoptCommand()), cli.InGroup(cli.GroupUse, a.recordCommand(), a.retrieveCommand(), a.askCommand(), a.statusCommand(), a.healthCommand(), a.setupCommand(),
		a.resetCommand(), a.forgetCommand(), a.modeCommand(), a.readinessCommand(), a.inventoryCommand(),
		a.provenanceCommand())...)
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
