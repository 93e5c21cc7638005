package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
)

// TestEverythingRuns needs the checkout, for package host's own benchmarks. `make bench BENCHFLAGS=-short` does the
// same.
func TestEverythingRuns(t *testing.T) {
	brief.Skip(t)
	t.Chdir(filepath.Join("..", ".."))
	r, err := Run(t.Context(), Options{Rounds: 1, Short: true, Memory: 200, Progress: func(string, int, int) {}})
	require.NoError(t, err)
	for _, row := range r.Rows {
		for _, who := range row.By {
			assert.Len(t, row.Samples[who], 1, "%s by %s", row.ID, who)
		}
	}
	require.Len(t, r.Memory, 2)
}

func TestARunIsWritten(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	out := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, run(t.Context(), []string{"-short", "-only", "^(module|metering)$", "-out", out}))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^Benchmarkmodule/by=memhost 1 \d+ B$`, string(text))
	assert.Regexp(t, `(?m)^Benchmarkmetering/by=bare_wazero_with_its_check 1 \S+ ns/op$`, string(text))
	require.ErrorContains(t, run(context.Background(), []string{"-only", "("}), "error parsing regexp")
}
