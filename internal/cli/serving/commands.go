// Package serving starts a slot and serves it: memhost run, also as the child of an MCP client. It also has init,
// config, upgrade and compact.
//
// Start turns a configuration into a slot that serves.
package serving

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands that serve a slot, and those for its configuration.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupServe, a.runCommand(), a.upgradeCommand(), a.compactCommand(), a.initCommand(),
		a.configCommand(), a.tokenCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
