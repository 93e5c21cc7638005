// Command memhost serves one memory slot for an agent, and has commands to use it. `memhost --help` lists them.
package main

import (
	"os"

	"github.com/memhost/memhost/eval/evalcmd"
	"github.com/memhost/memhost/internal/authoring/authoringcmd"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/cluster"
	"github.com/memhost/memhost/internal/cli/demo"
	"github.com/memhost/memhost/internal/cli/memory"
	"github.com/memhost/memhost/internal/cli/moving"
	"github.com/memhost/memhost/internal/cli/native"
	"github.com/memhost/memhost/internal/cli/runs"
	"github.com/memhost/memhost/internal/cli/serving"
	"github.com/memhost/memhost/internal/doors/agenthook/hookcmd"
	"github.com/memhost/memhost/internal/registry/registrycmd"
)

// features provide the commands.
var features = []cli.Feature{serving.Commands, demo.Commands, cluster.Commands, memory.Commands, moving.Commands,
	native.Commands, hookcmd.Commands, runs.Commands, registrycmd.Commands, authoringcmd.Commands, evalcmd.Commands}

func main() { os.Exit(cli.Main(features...)) }
