// Package authoringcmd has the commands for authors of plugins: new, build, conformance and backend.
package authoringcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands are those for authors of plugins.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupModules, a.newCommand(), a.buildCommand(), a.toolchainCommand(), a.conformanceCommand(), a.backendCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
