package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Hosts that share a store agree on turns of scopes and on facts, by package fleet. Where one process owns the store,
// Look reads nothing, and a turn adds nothing to a batch: what this process knows is right.

// tableShared holds facts about the slot: sharedForgetful -> 1 byte, sharedServing -> servedRecord.
const tableShared state.Table = "shared"

// sharedForgetful is 1 once anything was forgotten, else 0.
const sharedForgetful = "forgetful"

// The places of the facts in factsOf.
const (
	factMode = iota
	factForgetful
	factServing
	factScopeMode // from here on those of a scope
	factScope
)

// factsOf are the records that every operation depends on, and those that every operation of a scope does.
func factsOf(sc *scopeState) []fleet.Ref {
	refs := []fleet.Ref{{Table: tableModes, Key: []byte(modeOfSlot)}, {Table: tableShared, Key: []byte(sharedForgetful)},
		servingRef()}
	if sc == nil {
		return refs
	}
	return append(refs, fleet.Ref{Table: tableModes, Key: modeKey(sc)}, fleet.Ref{Table: tableScopes, Key: sc.key[:]})
}

// ensureFacts writes the facts that all scopes share unless they are there.
func (s *Slot) ensureFacts(ctx context.Context) error {
	mode, err := json.Marshal(s.wall.Mode(wall.Slot))
	if err != nil {
		return err
	}
	forgetful := []byte{0}
	if s.host.forgetful.Load() {
		forgetful[0] = 1
	}
	refs := factsOf(nil)
	if err := s.host.fleet.Ensure(ctx, refs[factMode], mode); err != nil {
		return stateError(err)
	}
	return stateError(s.host.fleet.Ensure(ctx, refs[factForgetful], forgetful))
}

// look learns what other hosts may have changed of a scope, or for nil of the slot, for an operation of a provider.
//
// Errors: unavailable (provider_changed) when another provider serves; those of the store.
func (s *Slot) look(ctx context.Context, p *Provider, sc *scopeState) (readOnly bool, err error) {
	values, err := s.host.fleet.Look(ctx, factsOf(sc)...)
	if err != nil || values == nil {
		return false, stateError(err)
	}
	return s.learn(p, sc, values)
}

// learn takes over facts as they were read, and reports whether they make the scope, or for nil the slot, read-only.
func (s *Slot) learn(p *Provider, sc *scopeState, values [][]byte) (readOnly bool, err error) {
	if values == nil {
		return false, nil
	}
	if p.served != nil && !bytes.Equal(p.served, values[factServing]) { // one that is being tried serves nobody
		return false, errProviderChanged()
	}
	if bytes.Equal(values[factForgetful], []byte{1}) {
		s.host.forgetful.Store(true)
	}
	slot, err := parseMode(values[factMode])
	if err != nil {
		return false, err
	}
	modes := map[wall.Scope]wall.Mode{wall.Slot: slot}
	if sc != nil {
		scope, err := parseMode(values[factScopeMode])
		if err != nil {
			return false, err
		}
		modes[sc.wallKey()] = scope
		generation := int64(1)
		if values[factScope] != nil {
			record, err := parseScope(values[factScope])
			if err != nil {
				return false, err
			}
			generation = record.Generation
		}
		sc.raise(generation)
	}
	s.wall.Set(modes)
	return slot.ReadOnly || modes[sc.wallKey()].ReadOnly, nil
}

// raise notes a generation that was read, unless a newer one is known. Generations only grow.
func (s *scopeState) raise(generation int64) {
	for {
		known := s.generation.Load()
		if known >= generation || s.generation.CompareAndSwap(known, generation) {
			return
		}
	}
}

// errBecameReadOnly: another host made the scope or the slot read-only before the write had its turn.
var errBecameReadOnly = errors.New("the slot or the scope became read-only")

// taking says when and for what a turn is taken.
type taking int

const (
	// withFirstCommit: to write. Before the first commit nothing is sent that changes the backend.
	withFirstCommit taking = iota
	// atOnce: to write, in a commit of its own.
	atOnce
	// toRead: in a commit of its own, by an operation that only keeps writes out.
	toRead
	// toWork: in a commit of its own, beside whoever has the scope's turn: the scope's record is theirs. A turn for calls
	// is taken so, too.
	toWork
)

// takeTurn waits until no other write of a scope runs, at this host or another one, and learns how the scope is now.
// The write was admitted. endTurn follows.
//
// Errors: timeout (busy) when ctx ends first; errBecameReadOnly; those of the store.
func (s *Slot) takeTurn(ctx context.Context, p *Provider, sc *scopeState, op string, when taking) (turn *fleet.Turn,
	err error) {
	ctx, span := s.host.part(ctx, "turn")
	defer func() { span.End(string(abi.CodeOf(err))) }()
	if err := acquire(ctx, sc.turn, op); err != nil {
		return nil, err
	}
	turn, err = s.takeFleetTurn(ctx, p, sc, sc.key[:], op, when)
	if err != nil {
		<-sc.turn
		return nil, err
	}
	return turn, nil
}

// endTurn frees what takeTurn took.
func (s *Slot) endTurn(ctx context.Context, sc *scopeState, turn *fleet.Turn) {
	turn.Leave(context.WithoutCancel(ctx))
	<-sc.turn
}

// takeWork waits until no other operation that yields the scope runs, at this host or another one. It is taken before
// the turn. endWork follows.
func (s *Slot) takeWork(ctx context.Context, p *Provider, sc *scopeState, op string) (*fleet.Turn, error) {
	if err := acquire(ctx, sc.work, op); err != nil {
		return nil, err
	}
	turn, err := s.takeFleetTurn(ctx, p, sc, append(bytes.Clone(sc.key[:]), workTurn), op, toWork)
	if err != nil {
		<-sc.work
		return nil, err
	}
	return turn, nil
}

// What the key of a scope's turn for work ends with, and that of its turn for calls.
const (
	workTurn = 'w'
	callTurn = 'c'
)

// takeCall takes the scope's turn for a native call that is not a read, of an operation that is not a write: so other
// hosts see that the call is under way, and the call does not leave once they have raised the wall. An operation
// without a scope takes the slot's. Where one process owns the store the wall alone counts the call.
func (o *operation) takeCall(ctx context.Context) (leave func(), err error) {
	s := o.slot
	if !s.host.fleet.Shared() {
		return func() {}, nil
	}
	calls, key := s.host.calls, o.scope.wallKey()
	if o.scope != nil {
		calls = o.scope.calls
	}
	if err := acquire(ctx, calls, o.Op); err != nil {
		return nil, err
	}
	turn, err := s.takeFleetTurn(ctx, o.provider, o.scope, append(key[:], callTurn), o.Op, toWork)
	if err != nil {
		<-calls
		return nil, err
	}
	before := o.turn
	o.turn = turn // the call is a late write if this one is lost
	return func() {
		o.turn = before
		turn.Leave(context.WithoutCancel(ctx))
		<-calls
	}, nil
}

func (s *Slot) endWork(ctx context.Context, sc *scopeState, turn *fleet.Turn) {
	turn.Leave(context.WithoutCancel(ctx))
	<-sc.work
}

// takeTurn takes the scope's turn for the operation. endTurn follows.
func (o *operation) takeTurn(ctx context.Context, sc *scopeState, when taking) (err error) {
	o.turn, err = o.slot.takeTurn(ctx, o.provider, sc, o.Op, when)
	return err
}

func (o *operation) endTurn(ctx context.Context, sc *scopeState) {
	o.slot.endTurn(ctx, sc, o.turn)
	o.turn = nil
}

func (s *Slot) takeFleetTurn(ctx context.Context, p *Provider, sc *scopeState, key []byte, op string,
	when taking) (*fleet.Turn, error) {
	learn := s.learnInTurn
	if when == toWork {
		learn = s.learn
	}
	for {
		turn, err := s.host.fleet.Begin(ctx, key, factsOf(sc)...)
		if err != nil {
			return nil, busy(op, err)
		}
		readOnly, err := learn(p, sc, turn.Facts)
		switch {
		case err != nil:
			return nil, err
		case readOnly && when != toRead:
			return nil, errBecameReadOnly
		}
		_, inherited := turn.From()
		if when == withFirstCommit && !inherited {
			return turn, nil
		}
		var b state.Batch
		if inherited && sc != nil {
			generation, err := s.host.currentGeneration(ctx, sc)
			if err != nil {
				return nil, err
			}
			if err := s.host.inherit(ctx, p, sc.key, generation, &b); err != nil {
				return nil, err
			}
		}
		err = turn.Commit(context.WithoutCancel(ctx), &b, false)
		switch {
		case err == nil:
			return turn, nil
		case !turn.Anew():
			turn.Leave(context.WithoutCancel(ctx))
			return nil, stateError(err)
		}
	}
}

// busy is the error of an operation that did not get its turn in time.
func busy(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return stateError(err)
	}
	e := abi.WrapError(abi.CodeTimeout, "an earlier write of the same scope was still running", err).WithReason("busy")
	e.Operation = op
	return e
}

// learnInTurn is learn for a write that holds the scope's turn in this process: it learns the scope's record too.
func (s *Slot) learnInTurn(p *Provider, sc *scopeState, values [][]byte) (readOnly bool, err error) {
	if values == nil {
		return false, nil
	}
	record := new(scopeRecord)
	if stored := values[factScope]; stored != nil {
		if record, err = parseScope(stored); err != nil {
			return false, err
		}
	}
	sc.reading.Lock()
	sc.record.NativeScope, sc.record.Since, sc.record.Erasing = record.NativeScope, record.Since, record.Erasing
	sc.reading.Unlock()
	return s.learn(p, sc, values)
}

// endTurnElsewhere takes the turn from a host that has ended and frees it. It reports whether the turn is free; false
// when its host lives.
func (s *Slot) endTurnElsewhere(ctx context.Context, p *Provider, key []byte) (free bool, err error) {
	turn, err := s.host.fleet.TryBegin(ctx, key)
	if err != nil || turn == nil {
		return false, stateError(err)
	}
	if _, inherited := turn.From(); !inherited {
		return true, nil
	}
	record, err := s.host.scopeRecordOf(ctx, scopeKey(key))
	if err != nil {
		return false, err
	}
	var b state.Batch
	if record != nil {
		if err := s.host.inherit(ctx, p, scopeKey(key), record.Generation, &b); err != nil {
			return false, err
		}
	}
	err = turn.Commit(context.WithoutCancel(ctx), &b, true)
	return err == nil, ignoreMoved(turn, err)
}

// ignoreMoved drops the error of a turn that somebody else took first.
func ignoreMoved(turn *fleet.Turn, err error) error {
	if turn.Anew() {
		return nil
	}
	return stateError(err)
}

// inherit adds to the batch that takes over the turn of a host that has ended: what that host had sent may still arrive
// at the backend, as if it had been sent now and had all of the operation's time to get there.
func (h *Host) inherit(ctx context.Context, p *Provider, sc scopeKey, generation int64, b *state.Batch) error {
	space := generationSpace(sc, generation)
	from := h.now().Add(p.deadline(abi.OpRecordEvent))
	return h.eachRecord(ctx, tableUnseen, space[:], func(r state.KeyValue) error {
		id := string(r.Key[len(space):])
		e, err := h.ledgerRecord(ctx, space, id)
		if err != nil || e == nil || e.state != deliverySent {
			return err
		}
		e.sentAt = from
		b.ExpectRecord(tableLedger, ledgerKey(space, id), e.stored)
		b.PutRecord(tableLedger, ledgerKey(space, id), e.encode()) // it stays on the list of what is not seen
		return nil
	})
}

// keep commits a batch of the operation, in the scope's turn where it has one. The guest may have changed the backend,
// so the caller cannot cancel it.
func (o *operation) keep(ctx context.Context, b *state.Batch) error {
	if o.turn == nil {
		return o.slot.host.commit(ctx, b)
	}
	ctx, span := o.slot.host.part(ctx, "commit")
	err := stateError(o.turn.Commit(context.WithoutCancel(ctx), b, o.last))
	span.End(string(abi.CodeOf(err)))
	return err
}
