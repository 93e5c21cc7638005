package state

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// openTest opens a store that the test closes. Tests of behaviour, not durability, need no syncs.
func openTest(tb testing.TB, dir string, opts Options) *Bolt {
	tb.Helper()
	if opts.Durability == "" {
		opts.Durability = DurabilityProcess
	}
	s, err := Open(dir, opts)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func mustCommit(tb testing.TB, s Store, fill func(b *Batch)) CommitResult {
	tb.Helper()
	var b Batch
	fill(&b)
	res, err := s.Commit(context.Background(), &b)
	require.NoError(tb, err)
	return res
}

func tryCommit(s Store, fill func(b *Batch)) (CommitResult, error) {
	var b Batch
	fill(&b)
	return s.Commit(context.Background(), &b)
}

func space(n byte) Space { return Space{0: n} }
