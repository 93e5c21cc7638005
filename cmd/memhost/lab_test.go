//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/internal/test/brief"
)

// TestTheLocalLabRuns runs examples/lab/local.yaml completely, and parses every other lab file there. The lab with a
// real mem0 is run by testenv.
func TestTheLocalLabRuns(t *testing.T) {
	folder := filepath.Join(repository, "examples", "lab")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	for _, file := range files {
		_, err := lab.Read(file)
		require.NoError(t, err)
	}
	brief.Skip(t)
	local, err := filepath.Abs(filepath.Join(folder, "local.yaml"))
	require.NoError(t, err)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	for _, args := range [][]string{
		{"eval", "pack", "build", "synth", "-o", "local.pack", "--option", "personas=6", "--option", "sessions=3",
			"--option", "turns=3"},
		{"eval", "run", local, "--pack", filepath.Join(m.dir, "local.pack"), "--out", "run", "--yes"},
		{"eval", "report", "run"},
		{"eval", "verify", "run"},
	} {
		_, code := m.run(args...)
		require.Zero(t, code, args)
	}
	text, err := os.ReadFile(filepath.Join(m.dir, "run", "metrics.json"))
	require.NoError(t, err)
	metrics := new(score.Metrics)
	require.NoError(t, json.Unmarshal(text, metrics))
	assert.True(t, metrics.Run.Complete)
	assert.Equal(t, "pass", metrics.SelfTest.Verdict, metrics.SelfTest.Missed)
	assert.Equal(t, "works", metrics.LeakControl.Detector)
	for _, c := range metrics.Columns {
		assert.False(t, c.Partial, c.Label)
		assert.Zero(t, c.Wall.Breached+c.Wall.CanariesFound, c.Label)
		assert.Zero(t, c.Isolation.Leaking, c.Label)
	}
}
