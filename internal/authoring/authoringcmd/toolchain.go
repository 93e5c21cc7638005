package authoringcmd

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/authoring/toolchain"
	"github.com/memhost/memhost/internal/cli"
)

const toolchainHelp = `Makes the TinyGo that memhost's own modules are built with, for "memhost build". It is compiled into a folder of your cache (MEMHOST_TOOLCHAIN names
another one), on Debian 12, linux/amd64, and needs packages of Debian. First it says what it will do and how long that takes, and asks; without a terminal it wants
--yes. Packages are installed only if it runs as root; otherwise it prints the command. Elsewhere TINYGO=PATH names a TinyGo of yours.

To try a plugin out none of this is needed: "memhost build --compiler go".`

func (a *commands) toolchainCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{Use: "toolchain", Short: "Make the compiler for small modules", Long: toolchainHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.toolchain(cmd.Context(), yes) }}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *commands) toolchain(ctx context.Context, yes bool) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	if _, err := exec.LookPath("go"); err != nil {
		return missingTool("the go command is not on the PATH", "install Go 1.26; TinyGo compiles with its standard library", err)
	}
	need, err := toolchain.Look(ctx, ".")
	if err != nil {
		return missingTool(err.Error(), toolchain.EnvTinyGo+"=PATH names a TinyGo of yours", err)
	}
	if need.Made != nil {
		a.Out.Print("TinyGo %s is there: %s\n", need.Version, need.Folder)
		return nil
	}
	a.Out.Note("TinyGo %s will be compiled into %s: about a minute on a quiet machine, 40 MB.", need.Version, need.Folder)
	if len(need.Packages) > 0 {
		a.Out.Note("It needs packages of Debian that are missing, up to 1 GB installed: %s", strings.Join(need.Packages, " "))
		if !toolchain.CanInstall() {
			e := abi.NewError(abi.CodeUnavailable, "Debian packages are missing, and only root can install them; nothing was done").
				WithReason(reasonToolchain).WithHint("as root: " + need.Install)
			e.Retryable = false
			return e
		}
		a.Out.Note("They will be installed for the whole system: %s", need.Install)
	}
	if !yes {
		if !cli.IsTerminal(a.Stdin) {
			return cli.UsageError("toolchain cannot ask here, and did nothing", "say --yes if that is meant")
		}
		fmt.Fprint(a.Out.Stderr, "Type yes: ")
		answer := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
			answer <- strings.TrimSpace(line)
		}()
		select {
		case text := <-answer:
			if text != "yes" {
				a.Out.Note("nothing was done")
				return cli.Done(cli.ExitFailed)
			}
		case <-ctx.Done():
			return cli.ErrInterrupted
		}
	}
	made, err := toolchain.Bootstrap(ctx, ".", a.Out.Stderr)
	if err != nil {
		return missingTool(err.Error(), toolchain.EnvTinyGo+"=PATH names a TinyGo of yours", err)
	}
	a.Out.Print("TinyGo is there: %s\n", made.ID())
	return nil
}
