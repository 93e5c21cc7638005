// Package demo has the command memhost demo.
package demo

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the command memhost demo.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	return cli.InGroup(cli.GroupServe, a.demoCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }
