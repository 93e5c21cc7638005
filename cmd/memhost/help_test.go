package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/cli"
)

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	root := cli.New(cli.System{Stdout: io.Discard, Stderr: io.Discard}).Root(features...)
	names := map[string]bool{}
	for _, cmd := range root.Commands() {
		names[cmd.Name()] = true
		require.NotEmpty(t, cmd.Short, cmd.Name())
		require.NotRegexp(t, `\.$`, cmd.Short, cmd.Name())
		require.True(t, cmd.Runnable() || !cmd.HasSubCommands(), "%s shows its help for a wrong command", cmd.Name())
	}
	for _, name := range []string{"init", "run", "record", "retrieve", "health", "setup", "reset", "mode", "providers",
		"inspect", "pack", "config", "version", "demo", "forget"} {
		require.True(t, names[name], name)
	}
}

// TestTheManualIsOnePageWithEachLineOfHelp: cobra's own generator would write one page per command, and parse the texts
// as Markdown, which joins lines that were broken by hand.
func TestTheManualIsOnePageWithEachLineOfHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	s := cli.System{Args: []string{"man"}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	require.Equal(t, 0, cli.Run(t.Context(), s, features...), stderr.String())
	require.Equal(t, 1, strings.Count(stdout.String(), ".TH "))
	page := strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`).Replace(stdout.String())
	commands := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		commands++
		for line := range strings.Lines(cmd.Long) {
			assert.Contains(t, page, strings.TrimRight(line, "\n"), cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(s).Root(features...))
	require.Greater(t, commands, 50)
}
