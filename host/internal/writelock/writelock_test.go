package writelock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// sessions are those of one host; ended has the sessions that are over.
type sessions struct {
	self  fleet.Session
	ended map[fleet.Session]bool
}

func (s sessions) Self() fleet.Session                         { return s.self }
func (s sessions) Hosts(context.Context) ([]fleet.Host, error) { return nil, nil }

func (s sessions) Left() time.Duration {
	if s.ended[s.self] {
		return 0
	}
	return time.Minute
}

func (s sessions) End(_ context.Context, other fleet.Session) (time.Duration, error) {
	if s.ended[other] {
		return 0, nil
	}
	return time.Minute, nil
}

var fact = fleet.Ref{Table: "modes", Key: []byte("slot")}

// pair returns two hosts that share a store. Only the first one's session can end.
func pair(t *testing.T) (store state.Store, a, b *fleet.Fleet, endA func()) {
	store, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	ended := map[fleet.Session]bool{}
	a, b = fleet.New(store, sessions{fleet.Session{1}, ended}), fleet.New(store, sessions{fleet.Session{2}, ended})
	t.Cleanup(func() {
		a.Close()
		b.Close()
		require.NoError(t, store.Close())
	})
	return store, a, b, func() { ended[fleet.Session{1}] = true }
}

func request(when writelock.When) *writelock.Request {
	return &writelock.Request{Op: "record_event", Local: make(writelock.Local, 1), Key: []byte("scope"), When: when,
		Facts: []fleet.Ref{fact}, Learn: func([][]byte) (bool, error) { return false, nil }}
}

// requireFree checks that the lock of this process was released.
func requireFree(t *testing.T, r *writelock.Request) {
	t.Helper()
	require.Empty(t, r.Local)
}

func TestALockIsOfOneOperationOfThisProcess(t *testing.T) {
	store, _, _, _ := pair(t)
	alone := fleet.New(store, nil)
	defer alone.Close()
	r := request(writelock.WithFirstCommit)
	first, err := writelock.Acquire(t.Context(), alone, r)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = writelock.Acquire(ended, alone, r)
	e := abi.AsError(err)
	require.Equal(t, []any{abi.CodeTimeout, "busy", "record_event"}, []any{e.Code, e.Reason, e.Operation})
	first.Unlock(t.Context())
	requireFree(t, r)
}

// TestWhatWasReadWithALockIsGoneAfterItsFirstCommit: the commit may have changed it. So is what a host that inherits
// from an ended one has read.
func TestWhatWasReadWithALockIsGoneAfterItsFirstCommit(t *testing.T) {
	_, a, b, endA := pair(t)
	r := request(writelock.WithFirstCommit)
	r.Ahead = []fleet.Ref{{Table: "ledger", Key: []byte("e")}, {Table: "ledger", Key: []byte("absent")}}
	first, err := writelock.Acquire(t.Context(), a, r)
	require.NoError(t, err)
	require.Equal(t, [][]byte{nil, nil}, first.Ahead())
	var put state.Batch
	put.PutRecord("ledger", []byte("e"), []byte("sent"))
	require.NoError(t, first.Commit(t.Context(), &put, writelock.LastCommit))
	require.Nil(t, first.Ahead())
	first.Unlock(t.Context())

	second, err := writelock.Acquire(t.Context(), a, r)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("sent"), nil}, second.Ahead())
	require.NoError(t, second.Commit(t.Context(), new(state.Batch), writelock.MoreFollow))
	require.Nil(t, second.Ahead())

	endA()
	r = request(writelock.WithFirstCommit)
	r.Ahead = []fleet.Ref{{Table: "ledger", Key: []byte("e")}}
	r.Inherit = func(_ context.Context, b *state.Batch) error {
		b.PutRecord("ledger", []byte("e"), []byte("as if sent now"))
		return nil
	}
	heir, err := writelock.Acquire(t.Context(), b, r)
	require.NoError(t, err)
	require.Nil(t, heir.Ahead(), "it has changed the entry since")
	heir.Unlock(t.Context())
}

func TestALockIsOfOneHost(t *testing.T) {
	_, a, b, endA := pair(t)
	mine, err := writelock.Acquire(t.Context(), a, request(writelock.AtOnce))
	require.NoError(t, err)
	require.True(t, mine.Written())
	require.NoError(t, mine.Alive())

	free, err := writelock.TakeOver(t.Context(), b, []byte("scope"), nil)
	require.NoError(t, err)
	require.False(t, free, "its host lives")
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r := request(writelock.WithFirstCommit)
	_, err = writelock.Acquire(soon, b, r)
	require.Equal(t, abi.CodeTimeout, abi.CodeOf(err))
	requireFree(t, r)

	endA()
	require.Equal(t, abi.CodeUnavailable, abi.CodeOf(mine.Alive()))
	inherited := 0
	r.Inherit = func(_ context.Context, b *state.Batch) error {
		inherited++
		b.PutRecord("ledger", []byte("e"), []byte("as if sent now"))
		return nil
	}
	theirs, err := writelock.Acquire(t.Context(), b, r)
	require.NoError(t, err)
	require.Equal(t, 1, inherited)
	require.True(t, theirs.Written(), "what it inherits is committed before the operation begins")

	err = mine.Commit(t.Context(), new(state.Batch), writelock.LastCommit)
	require.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	require.False(t, mine.Anew(), "it has written before")
	theirs.Unlock(t.Context())
	requireFree(t, r)
	free, err = writelock.TakeOver(t.Context(), b, []byte("scope"), nil)
	require.NoError(t, err)
	require.True(t, free)
}

func TestTakeOverCommitsWhatIsInherited(t *testing.T) {
	store, a, b, endA := pair(t)
	_, err := writelock.Acquire(t.Context(), a, request(writelock.AtOnce))
	require.NoError(t, err)
	endA()
	free, err := writelock.TakeOver(t.Context(), b, []byte("scope"), func(_ context.Context, batch *state.Batch) error {
		batch.PutRecord("ledger", []byte("e"), []byte("sent"))
		return nil
	})
	require.NoError(t, err)
	require.True(t, free)
	kept, err := store.Record(t.Context(), "ledger", []byte("e"))
	require.NoError(t, err)
	require.Equal(t, "sent", string(kept))
}

func TestAWriteStartsAnewOnlyBeforeItsFirstCommit(t *testing.T) {
	store, a, _, _ := pair(t)
	raise := func(mode string) {
		var b state.Batch
		b.PutRecord(fact.Table, fact.Key, []byte(mode))
		_, err := store.Commit(t.Context(), &b)
		require.NoError(t, err)
	}
	lock, err := writelock.Acquire(t.Context(), a, request(writelock.WithFirstCommit))
	require.NoError(t, err)
	require.False(t, lock.Written())
	raise("read-only")
	require.Error(t, lock.Commit(t.Context(), new(state.Batch), writelock.MoreFollow))
	require.True(t, lock.Anew())
	lock.Unlock(t.Context())

	lock, err = writelock.Acquire(t.Context(), a, request(writelock.WithFirstCommit))
	require.NoError(t, err)
	require.NoError(t, lock.Commit(t.Context(), new(state.Batch), writelock.MoreFollow))
	raise("writable")
	require.NoError(t, lock.Commit(t.Context(), new(state.Batch), writelock.LastCommit), "the facts bind the first commit")
	require.False(t, lock.Anew())
	lock.Unlock(t.Context())
}

func TestWhatIsLearnedDecides(t *testing.T) {
	_, a, _, _ := pair(t)
	damaged := errors.New("damaged")
	for name, c := range map[string]struct {
		when     writelock.When
		readOnly bool
		err      error
		want     error
	}{
		"a write of a scope that became read-only": {writelock.WithFirstCommit, true, nil, writelock.ErrBecameReadOnly},
		"at once":                     {writelock.AtOnce, true, nil, writelock.ErrBecameReadOnly},
		"a reader does not mind":      {writelock.ToRead, true, nil, nil},
		"facts that cannot be read":   {writelock.ToRead, false, damaged, damaged},
		"a write of a writable scope": {writelock.WithFirstCommit, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(c.when)
			r.Learn = func(values [][]byte) (bool, error) {
				require.Len(t, values, 1)
				return c.readOnly, c.err
			}
			lock, err := writelock.Acquire(t.Context(), a, r)
			require.ErrorIs(t, err, c.want)
			if err == nil {
				lock.Unlock(t.Context())
			}
			requireFree(t, r)
		})
	}
}
