package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/bench"
)

func TestThePageKeepsItsProse(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "performance.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	r := &bench.Result{Rounds: 8, Memory: []bench.MemoryRun{{Name: "a slot", Calls: 8}}}
	row := bench.RowResult{Row: bench.Row{ID: "echo", What: "an echo", Unit: bench.Nanoseconds, By: []string{"memhost", "bare"}, Bars: []bench.Bar{{Kind: bench.AtMost, Limit: 100}},
		Points: map[string]bench.Point{"memhost": {Plot: "size", Series: "memhost", X: 50}, "bare": {Plot: "size", Series: "bare", X: 50}}},
		Cells:   map[string]*bench.Cell{"memhost": {Rounds: []float64{200, 201, 202, 203, 204, 205, 206, 207}}},
		Missing: map[string]string{"bare": "nobody built it"}}
	r.Rows = append(r.Rows, row)
	r.Profiles = []bench.Profile{{Name: "an echo", Samples: 4, Flat: []bench.ProfileLine{{Function: "the guest's code", Flat: 75}, {Function: "runtime.memmove", Flat: 25}}, Cum: []bench.ProfileLine{{Function: "host.run", Cum: 25}}}}
	for i := range 8 {
		r.Memory[0].Points = append(r.Memory[0].Points, bench.MemoryPoint{Calls: i + 1, Resident: 3 << 20, Heap: 1 << 20})
	}
	file := filepath.Join(docs, "run.json")
	require.NoError(t, r.Write(file))
	for range 2 { // a second run replaces the first
		require.NoError(t, run(file, docs))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| an echo | ≤ 100 ns | memhost | 204 ns")
	assert.Contains(t, string(text), "**missed (204 ns, 2.04 × the bar)**")
	assert.Contains(t, string(text), "an echo, bare: not measured, nobody built it.")
	assert.Contains(t, string(text), "| a slot | 8 | Go's heap | 1 MB |")
	assert.Contains(t, string(text), "| the guest's code | 75.0 % | `host.run` | 25.0 % |\n| `runtime.memmove` | 25.0 % |  |  |")
	assert.NotContains(t, string(text), "old")
	assert.Regexp(t, "^before\n<!--", string(text))
	assert.Regexp(t, "-->\nafter\n$", string(text))
	for _, name := range []string{"figures.csv", "memory.csv", "size.png", "size.svg", "memory.png", "memory.svg"} {
		info, err := os.Stat(filepath.Join(docs, "performance", name))
		require.NoError(t, err)
		assert.Positive(t, info.Size(), name)
	}

	require.NoError(t, os.WriteFile(page, []byte("no markers\n"), 0o600))
	require.ErrorContains(t, run(file, docs), "markers")
	r.Short = true
	require.NoError(t, r.Write(file))
	require.ErrorContains(t, run(file, docs), "short run")
}
