package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageKeepsItsProse(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "reference", "performance.md")
	require.NoError(t, os.Mkdir(filepath.Dir(page), 0o755))
	for _, path := range []string{page, filepath.Join(docs, "performance.md")} {
		require.NoError(t, os.WriteFile(path, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	}
	with := t.TempDir()
	for name, content := range map[string]string{"x.rows": "| more | 1 | | |\n", "x.md": "\n### More\n", "x.svg": "<svg/>"} {
		require.NoError(t, os.WriteFile(filepath.Join(with, name), []byte(content), 0o600))
	}
	r := &Result{Rounds: 8, Memory: []MemoryRun{{Name: "a slot", Calls: 8}}}
	row := rowOf([]Bar{{Kind: AtMost, Limit: 100}},
		map[string][]float64{"ours": {200, 201, 202, 203, 204, 205, 206, 207}})
	row.ID = inShort[0]
	row.Points = map[string]Point{"ours": {Plot: "size", Series: "ours", X: 50}}
	r.Rows = append(r.Rows, *row)
	for i := range 8 {
		r.Memory[0].Points = append(r.Memory[0].Points, MemoryPoint{Calls: i + 1, Resident: 3 << 20, Heap: 1 << 20})
	}
	for range 2 { // a second run replaces the first
		require.NoError(t, r.WriteDocs(docs, with))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| a row | ≤ 100 ns | ours | 204 ns")
	assert.Contains(t, string(text), "**missed (204 ns, 2.04 × the bar)**")
	assert.Contains(t, string(text), "| a slot | 8 | Go's heap | 1 MB |")
	assert.NotContains(t, string(text), "old")
	assert.Regexp(t, "^before\n<!--", string(text))
	assert.Regexp(t, "-->\nafter\n$", string(text))
	assert.Contains(t, string(text), "\n### More\n"+end)
	short, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	require.NoError(t, err)
	assert.Contains(t, string(short), "| a row | 204 ns")
	assert.Contains(t, string(short), "| more | 1 | | |\n\n"+end)
	for _, name := range []string{"x.svg", "figures.csv", "memory.csv", "size.png", "size.svg", "memory.png", "memory.svg"} {
		info, err := os.Stat(filepath.Join(docs, "performance", name))
		require.NoError(t, err)
		assert.Positive(t, info.Size(), name)
	}

	require.NoError(t, os.WriteFile(page, []byte("no markers\n"), 0o600))
	require.ErrorContains(t, r.WriteDocs(docs, with), "markers")
	r.Short = true
	require.ErrorContains(t, r.WriteDocs(docs, with), "short run")
}

func TestTheShortTableNamesRows(t *testing.T) {
	known := map[string]bool{}
	for _, one := range tasks(false) {
		for _, row := range one.rows {
			known[row.ID] = true
		}
	}
	for _, id := range inShort {
		assert.True(t, known[id], "%s; there are %v", id, slices.Sorted(maps.Keys(known)))
	}
}
