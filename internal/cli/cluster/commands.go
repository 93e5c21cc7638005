// Package cluster has the command memhost cluster, about hosts that share a database.
package cluster

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the command memhost cluster.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupServe, a.clusterCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
