package fleet_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// registry implements the sessions of many hosts. A session lasts until the test ends it.
type registry struct {
	mu   sync.Mutex
	dead map[fleet.Session]bool
}

type member struct {
	*registry
	self fleet.Session
}

func (m member) Self() fleet.Session { return m.self }

func (m member) Left() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead[m.self] {
		return 0
	}
	return time.Second
}

func (m member) Hosts(context.Context) ([]fleet.Host, error) {
	return []fleet.Host{{Session: m.self}}, nil
}

func (m member) End(_ context.Context, s fleet.Session) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead[s] {
		return 0, nil
	}
	return time.Second, nil
}

func (r *registry) kill(s fleet.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead[s] = true
}

func newStore(t *testing.T) state.Store {
	s, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

var (
	scope = []byte("scope")
	space = state.Space{1}
	mode  = fleet.Ref{Table: "modes", Key: []byte("slot")}
)

func commit(s state.Store, add ...func(*state.Batch)) error {
	var b state.Batch
	for _, a := range add {
		a(&b)
	}
	_, err := s.Commit(context.Background(), &b)
	return err
}

func appendEntry(text string) func(*state.Batch) {
	return func(b *state.Batch) { b.Append(space, "log", []byte(text)) }
}

func TestHostsWriteAScopeOneAfterAnother(t *testing.T) {
	store := newStore(t)
	hosts := &registry{dead: map[fleet.Session]bool{}}
	const members, each = 5, 20
	var wg sync.WaitGroup
	inside := 0 // only guarded by the lock, so that the race detector detects a lock held by two hosts
	for m := range members {
		f := fleet.New(store, member{hosts, fleet.Session{byte(m + 1)}})
		wg.Go(func() {
			for done := 0; done < each; {
				lock, err := f.Begin(context.Background(), scope)
				if !assert.NoError(t, err) {
					return
				}
				if err := commit(store, lock.Take); err != nil {
					assert.True(t, lock.Moved(err), "%v", err)
					continue
				}
				inside++
				assert.NoError(t, commit(store, lock.Hold, appendEntry("begun")))
				assert.NoError(t, commit(store, lock.Release, appendEntry("ended")))
				done++
			}
		})
	}
	wg.Wait()
	require.Equal(t, members*each, inside)
	page, err := store.ReadLog(t.Context(), space, state.LogQuery{Log: "log"})
	require.NoError(t, err)
	require.Len(t, page.Items, 2*members*each)
	for i, e := range page.Items {
		require.Equal(t, []string{"begun", "ended"}[i%2], string(e.Data))
	}
	lock, err := fleet.New(store, member{hosts, fleet.Session{99}}).Begin(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, uint64(members*each+1), lock.Epoch())
}

func TestAHostThatLostItsTurnCommitsNothingMore(t *testing.T) {
	store := newStore(t)
	hosts := &registry{dead: map[fleet.Session]bool{}}
	a, b := member{hosts, fleet.Session{1}}, member{hosts, fleet.Session{2}}
	paused, err := fleet.New(store, a).Begin(t.Context(), scope)
	require.NoError(t, err)
	require.NoError(t, commit(store, paused.Take))
	within, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond) // between two checks of the lock
	defer cancel()
	_, err = fleet.New(store, b).Begin(within, scope)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a live host has the lock")
	require.ErrorContains(t, err, "waiting for the lock")

	hosts.kill(a.self)
	next, err := fleet.New(store, b).Begin(t.Context(), scope)
	require.NoError(t, err)
	from, taken := next.From()
	require.True(t, taken)
	require.Equal(t, a.self, from)
	require.NoError(t, commit(store, paused.Hold, appendEntry("before the take-over")),
		"nobody has taken the lock yet; a real store refuses a session that has ended")
	require.NoError(t, commit(store, next.Take))
	for _, late := range []func(*state.Batch){paused.Hold, paused.Release, paused.Take, paused.Once} {
		err := commit(store, late, appendEntry("late"))
		require.ErrorIs(t, err, state.ErrConflict)
		require.True(t, paused.Moved(err))
	}
	require.NoError(t, commit(store, next.Release, appendEntry("next")))
	last, err := store.LastSeq(t.Context(), space, "log")
	require.NoError(t, err)
	require.Equal(t, int64(2), last)
	again, err := fleet.New(store, b).Begin(t.Context(), scope)
	require.NoError(t, err)
	_, taken = again.From()
	require.False(t, taken, "the lock was released")
}

func TestATurnIsNotTakenWhenAFactHasChanged(t *testing.T) {
	store := newStore(t)
	f := fleet.New(store, member{&registry{}, fleet.Session{1}})
	for i, take := range []func(*fleet.Lock) func(*state.Batch){
		func(t *fleet.Lock) func(*state.Batch) { return t.Take },
		func(t *fleet.Lock) func(*state.Batch) { return t.Once },
	} {
		lock, err := f.Begin(t.Context(), scope, mode)
		require.NoError(t, err)
		setMode := func(b *state.Batch) { b.PutRecord(mode.Table, mode.Key, []byte(strconv.Itoa(i))) }
		require.NoError(t, commit(store, setMode))
		err = commit(store, take(lock), appendEntry("behind the wall"))
		require.ErrorIs(t, err, state.ErrConflict)
		require.True(t, lock.Moved(err))

		lock, err = f.Begin(t.Context(), scope, mode)
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte(strconv.Itoa(i))}, lock.Facts)
		require.NoError(t, commit(store, lock.Once))
	}
	lock, err := f.Begin(t.Context(), scope, mode)
	require.NoError(t, err)
	require.False(t, lock.Moved(commit(store, func(b *state.Batch) { b.ExpectRecord("other", scope, []byte("x")) })),
		"the operation's own precondition")
}

func TestOneProcessNeedsNoRecords(t *testing.T) {
	store := newStore(t)
	require.NoError(t, commit(store, func(b *state.Batch) { b.PutRecord(mode.Table, mode.Key, []byte("open")) }))
	lock, err := fleet.New(store, nil).Begin(t.Context(), scope, mode)
	require.NoError(t, err)
	require.Nil(t, lock.Facts)
	facts, err := fleet.New(store, nil).Read(t.Context(), mode)
	require.NoError(t, err)
	require.Nil(t, facts)
	var b state.Batch
	for _, add := range []func(*state.Batch){lock.Take, lock.Hold, lock.Release, lock.Once} {
		add(&b)
	}
	require.Zero(t, b.Len())
	require.Zero(t, lock.Epoch())
}

func TestADamagedTurnIsNotTaken(t *testing.T) {
	store := newStore(t)
	require.NoError(t, commit(store, func(b *state.Batch) { b.PutRecord(fleet.TableLocks, scope, []byte("x")) }))
	_, err := fleet.New(store, member{&registry{}, fleet.Session{1}}).Begin(t.Context(), scope)
	require.ErrorIs(t, err, state.ErrDamaged)
}

// TestCounts: one commit by a host that dies while it holds the lock, one wait and take-over by another host, and a
// refused batch.
func TestCounts(t *testing.T) {
	store := newStore(t)
	hosts := &registry{dead: map[fleet.Session]bool{}}
	first := fleet.New(store, member{hosts, fleet.Session{1}})
	second := fleet.New(store, member{hosts, fleet.Session{2}})
	lock, err := first.Begin(t.Context(), scope)
	require.NoError(t, err)
	require.NoError(t, lock.Commit(t.Context(), new(state.Batch), false))
	require.Equal(t, fleet.Counts{Commits: 1}, first.Counts())
	held, err := second.CountLocks(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, held)

	time.AfterFunc(20*time.Millisecond, func() { hosts.kill(fleet.Session{1}) })
	other, err := second.Begin(t.Context(), scope)
	require.NoError(t, err)
	require.NoError(t, other.Commit(t.Context(), new(state.Batch), false))
	c := second.Counts()
	require.EqualValues(t, 1, c.Waits)
	require.Positive(t, c.Waited)
	require.EqualValues(t, 1, c.TakeOvers)
	require.ErrorIs(t, lock.Commit(t.Context(), new(state.Batch), true), state.ErrLockLost)
	require.Equal(t, fleet.Counts{Commits: 1, Refused: 1}, first.Counts())
}
