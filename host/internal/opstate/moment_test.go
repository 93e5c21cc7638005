package opstate

import (
	"context"
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
			r := &reading{t, tx, new(Moment)}
			r.Begin(tx, nil)
			if c.call {
				r.requireMoved(false)
			}
			r.get("k")
			if c.between {
				commit()
			}
			r.get("another")
			r.requireMoved(c.moved)
		})
	}
}

// TestAKeyIsReadOnce: since Remember, unless it is too large to be kept.
func TestAKeyIsReadOnce(t *testing.T) {
	inner, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	store := &counting{Store: inner}
	space := state.Space{1}
	var b state.Batch
	b.Put(space, "small", []byte("v"), state.AnyVersion)
	b.Put(space, "large", make([]byte, rememberBytes), state.AnyVersion)
	result, err := store.Commit(t.Context(), &b)
	require.NoError(t, err)
	tx := New(store, space)
	get := func(key string, reads int) {
		t.Helper()
		store.gets = 0
		for range 2 {
			_, _, err := tx.Get(t.Context(), key)
			require.NoError(t, err)
		}
		require.Equal(t, reads, store.gets, key)
	}
	get("small", 2)
	tx.Remember()
	get("small", 1)
	get("absent", 1)
	get("large", 2)
	store.gets = 0
	_, err = tx.Put(t.Context(), "small", []byte("w"), result.Versions[0])
	require.NoError(t, err)
	require.Zero(t, store.gets)
	data, _, err := tx.Get(t.Context(), "small")
	require.NoError(t, err)
	require.Equal(t, "w", string(data), "its own write")
	_, err = tx.Delete(t.Context(), "small")
	require.NoError(t, err)
	data, version, err := tx.Get(t.Context(), "small")
	require.NoError(t, err)
	require.Zero(t, version, "%q", data)
}

// counting is a store that counts reads of keys.
type counting struct {
	state.Store
	gets int
}

func (c *counting) Get(ctx context.Context, space state.Space, key string) (state.Value, error) {
	c.gets++
	return c.Store.Get(ctx, space, key)
}
