//go:build live

package testenv

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLab_mem0 runs examples/lab/mem0.yaml on a small made-up pack with the real mem0, by the program. It has one column
// more: mem0 under memory.profile source-design.
func TestLab_mem0(t *testing.T) {
	server := Mem0Server(t)
	t.Setenv("MEM0_KEY", server.Key)
	dir := t.TempDir()
	program := filepath.Join(dir, "memhost")
	run := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v\n%s", name, args, out)
		t.Logf("%v\n%s", args, out)
	}
	run("go", "build", "-o", program, "../../../cmd/memhost")
	text, err := os.ReadFile("../../../examples/lab/mem0.yaml")
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)  - label: mem0\n.*secrets: [^\n]*\n`).FindString(string(text))
	require.NotEmpty(t, block)
	designed := strings.NewReplacer("label: mem0\n", "label: designed\n", "backend: mem0\n",
		"backend: mem0\n      profile: source-design\n").Replace(block)
	there := strings.ReplaceAll(strings.Replace(string(text), block, block+designed, 1), "http://127.0.0.1:8888", server.URL)
	lab, pack, folder := filepath.Join(dir, "lab.yaml"), filepath.Join(dir, "mem0.pack"), filepath.Join(dir, "run")
	require.NoError(t, os.WriteFile(lab, []byte(there), 0o600))
	run(program, "eval", "pack", "build", "synth", "-o", pack, "--option", "personas=2", "--option", "sessions=3",
		"--option", "turns=3")
	run(program, "eval", "run", lab, "--pack", pack, "--out", folder, "--yes")
	run(program, "eval", "report", folder)
	run(program, "eval", "verify", folder)
	var metrics struct {
		SelfTest struct{ Verdict string } `json:"self_test"`
		Columns  []struct {
			Label   string
			Partial bool
			Wall    struct {
				Clean, Breached, Inconclusive int
				CanariesFound                 int `json:"canaries_found"`
			}
			Isolation struct{ Leaking int }
		}
	}
	text, err = os.ReadFile(filepath.Join(folder, "metrics.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &metrics))
	assert.Equal(t, "pass", metrics.SelfTest.Verdict)
	require.Greater(t, len(metrics.Columns), 1)
	assert.Equal(t, "mem0", metrics.Columns[0].Label)
	assert.Equal(t, "designed", metrics.Columns[1].Label)
	for _, c := range metrics.Columns {
		assert.False(t, c.Partial, c.Label)
		assert.Zero(t, c.Wall.Breached+c.Wall.CanariesFound, c.Label)
		assert.Zero(t, c.Isolation.Leaking, c.Label)
	}
}
