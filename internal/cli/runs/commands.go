// Package runs has the commands that show how a run went, from its manifest or its cassette.
package runs

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands that show how a run went.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupRuns, a.manifestCommand(), a.replayCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
