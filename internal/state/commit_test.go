package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// gate holds the committer at the start of each group and reports the group's size.
type gate struct {
	arrived chan int
	open    chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan int), open: make(chan struct{})} }

func (g *gate) hold(group int) {
	g.arrived <- group
	<-g.open
}

// queued waits until n commits are queued.
func queued(t *testing.T, s *Bolt, n int) {
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queue) == n
	}, 10*time.Second, 100*time.Microsecond)
}

type answer struct {
	res CommitResult
	err error
}

// start commits in the background, and returns when the batch is in the queue.
func start(t *testing.T, s *Bolt, ctx context.Context, position int, fill func(b *Batch)) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		var b Batch
		fill(&b)
		res, err := s.Commit(ctx, &b)
		done <- answer{res, err}
	}()
	queued(t, s, position)
	return done
}

func TestCommitsThatWaitAreAppliedTogetherEachOnItsOwn(t *testing.T) {
	g := newGate()
	s := openTest(t, t.TempDir(), Options{beforeWrite: g.hold})
	first := make(chan answer, 1)
	go func() {
		res, err := tryCommit(s, func(b *Batch) { b.Put(space(1), "k", []byte("0"), 0) })
		first <- answer{res, err}
	}()
	require.Equal(t, 1, <-g.arrived)
	var waits []<-chan answer
	for i, fill := range []func(b *Batch){
		func(b *Batch) { b.Append(space(1), "log", []byte("1")) },
		func(b *Batch) {
			b.Put(space(1), "k", []byte("stale"), 0)
			b.Append(space(1), "log", []byte("conflict"))
		},
		func(b *Batch) {
			b.MaxSpaceBytes = 100
			b.PutRecord("t", []byte("r"), []byte("quota"))
			b.Append(space(1), "log", make([]byte, 200))
		},
		func(b *Batch) { b.ExpectRecord("t", []byte("r"), nil); b.Append(space(1), "log", []byte("2")) },
		func(b *Batch) { b.PutRecord("t", []byte("r"), []byte("five")) },
		func(b *Batch) {
			b.ExpectRecord("t", []byte("r"), []byte("five"))
			b.Append(space(1), "log", []byte("3"))
		},
	} {
		waits = append(waits, start(t, s, ctx, i+1, fill))
	}
	g.open <- struct{}{}
	require.NoError(t, (<-first).err)
	require.Equal(t, 6, <-g.arrived, "all six in one transaction")
	g.open <- struct{}{}
	var seqs []int64
	for i, want := range []error{nil, ErrConflict, ErrQuota, nil, nil, nil} {
		a := <-waits[i]
		require.ErrorIs(t, a.err, want, "batch %d", i)
		seqs = append(seqs, a.res.Seqs...)
	}
	require.Equal(t, []int64{1, 2, 3}, seqs, "what failed left no gap")
	es, err := s.ReadLog(ctx, space(1), LogQuery{Log: "log"})
	require.NoError(t, err)
	require.Equal(t, []Entry{{1, []byte("1")}, {2, []byte("2")}, {3, []byte("3")}}, es.Items)
	n, err := s.Usage(ctx, space(1))
	require.NoError(t, err)
	require.Equal(t, int64(len("k")+1+len("log")+3*(1+EntryOverhead)), n)
}

func TestCancelledCommitTellsTheTruth(t *testing.T) {
	g := newGate()
	s := openTest(t, t.TempDir(), Options{beforeWrite: g.hold})
	begun, cancelBegun := context.WithCancel(ctx)
	waitingCtx, cancelWaiting := context.WithCancel(ctx)

	var b Batch
	b.Put(space(1), "begun", []byte("v"), 0)
	one := make(chan answer, 1)
	go func() {
		res, err := s.Commit(begun, &b)
		one <- answer{res, err}
	}()
	<-g.arrived
	two := start(t, s, waitingCtx, 1, func(b *Batch) { b.Put(space(1), "waiting", []byte("v"), 0) })
	three := start(t, s, ctx, 2, func(b *Batch) { b.Put(space(1), "behind", []byte("v"), 0) })

	cancelWaiting()
	a := <-two
	require.ErrorIs(t, a.err, context.Canceled)
	require.ErrorContains(t, a.err, "nothing was applied")
	cancelBegun()
	g.open <- struct{}{}
	a = <-one
	require.NoError(t, a.err, "it had begun, so the outcome is told")
	require.Len(t, a.res.Versions, 1)
	require.Equal(t, 1, <-g.arrived)
	g.open <- struct{}{}
	require.NoError(t, (<-three).err)
	for key, there := range map[string]bool{"begun": true, "waiting": false, "behind": true} {
		v, err := s.Get(ctx, space(1), key)
		require.NoError(t, err)
		require.Equal(t, there, v.Version != 0, key)
	}
}

func TestCloseWaitsForCommitsUnderWay(t *testing.T) {
	g := newGate()
	dir := t.TempDir()
	s := openTest(t, dir, Options{beforeWrite: g.hold})
	one := start(t, s, ctx, 0, func(b *Batch) { b.Put(space(1), "one", nil, 0) })
	<-g.arrived
	two := start(t, s, ctx, 1, func(b *Batch) { b.Put(space(1), "two", nil, 0) })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	require.Eventually(t, func() bool {
		_, err := tryCommit(s, func(b *Batch) { b.MaxSpaceBytes = -1 }) // never enters the queue
		require.ErrorIs(t, err, ErrInvalid)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.closing
	}, 10*time.Second, 100*time.Microsecond)
	_, err := tryCommit(s, func(b *Batch) { b.Put(space(1), "three", nil, 0) })
	require.ErrorIs(t, err, ErrClosed)
	g.open <- struct{}{}
	require.NoError(t, (<-one).err)
	<-g.arrived
	g.open <- struct{}{}
	require.NoError(t, (<-two).err)
	require.NoError(t, <-closed)

	s = openTest(t, dir, Options{})
	page, err := s.List(ctx, space(1), ListQuery{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
}

// TestManyWritersAndReaders: writers write to their own logs, to a common log, and to one counter for which they
// compete by version; readers see each batch completely.
func TestManyWritersAndReaders(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	const writers, each = 8, 25
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				es, err := s.ReadLog(ctx, space(0), LogQuery{Log: "common", Reverse: true, Limit: 3})
				assert.NoError(t, err)
				r, err := s.Record(ctx, "last", []byte("common"))
				assert.NoError(t, err)
				var recorded int64
				_, _ = fmt.Sscan(string(r), &recorded)
				assert.GreaterOrEqual(t, recorded, es.Last, "read later, so it is not older")
			}
		})
	}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				for {
					v, err := s.Get(ctx, space(0), "counter")
					assert.NoError(t, err)
					var n int
					_, _ = fmt.Sscan(string(v.Data), &n)
					res, err := tryCommit(s, func(b *Batch) {
						b.Put(space(0), "counter", fmt.Append(nil, n+1), v.Version)
						b.Append(space(0), "common", fmt.Append(nil, n+1))
						b.PutRecord("last", []byte("common"), fmt.Append(nil, n+1))
						b.Append(space(byte(w+1)), "own", fmt.Append(nil, i))
					})
					if errors.Is(err, ErrConflict) {
						continue
					}
					if !assert.NoError(t, err) {
						return
					}
					assert.Equal(t, []int64{int64(n + 1), int64(i + 1)}, res.Seqs)
					break
				}
			}
		})
	}
	writing.Wait()
	close(done)
	wg.Wait()
	last, err := s.LastSeq(ctx, space(0), "common")
	require.NoError(t, err)
	require.Equal(t, int64(writers*each), last)
}

func TestFullFileFailsTheCommitAndNotTheStore(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MaxFileBytes: 256 << 10, Durability: DurabilityPower})
	mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", []byte("small"), 0) })
	var err error
	for range 10 {
		_, err = tryCommit(s, func(b *Batch) {
			b.Append(space(1), "log", make([]byte, 300<<10))
			b.PutRecord("t", []byte("r"), []byte("v"))
		})
		require.ErrorIs(t, err, ErrUnavailable)
		require.NotErrorIs(t, err, ErrUncertain)
		require.ErrorContains(t, err, "maximum size")
		require.ErrorContains(t, err, s.path)
	}
	r, readErr := s.Record(ctx, "t", []byte("r"))
	require.NoError(t, readErr)
	require.Nil(t, r)
	res := mustCommit(t, s, func(b *Batch) { b.Append(space(1), "log", []byte("fits")) })
	require.Equal(t, []int64{1}, res.Seqs)
	require.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	require.True(t, abi.AsError(err).Retryable)
}

func TestFailureAfterTheLastWriteIsUncertain(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", nil, 0) })
	tx, err := s.begin(false)
	require.NoError(t, err)
	id := tx.ID()
	require.NoError(t, tx.Rollback())

	err = s.commitError(id, syscall.EIO) // readers see transaction id, so only its sync can have failed
	require.ErrorIs(t, err, ErrUncertain)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, syscall.EIO)
	err = s.commitError(id+1, syscall.EIO)
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrUncertain)
}

func TestProcessDurabilitySyncsOnceAnInterval(t *testing.T) {
	timers := make(chan chan time.Time, 10)
	after := func(d time.Duration) <-chan time.Time {
		require.Equal(t, 3*time.Second, d)
		c := make(chan time.Time)
		timers <- c
		return c
	}
	s := openTest(t, t.TempDir(), Options{Durability: DurabilityProcess, SyncEvery: 3 * time.Second, After: after})
	put := func() { mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", nil, AnyVersion) }) }
	put()
	timer := <-timers
	put()
	require.Empty(t, timers, "one timer for all commits until it fires")
	timer <- time.Time{}
	put()
	<-timers
	require.NoError(t, s.Close())
	require.False(t, s.unsynced, "Close syncs the rest")
}

func TestPowerDurabilityNeedsNoTimer(t *testing.T) {
	after := func(time.Duration) <-chan time.Time { panic("not needed") }
	s := openTest(t, t.TempDir(), Options{Durability: DurabilityPower, After: after})
	mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", nil, 0) })
}

func TestErrorsAreTheContractsErrors(t *testing.T) {
	for kind, want := range map[error]abi.Code{
		ErrConflict: abi.CodeConflict, ErrQuota: abi.CodeTooLarge, ErrInvalid: abi.CodeInvalidArgument,
		ErrUnavailable: abi.CodeUnavailable, ErrUncertain: abi.CodeUnavailable, ErrClosed: abi.CodeUnavailable,
		ErrDamaged: abi.CodeUnavailable,
		ErrOwned:   abi.CodeUnavailable, ErrSchema: abi.CodeUnavailable, ErrFolder: abi.CodeUnavailable,
		ErrDatabase: abi.CodeUnavailable, ErrServed: abi.CodeUnavailable, ErrLockLost: abi.CodeUnavailable,
	} {
		err := fmt.Errorf("wrapped: %w", &Error{Kind: kind, Message: "what", Hint: "do"})
		require.Equal(t, want, abi.CodeOf(err), kind)
		require.ErrorIs(t, err, kind)
		require.Equal(t, want == abi.CodeUnavailable, errors.Is(err, ErrUnavailable), kind)
		require.Equal(t, "do", abi.AsError(err).Hint)
		require.ErrorIs(t, abi.AsError(err), kind, "the cause is kept")
		mayPass := slices.Contains([]error{ErrUnavailable, ErrUncertain, ErrOwned, ErrServed, ErrLockLost}, kind)
		require.Equal(t, mayPass, abi.AsError(err).Retryable, kind)
	}
	require.EqualError(t, &Error{Kind: ErrFolder, Message: "what", Hint: "do"}, "state: what; do")
}
