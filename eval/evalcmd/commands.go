// Package evalcmd has the commands of memhost eval: run an evaluation, score it, show and compare the results.
package evalcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the evaluation command, memhost eval.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupMeasure, a.evalCommand())
}

// commands implements the commands of this package.
type commands struct{ *cli.App }
