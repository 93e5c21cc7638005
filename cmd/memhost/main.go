// Command memhost serves one memory slot for an agent, and speaks to it. `memhost --help` lists what it can do.
package main

import (
	"os"

	"github.com/memhost/memhost/internal/cli"
)

func main() { os.Exit(cli.Main()) }
