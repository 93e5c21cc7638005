// Package registrycmd has the commands that list, inspect, pack, store, fetch and sign modules.
package registrycmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands that list, inspect, pack, store, fetch and sign modules.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupModules, a.providersCommand(), a.inspectCommand(), a.packCommand(), a.pushCommand(),
		a.pullCommand(), a.signCommand())
}

// commands implements the commands of this package.
type commands struct{ *cli.App }
