//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/memhost/memhost/internal/test/brief"
)

// TestTheFirstChanges makes the changes that CONTRIBUTING.md describes, for the compiler only (-overlay): the metric
// passes the test of its examples, and a program with the command passes the script.
func TestTheFirstChanges(t *testing.T) {
	brief.Leave(t)
	page, err := os.ReadFile(filepath.Join(repository, "CONTRIBUTING.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2, "a metric and a command")
	_, scriptBlock, found := strings.Cut(string(page), "```\n# How many items")
	require.True(t, found, "the command's script")
	scriptBlock, _, _ = strings.Cut(scriptBlock, "```")

	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	m := memhost{t: t, dir: t.TempDir(), cache: cacheHome(t), program: filepath.Join(t.TempDir(), "memhost")}
	replaced := map[string]string{}
	put := func(name, text string) {
		file := filepath.Join(t.TempDir(), filepath.Base(name))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		replaced[filepath.Join(root, name)] = file
	}
	put("eval/score/metric_empty.go", blocks[0][1])
	put("internal/cli/memory/holds.go", `package memory

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

`+blocks[1][1])
	const list = "internal/cli/memory/commands.go"
	before, err := os.ReadFile(filepath.Join(root, list))
	require.NoError(t, err)
	after := strings.Replace(string(before), "a.healthCommand(),", "a.healthCommand(), a.holdsCommand(),", 1)
	require.NotEqual(t, string(before), after)
	put(list, after)
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	file := filepath.Join(m.dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	goCommand := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
		return string(out)
	}
	require.Contains(t, goCommand("test", "-v", "-overlay", file, "-run", "^TestEveryMetricMeasuresItsExamples$/^empty$",
		"./eval/score"), "--- PASS: TestEveryMetricMeasuresItsExamples/empty")
	goCommand("build", "-overlay", file, "-o", m.program, "./cmd/memhost")

	script := txtar.Parse([]byte("# How many items" + scriptBlock))
	for _, f := range script.Files {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, f.Name), f.Data, 0o600))
	}
	stdout, checked := "", 0
	for line := range strings.Lines(string(script.Comment)) {
		line = strings.TrimSpace(line)
		if args, ok := strings.CutPrefix(line, "exec memhost "); ok {
			var code int
			stdout, code = m.run(strings.Fields(args)...)
			require.Zero(t, code, line)
		} else if want, ok := strings.CutPrefix(line, "stdout "); ok {
			require.Regexp(t, "(?m)"+strings.Trim(want, "'"), stdout)
			checked++
		}
	}
	require.Equal(t, 1, checked)
}
