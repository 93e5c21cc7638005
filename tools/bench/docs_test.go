package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageKeepsItsProse(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "reference", "performance.md")
	require.NoError(t, os.Mkdir(filepath.Dir(page), 0o755))
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	r := &Result{Rounds: 8, Memory: []MemoryRun{{Name: "a slot", Calls: 8}}}
	row := rowOf([]Bar{{Kind: AtMost, Limit: 100}},
		map[string][]float64{"ours": {200, 201, 202, 203, 204, 205, 206, 207}})
	row.Points = map[string]Point{"ours": {Plot: "size", Series: "ours", X: 50}}
	r.Rows = append(r.Rows, *row)
	for i := range 8 {
		r.Memory[0].Points = append(r.Memory[0].Points, MemoryPoint{Calls: i + 1, Resident: 3 << 20, Heap: 1 << 20})
	}
	for range 2 { // a second run replaces the first
		require.NoError(t, r.WriteDocs(docs))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| a row | ≤ 100 ns | ours | 204 ns")
	assert.Contains(t, string(text), "**missed (204 ns, 2.04 × the bar)**")
	assert.Contains(t, string(text), "| a slot | 8 | Go's heap | 1 MB |")
	assert.NotContains(t, string(text), "old")
	assert.Regexp(t, "^before\n<!--", string(text))
	assert.Regexp(t, "-->\nafter\n$", string(text))
	for _, name := range []string{"figures.csv", "memory.csv", "size.png", "size.svg", "memory.png", "memory.svg"} {
		info, err := os.Stat(filepath.Join(docs, "performance", name))
		require.NoError(t, err)
		assert.Positive(t, info.Size(), name)
	}

	require.NoError(t, os.WriteFile(page, []byte("no markers\n"), 0o600))
	require.ErrorContains(t, r.WriteDocs(docs), "markers")
	r.Short = true
	require.ErrorContains(t, r.WriteDocs(docs), "short run")
}
