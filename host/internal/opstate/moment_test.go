package opstate

import (
	"testing"

	"github.com/memhost/memhost/internal/state"
	"github.com/stretchr/testify/require"
)

// TestACountThatWasReadBeforeCounts: a commit between the count and the first read makes two reads two commits. Before
// a native call the count is dropped: then only a commit between the reads matters.
func TestACountThatWasReadBeforeCounts(t *testing.T) {
	store, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	space := state.Space{1}
	commit := func() (count []byte) {
		tx := New(store, space)
		_, err := tx.Put(t.Context(), "k", []byte("v"), -1)
		require.NoError(t, err)
		require.NoError(t, tx.CountCommit(t.Context()))
		_, err = store.Commit(t.Context(), &tx.Batch)
		require.NoError(t, err)
		count, err = store.Record(t.Context(), TableCommits, space[:])
		require.NoError(t, err)
		return count
	}
	commit()
	for name, c := range map[string]struct{ stale, call, between, moved bool }{
		"current":                            {},
		"stale":                              {stale: true, moved: true},
		"stale, and a call":                  {stale: true, call: true},
		"stale, a call, and another commit":  {stale: true, call: true, between: true, moved: true},
		"current, and a commit between them": {between: true, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			tx := New(store, space)
			tx.KnowCommits(commit())
			if c.stale {
				commit()
			}
			var m Moment
			m.Begin(tx)
			if c.call {
				moved, err := m.Moved(t.Context())
				require.NoError(t, err)
				require.False(t, moved)
			}
			require.NoError(t, m.WillRead(t.Context()))
			if c.between {
				commit()
			}
			require.NoError(t, m.WillRead(t.Context()))
			moved, err := m.Moved(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.moved, moved)
		})
	}
}
