package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/memhost/memhost/internal/state"
)

// holding is the value of a lock's record.
type holding struct {
	holder Session
	epoch  uint64
}

func (h holding) encode() []byte { return binary.BigEndian.AppendUint64(h.holder[:], h.epoch) }

// decode decodes a record; an absent one means free in epoch 0.
func decode(stored []byte) (holding, error) {
	if stored == nil {
		return holding{}, nil
	}
	var h holding
	if len(stored) != len(h.holder)+8 {
		return h, &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("the record of a scope's lock has %d bytes, "+
			"want %d", len(stored), len(h.holder)+8), Hint: "restore the database from a backup"}
	}
	h.holder = Session(stored)
	h.epoch = binary.BigEndian.Uint64(stored[len(h.holder):])
	return h, nil
}

// Lock is one operation's lock on a scope. Only one goroutine may use it.
type Lock struct {
	// Facts are the values of the records that were passed to Begin, Ahead those of BeginAhead's further ones.
	Facts, Ahead [][]byte

	fleet  *Fleet
	alone  bool
	scope  []byte
	refs   []Ref
	self   Session
	stored []byte // the lock's record as it was read
	was    holding
	// taken means that a commit has taken it, moved that the first commit was rejected, ended that the last commit was
	// made.
	taken, moved, ended bool
}

// Epoch is the number of this lock among all locks of the scope, from 1; 0 if one process owns the store.
func (l *Lock) Epoch() uint64 {
	if l.alone {
		return 0
	}
	return l.was.epoch + 1
}

// From is the session that held the lock and ended without releasing it. It returns false if there is none.
func (l *Lock) From() (Session, bool) {
	return l.was.holder, l.was.holder != Session{} && l.was.holder != l.self
}

// Once makes a batch, the only one of the operation, take and release the lock.
func (l *Lock) Once(b *state.Batch) { l.take(b, Session{}) }

// Take makes a batch take the lock.
func (l *Lock) Take(b *state.Batch) { l.take(b, l.self) }

func (l *Lock) take(b *state.Batch, holder Session) {
	if l.alone {
		return
	}
	for i, ref := range l.refs {
		b.ExpectRecord(ref.Table, ref.Key, l.Facts[i])
	}
	b.ExpectRecord(TableLocks, l.scope, l.stored)
	b.PutRecord(TableLocks, l.scope, holding{holder, l.Epoch()}.encode())
}

// Hold adds to a batch the precondition that this operation still holds the lock.
func (l *Lock) Hold(b *state.Batch) {
	if !l.alone {
		b.ExpectRecord(TableLocks, l.scope, holding{l.self, l.Epoch()}.encode())
	}
}

// Release makes a batch, the last one of the operation, release the lock, on the condition that this operation still
// holds it.
func (l *Lock) Release(b *state.Batch) {
	if l.alone {
		return
	}
	l.Hold(b)
	b.PutRecord(TableLocks, l.scope, holding{Session{}, l.Epoch()}.encode())
}

// Moved reports whether a batch was rejected because the lock, or a fact that it depends on, has changed. Nothing was
// written. If the lock had not been taken yet, the operation starts over; otherwise another host has taken over.
func (l *Lock) Moved(err error) bool {
	var e *state.Error
	if !errors.As(err, &e) || e.Conflict == nil {
		return false
	}
	if e.Conflict.Table == TableLocks && e.Conflict.Key == string(l.scope) {
		return true
	}
	return slices.ContainsFunc(l.refs, func(ref Ref) bool {
		return ref.Table == e.Conflict.Table && string(ref.Key) == e.Conflict.Key
	})
}

// Commit commits a batch of the operation. The first one takes the lock; the last one releases it; a single one does
// both. If one process owns the store, it is just the store's Commit.
//
// Errors: those of the store; state.ErrLockLost if the lock or a fact has changed. Then nothing was written, and Anew
// reports whether the operation may start over.
func (l *Lock) Commit(ctx context.Context, b *state.Batch, last bool) error {
	switch {
	case l.alone && b.Len() == 0:
		return nil
	case l.alone:
	case l.ended || l.moved:
		return l.refused(errors.New("the lock was freed"))
	case !l.taken && last:
		l.Once(b)
	case !l.taken:
		l.Take(b)
	case last:
		l.Release(b)
	default:
		l.Hold(b)
	}
	err := l.fleet.Commit(ctx, b)
	if _, inherited := l.From(); err == nil && inherited && !l.taken {
		l.fleet.counts.takeOvers.Add(1)
	}
	switch {
	case l.alone:
		return err
	case err == nil:
		l.taken, l.ended = !last, last
	case errors.Is(err, state.ErrUncertain):
		l.taken = l.taken || !last
	case l.Moved(err):
		l.moved = !l.taken
		l.ended, l.taken = true, false
		return l.refused(err)
	}
	return err
}

func (l *Lock) refused(cause error) error {
	return &state.Error{Kind: state.ErrLockLost, Cause: cause, Message: "the lock of the scope was lost: another host has " +
		"taken it over, or the mode has changed", Hint: "try again"}
}

// Anew reports whether the operation may start over: its first commit was rejected, and so nothing was written.
func (l *Lock) Anew() bool { return l != nil && l.moved }

// Written reports whether the operation has committed something under its lock.
func (l *Lock) Written() bool { return l.taken || l.ended && !l.moved }

// Overtaken reports whether another host has written in the scope since Begin, while this operation has not taken the
// lock yet: its reads may then be inconsistent. The operation may then start over, as Anew reports.
func (l *Lock) Overtaken(ctx context.Context) (bool, error) {
	if l == nil || l.alone || l.taken || l.ended {
		return false, nil
	}
	now, err := l.fleet.read(ctx, l.scope, nil, nil)
	if err != nil || bytes.Equal(now.stored, l.stored) {
		return false, err
	}
	l.moved, l.ended = true, true
	return true, nil
}

// Alive returns state.ErrLockLost if this host's session may have ended, so that another host may have the lock. Call
// it before sending something that no store can reject.
func (l *Lock) Alive() error {
	if l == nil || l.alone {
		return nil
	}
	if l.fleet.sessions.Self() != l.self || l.fleet.sessions.Left() <= 0 {
		return l.refused(errors.New("the session of this host has ended"))
	}
	return nil
}

// Unlock releases the lock if it is held. If the store cannot be reached it keeps trying, as long as this host's
// session holds the lock.
func (l *Lock) Unlock(ctx context.Context) {
	if l == nil || l.alone || !l.taken {
		return
	}
	l.taken, l.ended = false, true
	if l.release(ctx) {
		return
	}
	f := l.fleet
	f.retry(func(ctx context.Context) bool { return f.sessions.Self() != l.self || l.release(ctx) })
}

// release reports whether the lock is free, or another host's.
func (l *Lock) release(ctx context.Context) bool {
	var b state.Batch
	l.Release(&b)
	err := l.fleet.Commit(ctx, &b)
	return err == nil || l.Moved(err)
}
