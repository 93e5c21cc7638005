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

// holding is the value of a turn's record.
type holding struct {
	holder Session
	epoch  uint64
}

func (h holding) encode() []byte { return binary.BigEndian.AppendUint64(h.holder[:], h.epoch) }

// decode reads a record; an absent one is free in epoch 0.
func decode(stored []byte) (holding, error) {
	if stored == nil {
		return holding{}, nil
	}
	var h holding
	if len(stored) != len(h.holder)+8 {
		return h, &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("the record of a scope's turn has %d bytes, "+
			"want %d", len(stored), len(h.holder)+8), Hint: "restore the database from a backup"}
	}
	h.holder = Session(stored)
	h.epoch = binary.BigEndian.Uint64(stored[len(h.holder):])
	return h, nil
}

// Turn is one operation's turn of a scope. It is used by one goroutine.
type Turn struct {
	// Facts are the values of the records that Begin was asked for.
	Facts [][]byte

	fleet  *Fleet
	alone  bool
	scope  []byte
	refs   []Ref
	self   Session
	stored []byte // the turn's record as it was found
	was    holding
	// taken: a commit has taken it. moved: the first commit was refused. ended: the last commit was made.
	taken, moved, ended bool
}

// Epoch is the number of this turn among all turns of the scope, from 1; 0 where one process owns the store.
func (t *Turn) Epoch() uint64 {
	if t.alone {
		return 0
	}
	return t.was.epoch + 1
}

// From is the session that held the turn and has ended without releasing it. False when there is none.
func (t *Turn) From() (Session, bool) {
	return t.was.holder, t.was.holder != Session{} && t.was.holder != t.self
}

// Once adds to a batch, the only one of the operation, that it has the turn.
func (t *Turn) Once(b *state.Batch) { t.take(b, Session{}) }

// Take adds to a batch the taking of the turn.
func (t *Turn) Take(b *state.Batch) { t.take(b, t.self) }

func (t *Turn) take(b *state.Batch, holder Session) {
	if t.alone {
		return
	}
	for i, ref := range t.refs {
		b.ExpectRecord(ref.Table, ref.Key, t.Facts[i])
	}
	b.ExpectRecord(TableTurns, t.scope, t.stored)
	b.PutRecord(TableTurns, t.scope, holding{holder, t.Epoch()}.encode())
}

// Hold adds to a batch the precondition that the turn, taken before, is still this operation's.
func (t *Turn) Hold(b *state.Batch) {
	if !t.alone {
		b.ExpectRecord(TableTurns, t.scope, holding{t.self, t.Epoch()}.encode())
	}
}

// Release adds to a batch, the last one of the operation, that the turn is still this operation's and free from then
// on.
func (t *Turn) Release(b *state.Batch) {
	if t.alone {
		return
	}
	t.Hold(b)
	b.PutRecord(TableTurns, t.scope, holding{Session{}, t.Epoch()}.encode())
}

// Moved reports whether a batch was refused because the turn, or a fact that it depends on, is not what it was. Nothing
// was written. Before the turn was taken, the operation begins anew; after it, another host has taken over.
func (t *Turn) Moved(err error) bool {
	var e *state.Error
	if !errors.As(err, &e) || e.Conflict == nil {
		return false
	}
	if e.Conflict.Table == TableTurns && e.Conflict.Key == string(t.scope) {
		return true
	}
	return slices.ContainsFunc(t.refs, func(ref Ref) bool {
		return ref.Table == e.Conflict.Table && string(ref.Key) == e.Conflict.Key
	})
}

// Commit commits a batch of the operation. The first one takes the turn; the last one frees it, or does both when it is
// the only one. Without Facts and turns, where one process owns the store, it is the store's Commit.
//
// Errors: the store's; state.ErrTurn when the turn or a fact is not what it was. Then nothing was written, and Anew
// says whether the operation may begin anew.
func (t *Turn) Commit(ctx context.Context, b *state.Batch, last bool) error {
	switch {
	case t.alone && b.Len() == 0:
		return nil
	case t.alone:
	case t.ended || t.moved:
		return t.refused(errors.New("the turn has ended"))
	case !t.taken && last:
		t.Once(b)
	case !t.taken:
		t.Take(b)
	case last:
		t.Release(b)
	default:
		t.Hold(b)
	}
	err := t.fleet.Commit(ctx, b)
	if _, inherited := t.From(); err == nil && inherited && !t.taken {
		t.fleet.counts.takeOvers.Add(1)
	}
	switch {
	case t.alone:
		return err
	case err == nil:
		t.taken, t.ended = !last, last
	case errors.Is(err, state.ErrUncertain):
		t.taken = t.taken || !last
	case t.Moved(err):
		t.moved = !t.taken
		t.ended, t.taken = true, false
		return t.refused(err)
	}
	return err
}

func (t *Turn) refused(cause error) error {
	return &state.Error{Kind: state.ErrTurn, Cause: cause, Message: "the turn of the scope was lost: another host has " +
		"taken it over, or the mode has changed", Hint: "try again"}
}

// Anew reports whether the operation may begin anew: its first commit was refused, and so nothing was written.
func (t *Turn) Anew() bool { return t != nil && t.moved }

// Written reports whether the operation has committed something in its turn.
func (t *Turn) Written() bool { return t.taken || t.ended && !t.moved }

// Overtaken reports whether another host has written in the scope since Begin, while this operation has not taken the
// turn yet: what it has read may be of two moments. Then it may begin anew, as Anew says.
func (t *Turn) Overtaken(ctx context.Context) (bool, error) {
	if t == nil || t.alone || t.taken || t.ended {
		return false, nil
	}
	now, err := t.fleet.read(ctx, t.scope, nil)
	if err != nil || bytes.Equal(now.stored, t.stored) {
		return false, err
	}
	t.moved, t.ended = true, true
	return true, nil
}

// Alive returns state.ErrTurn when this host's session may have ended, so that another host may have the turn. It is
// for the moment before something is sent that no store can refuse.
func (t *Turn) Alive() error {
	if t == nil || t.alone {
		return nil
	}
	if t.fleet.sessions.Self() != t.self || t.fleet.sessions.Left() <= 0 {
		return t.refused(errors.New("the session of this host has ended"))
	}
	return nil
}

// Leave frees the turn if it is held. When the store cannot be reached it goes on trying, for as long as this host's
// session is the one that holds it.
func (t *Turn) Leave(ctx context.Context) {
	if t == nil || t.alone || !t.taken {
		return
	}
	t.taken, t.ended = false, true
	if t.release(ctx) {
		return
	}
	f := t.fleet
	f.retry(func(ctx context.Context) bool { return f.sessions.Self() != t.self || t.release(ctx) })
}

// release reports whether the turn is free, or somebody else's.
func (t *Turn) release(ctx context.Context) bool {
	var b state.Batch
	t.Release(&b)
	err := t.fleet.Commit(ctx, &b)
	return err == nil || t.Moved(err)
}
