// Package evalcmd has the commands of memhost eval: run an evaluation, score it, show and compare the results.
package evalcmd

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands is the command of evaluations, memhost eval.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupMeasure, a.evalCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
