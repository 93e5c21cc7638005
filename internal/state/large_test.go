package state

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/require"
)

// A small batch waits for the rest of one large transaction and for its own. How long that takes depends on the
// machine: a transaction of 32 MiB needs 85 ms of computing, plus the disk and other load. So the limit is twice the
// slowest transaction observed, plus the time in which a busy machine wakes a goroutine. If batches were committed in
// order of arrival, small ones would wait for up to eight large ones.
func TestHostileLargeBatchesLetSmallOnesPass(t *testing.T) {
	brief.Leave(t)
	var longest time.Duration
	var last time.Time
	s := openTest(t, t.TempDir(), Options{beforeWrite: func(int) {
		now := time.Now()
		if !last.IsZero() {
			longest = max(longest, now.Sub(last))
		}
		last = now
	}})
	large := make([]byte, 16<<20)
	results := make(chan error, 8)
	for n := range 4 {
		for range 2 {
			go func() {
				var b Batch
				b.Put(Space{0: byte(n)}, "a", large, AnyVersion)
				b.Put(Space{0: byte(n)}, "b", large, AnyVersion)
				_, err := s.Commit(context.Background(), &b)
				results <- err
			}()
		}
	}
	var slowest time.Duration
	for n := range 5 {
		var b Batch
		b.Put(Space{0: 9}, fmt.Sprint(n), []byte("small"), AnyVersion)
		began := time.Now()
		_, err := s.Commit(context.Background(), &b)
		require.NoError(t, err)
		slowest = max(slowest, time.Since(began))
	}
	for range 8 {
		require.NoError(t, <-results)
	}
	require.NoError(t, s.Close()) // no transaction is running any more
	t.Logf("beside eight batches of 32 MiB, a small one waited %v at most; the longest transaction took %v", slowest,
		longest)
	require.Less(t, slowest, 2*longest+250*time.Millisecond)
}

func TestSmallAndLargeBatchesTakeTurns(t *testing.T) {
	g := newGate()
	s := openTest(t, t.TempDir(), Options{beforeWrite: g.hold})
	put := func(bytes int) func(*Batch) {
		return func(b *Batch) { b.Put(Space{}, "k", make([]byte, bytes), AnyVersion) }
	}
	first := start(t, s, t.Context(), 0, put(1))
	require.Equal(t, 1, <-g.arrived)
	large := start(t, s, t.Context(), 1, put(largeBytes))
	larger := start(t, s, t.Context(), 2, put(2*largeBytes))
	small, other := start(t, s, t.Context(), 3, put(1)), start(t, s, t.Context(), 4, put(1))
	for i, want := range []int{1, 2, 1} { // the large one, the small ones together, the larger one
		g.open <- struct{}{}
		require.Equal(t, want, <-g.arrived, "group %d", i)
	}
	g.open <- struct{}{}
	for _, done := range []<-chan answer{first, large, small, other, larger} {
		require.NoError(t, (<-done).err)
	}
}

func TestAReplacedPutLeavesVersionsAsTheyWere(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	var b Batch
	at := b.Len()
	b.Put(Space{}, "a", []byte("old"), 0)
	b.Put(Space{}, "b", []byte("b"), AnyVersion)
	b.Replace(at, Space{}, "a", []byte("new"))
	require.Equal(t, len("a")+len("b")+len("b")+len("a")+len("new"), b.Bytes())
	result, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, result.Versions)
	v, err := s.Get(t.Context(), Space{}, "a")
	require.NoError(t, err)
	require.Equal(t, "new", string(v.Data))
	require.EqualValues(t, 3, v.Version)
	var again Batch
	again.Put(Space{}, "a", nil, 0)
	at = again.Len() - 1
	again.Replace(at, Space{}, "a", nil)
	_, err = s.Commit(t.Context(), &again)
	require.ErrorIs(t, err, ErrConflict, "the precondition of the first put holds")
}
