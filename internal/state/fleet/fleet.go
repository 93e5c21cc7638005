package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/internal/state"
)

// TableTurns holds one record for each scope that was ever written.
const TableTurns state.Table = "turns"

// Session names one session of one host. The zero value is nobody's.
type Session [16]byte

// Sessions knows which hosts live.
type Sessions interface {
	// Self is the session of this host. It changes when the host had to begin a new one.
	Self() Session
	// End ends another host's session if its time is over: then left is 0, and none of its commits can happen any more.
	// Otherwise left is how long it lives at least when it is not renewed.
	End(ctx context.Context, s Session) (left time.Duration, err error)
}

// Fleet gives out turns. It is safe for concurrent use.
type Fleet struct {
	store    state.Store
	sessions Sessions
}

// New makes the Fleet of a store. Sessions are nil for a store that one process owns.
func New(store state.Store, sessions Sessions) *Fleet {
	return &Fleet{store: store, sessions: sessions}
}

// Ref names a record.
type Ref struct {
	Table state.Table
	Key   []byte
}

// How long Begin waits before it looks at a held turn again: at first, and at most.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Begin waits until no live host has the turn of a scope, and returns what it needs to take it. Nothing is written yet.
// Within one host, callers see to it that one operation at a time begins for a scope.
//
// In:     the scope's key, 1 byte to state.MaxName; facts are records that the operation depends on.
// Out:    Turn.Facts has their values, nil for an absent one.
// Errors: the store's; the context's when it ended while another host had the turn.
func (f *Fleet) Begin(ctx context.Context, scope []byte, facts ...Ref) (*Turn, error) {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		t, err := f.read(ctx, scope, facts)
		if err != nil || f.sessions == nil {
			return t, err
		}
		if t.was.holder == (Session{}) || t.was.holder == t.self {
			return t, nil
		}
		left, err := f.sessions.End(ctx, t.was.holder)
		if err != nil {
			return nil, err
		}
		if left == 0 {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("fleet: waiting for the turn of a scope, which host session %x has: %w", t.was.holder,
				context.Cause(ctx))
		case <-time.After(min(wait, left)):
		}
	}
}

func (f *Fleet) read(ctx context.Context, scope []byte, facts []Ref) (*Turn, error) {
	t := &Turn{scope: slices.Clone(scope), refs: facts, alone: f.sessions == nil}
	for _, ref := range facts {
		value, err := f.store.Record(ctx, ref.Table, ref.Key)
		if err != nil {
			return nil, err
		}
		t.Facts = append(t.Facts, value)
	}
	if t.alone {
		return t, nil
	}
	t.self = f.sessions.Self()
	stored, err := f.store.Record(ctx, TableTurns, scope)
	if err != nil {
		return nil, err
	}
	t.stored = stored
	t.was, err = decode(stored)
	return t, err
}

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
		return h, &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("the record of a scope's turn has %d bytes, want "+
			"%d", len(stored), len(h.holder)+8), Hint: "restore the database from a backup"}
	}
	h.holder = Session(stored)
	h.epoch = binary.BigEndian.Uint64(stored[len(h.holder):])
	return h, nil
}

// Turn is one operation's turn of a scope. It is used by one goroutine.
type Turn struct {
	// Facts are the values of the records that Begin was asked for.
	Facts [][]byte

	alone  bool
	scope  []byte
	refs   []Ref
	self   Session
	stored []byte // the turn's record as it was found
	was    holding
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

// Release adds to a batch, the last one of the operation, that the turn is still this operation's and free from then on.
func (t *Turn) Release(b *state.Batch) {
	if t.alone {
		return
	}
	t.Hold(b)
	b.PutRecord(TableTurns, t.scope, holding{Session{}, t.Epoch()}.encode())
}

// Moved tells whether a batch was refused because the turn, or a fact that it depends on, is not what it was. Nothing
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
