package opstate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// Whatever an operation writes, deletes and lists, it sees the same as in a plain map, and so does the store once its
// batch is committed.
func TestAnOperationsStateAgreesWithAMap(t *testing.T) {
	store, err := state.Open(t.TempDir(), state.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var spaces byte
	names := []string{"a", "aa", "aab", "ab", "b", "ba", "a\x00", "é", "view/x", "view/y", "view/y/z"}
	rapid.Check(t, func(t *rapid.T) {
		spaces++
		space, want := state.Space{0: spaces, 1: rapid.Byte().Draw(t, "space"), 2: rapid.Byte().Draw(t, "space")},
			map[string]string{}
		held, err := store.List(t.Context(), space, state.ListQuery{Limit: 100, Values: true})
		require.NoError(t, err)
		for _, i := range held.Items {
			want[i.Key] = string(i.Data)
		}
		name, prefix := rapid.SampledFrom(names), rapid.SampledFrom(append([]string{"", "v", "c"}, names...))
		for range rapid.IntRange(1, 3).Draw(t, "operations") {
			tx := New(store, space)
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0, 1:
					key, value := name.Draw(t, "key"), rapid.StringN(0, 5, 20).Draw(t, "value")
					_, err := tx.Put(t.Context(), key, []byte(value), abi.AnyVersion)
					require.NoError(t, err)
					want[key] = value
				case 2:
					under, before := prefix.Draw(t, "prefix"), len(want)
					maps.DeleteFunc(want, func(key, _ string) bool { return strings.HasPrefix(key, under) })
					count, err := tx.Delete(t.Context(), under)
					require.NoError(t, err)
					require.EqualValues(t, before-len(want), count, "what goes is counted once")
				case 3:
					requirePages(t, tx, want, prefix.Draw(t, "prefix"), name.Draw(t, "after"),
						rapid.IntRange(1, 4).Draw(t, "limit"))
				}
			}
			for _, key := range names {
				data, version, err := tx.Get(t.Context(), key)
				require.NoError(t, err)
				value, there := want[key]
				require.Equal(t, there, version != 0, "%q", key)
				require.Equal(t, value, string(data), "%q", key)
			}
			_, err := store.Commit(t.Context(), &tx.Batch)
			require.NoError(t, err)
			requirePages(t, New(store, space), want, "", "", 100)
		}
	})
}

// requirePages reads page by page after a key.
func requirePages(t *rapid.T, tx *State, want map[string]string, prefix, after string, limit int) {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	for {
		page, err := tx.List(t.Context(), state.ListQuery{Prefix: prefix, After: after, Limit: limit, Values: true})
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Items), limit)
		for _, i := range page.Items {
			require.NotEmpty(t, keys, "%q is too many", i.Key)
			require.Equal(t, keys[0], i.Key)
			require.Equal(t, want[i.Key], string(i.Data))
			keys, after = keys[1:], i.Key
		}
		require.Equal(t, len(keys) > 0, page.More)
		if !page.More {
			return
		}
		require.NotEmpty(t, page.Items)
	}
}

func TestFindingWhatIsUnderAPrefixDoesNotReadAllKeys(t *testing.T) {
	var o overlay
	for i := range 1000 {
		o.set(string(rune('a'+i%26))+strings.Repeat("x", i), nil, 0)
	}
	assert.LessOrEqual(t, len(o.runs), 10, "keys lie in few runs, whose lengths double")
	for i := 1; i < len(o.runs); i++ {
		assert.GreaterOrEqual(t, len(o.runs[i-1]), 2*len(o.runs[i]))
	}
	for range 1000 {
		delete(o.values, "b")
		o.set("b", nil, 0)
	}
	total := 0
	for _, run := range o.runs {
		total += len(run)
	}
	assert.Less(t, total, 4000, "a key that comes and goes does not pile up")
}
