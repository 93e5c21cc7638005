// Package hookcmd has the command memhost hook: the hooks that agents run as commands, and their installation.
package hookcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the command of agents' hooks, memhost hook.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupAgents, a.hookCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
