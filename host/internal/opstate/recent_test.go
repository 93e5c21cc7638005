package opstate

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/stretchr/testify/require"
)

// reading is an operation that only reads.
type reading struct {
	t testing.TB
	*State
	*Moment
}

func readingOf(t testing.TB, store state.Store, space state.Space, recent *Recent) *reading {
	r := &reading{t, New(store, space), new(Moment)}
	r.Begin(r.State, recent)
	return r
}

func (r *reading) get(key string) string {
	r.t.Helper()
	require.NoError(r.t, r.WillRead(context.Background()))
	data, _, err := r.Get(context.Background(), key)
	require.NoError(r.t, err)
	return string(data)
}

func (r *reading) requireMoved(moved bool) {
	r.t.Helper()
	got, err := r.Moved(context.Background())
	require.NoError(r.t, err)
	require.Equal(r.t, moved, got)
}

// writing writes keys, as one operation.
func writing(t testing.TB, store state.Store, space state.Space, value string, keys ...string) {
	t.Helper()
	tx := New(store, space)
	for _, key := range keys {
		_, err := tx.Put(context.Background(), key, []byte(value), abi.AnyVersion)
		require.NoError(t, err)
	}
	_, err := tx.Append(context.Background(), "log", []byte(value))
	require.NoError(t, err)
	require.NoError(t, tx.CountCommit(context.Background()))
	_, err = store.Commit(context.Background(), &tx.Batch)
	require.NoError(t, err)
}

func newCounting(t testing.TB) *counting {
	inner, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	return &counting{Store: inner}
}

func TestWhatWasReadIsRecalledUntilACommit(t *testing.T) {
	store, recent, space := newCounting(t), new(Recent), state.Space{1}
	writing(t, store, space, "v", "a", "b")
	read := func(want string, gets int) {
		t.Helper()
		store.gets = 0
		r := readingOf(t, store, space, recent)
		require.Equal(t, want+want, r.get("a")+r.get("b"))
		for range 2 {
			page, err := r.List(t.Context(), state.ListQuery{Limit: 10, Values: true})
			require.NoError(t, err)
			require.Len(t, page.Items, 2)
			entries, err := r.Read(t.Context(), state.LogQuery{Log: "log", Limit: 1, Reverse: true})
			require.NoError(t, err)
			require.Equal(t, want, string(entries.Items[0].Data))
		}
		r.requireMoved(false)
		require.Equal(t, gets, store.gets)
	}
	read("v", 2)
	read("v", 0)
	writing(t, store, space, "w", "a", "b")
	read("w", 2)
	read("w", 0)
	other := readingOf(t, store, state.Space{2}, recent)
	require.Empty(t, other.get("a"), "another space")
}

// TestAnUncertainReadIsNotRecalled: of two reads with a commit between them, and of one that nothing was compared after.
func TestAnUncertainReadIsNotRecalled(t *testing.T) {
	store, recent, space := newCounting(t), new(Recent), state.Space{1}
	writing(t, store, space, "v", "a", "b")
	r := readingOf(t, store, space, recent)
	require.Equal(t, "v", r.get("a"))
	writing(t, store, space, "w", "a", "b")
	require.Equal(t, "w", r.get("b"))
	r.requireMoved(true)
	require.Empty(t, recent.spaces)

	r = readingOf(t, store, space, recent)
	require.NoError(t, r.WillRead(t.Context()))
	writing(t, store, space, "x", "a", "b")
	require.Equal(t, "x", r.get("a"))
	r.requireMoved(false)
	require.Empty(t, recent.spaces)
}

// TestARecalledAnswerAndAReadAreComparedToo: the recalled one is of the commit at which the operation began.
func TestARecalledAnswerAndAReadAreComparedToo(t *testing.T) {
	store, recent, space := newCounting(t), new(Recent), state.Space{1}
	writing(t, store, space, "v", "a", "b", "c")
	r := readingOf(t, store, space, recent)
	r.get("a")
	r.get("b")
	r.requireMoved(false)

	r = readingOf(t, store, space, recent)
	require.Equal(t, "v", r.get("a"))
	writing(t, store, space, "w", "a", "b", "c")
	require.Equal(t, "v", r.get("b"), "still of the commit at which it began")
	r.requireMoved(false)
	require.Equal(t, "w", r.get("c"))
	r.requireMoved(true)

	r.Begin(r.State, recent) // the operation is repeated
	require.Equal(t, "www", r.get("a")+r.get("b")+r.get("c"))
	r.requireMoved(false)
	late := readingOf(t, store, space, recent)
	late.begun, late.first = true, []byte("\x00\x00\x00\x00\x00\x00\x00\x01")
	late.answers["a"] = state.Value{Data: []byte("v"), Version: 1}
	recent.add(space, late.first, late.answers)
	require.Equal(t, "w", readingOf(t, store, space, recent).get("a"), "an earlier commit replaces nothing")
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	store, recent := newCounting(t), new(Recent)
	const spaces = 40
	for i := range byte(spaces) {
		space := state.Space{1, i}
		writing(t, store, space, string(make([]byte, recentBytes/10)), "a", "b")
		r := readingOf(t, store, space, recent)
		r.get("a")
		r.get("b")
		r.requireMoved(false)
		require.LessOrEqual(t, recent.bytes, recentBytes)
	}
	require.NotEmpty(t, recent.spaces)
	require.Less(t, len(recent.spaces), spaces)
	for space := range recent.spaces {
		recent.drop(space)
	}
	require.Zero(t, recent.bytes)
}

// TestManyRecall: readers concurrent with a writer see both keys as one commit wrote them, and nothing older than what
// was committed before they began.
func TestManyRecall(t *testing.T) {
	store, recent, space := newCounting(t), new(Recent), state.Space{1}
	writing(t, store, space, "00000", "a", "b")
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var mu sync.Mutex
	last := "00000"
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				least := last
				mu.Unlock()
				r := readingOf(t, store.Store, space, recent)
				a, b := r.get("a"), r.get("b")
				moved, err := r.Moved(context.Background())
				if err != nil || !moved && (a != b || a < least) {
					t.Errorf("read %s and %s after %s: %v", a, b, least, err)
					return
				}
			}
		})
	}
	for i := range 200 {
		value := fmt.Sprintf("%05d", i)
		writing(t, store.Store, space, value, "a", "b")
		mu.Lock()
		last = value
		mu.Unlock()
	}
	close(stop)
	wg.Wait()
}
