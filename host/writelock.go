package host

import (
	"bytes"
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// A scope is written by one operation at a time. Its write lock is a lock of this process and, where hosts share the
// store, a turn among them (package fleet). What several hosts change about a write is here alone: the lock is taken in
// the write's first commit, is lost if another host takes over, and knows whether the write may start anew.

// writeLock is a lock that an operation has.
type writeLock struct {
	turn  *fleet.Turn
	local chan struct{}
	// sending are the ids of the events that the holder sends. late is set when a call of the holder left after this
	// host's session had ended (cluster.go).
	sending []string
	late    bool
}

// lockWhen says when, and for what, a lock is taken among hosts.
type lockWhen int

const (
	// withFirstCommit: to write. Before the first commit nothing is sent that changes the backend.
	withFirstCommit lockWhen = iota
	// atOnce: to write, in a commit of its own.
	atOnce
	// toRead: in a commit of its own, by an operation that only keeps writes out.
	toRead
	// besideWrites: in a commit of its own, for another key than that of the scope's writes: the scope's record belongs
	// to the holder of the write lock.
	besideWrites
)

// Whether more commits follow under a lock. The last one frees it among hosts.
const (
	moreFollow = false
	lastCommit = true
)

// errBecameReadOnly: another host made the scope or the slot read-only before the write had its lock.
var errBecameReadOnly = errors.New("the slot or the scope became read-only")

// What the key of a scope's lock for work ends with, and that of its lock for calls.
const (
	workKey = 'w'
	callKey = 'c'
)

// lockScope waits until no other write of a scope runs, at this host or another one, and learns how the scope is now. A
// write was admitted before. unlock follows.
//
// Errors: timeout (busy) if ctx ends first; errBecameReadOnly; those of the store.
func (s *Slot) lockScope(ctx context.Context, p *Provider, sc *scopeState, op string, when lockWhen) (l *writeLock,
	err error) {
	ctx, span := s.host.part(ctx, "turn")
	defer func() { span.End(string(abi.CodeOf(err))) }()
	return s.lock(ctx, p, sc, sc.writing, sc.key[:], op, when)
}

// lockWork waits until no other operation that yields the scope runs, at this host or another one. It is taken before
// the write lock. unlock follows.
func (s *Slot) lockWork(ctx context.Context, p *Provider, sc *scopeState, op string) (*writeLock, error) {
	return s.lock(ctx, p, sc, sc.working, append(bytes.Clone(sc.key[:]), workKey), op, besideWrites)
}

func (s *Slot) lock(ctx context.Context, p *Provider, sc *scopeState, local chan struct{}, key []byte, op string,
	when lockWhen) (*writeLock, error) {
	if err := acquire(ctx, local, op); err != nil {
		return nil, err
	}
	turn, err := s.lockAmongHosts(ctx, p, sc, key, op, when)
	if err != nil {
		<-local
		return nil, err
	}
	return &writeLock{turn: turn, local: local}, nil
}

// lockCall takes the scope's lock for a native call that is not a read, of an operation that is not a write: so other
// hosts see that the call is under way, and the call does not leave once they have raised the wall. An operation
// without a scope takes the slot's. Where one process owns the store the wall alone counts the call.
func (o *operation) lockCall(ctx context.Context) (unlock func(), err error) {
	s := o.slot
	if !s.host.fleet.Shared() {
		return func() {}, nil
	}
	local, key := s.host.calling, o.scope.wallKey()
	if o.scope != nil {
		local = o.scope.calling
	}
	l, err := s.lock(ctx, o.provider, o.scope, local, append(key[:], callKey), o.Op, besideWrites)
	if err != nil {
		return nil, err
	}
	before := o.lock
	o.lock = l // the call is a late write if this one is lost
	return func() {
		o.lock = before
		l.unlock(ctx)
	}, nil
}

// unlock frees the lock.
func (l *writeLock) unlock(ctx context.Context) {
	l.turn.Leave(context.WithoutCancel(ctx))
	<-l.local
}

// commit commits a batch under the lock. The guest may have changed the backend, so the caller cannot cancel it.
func (l *writeLock) commit(ctx context.Context, b *state.Batch, last bool) error {
	return stateError(l.turn.Commit(context.WithoutCancel(ctx), b, last))
}

// anew reports whether the operation may start anew: its first commit was refused, and so nothing was written.
func (l *writeLock) anew() bool { return l.turn.Anew() }

// written reports whether the operation has committed something under the lock.
func (l *writeLock) written() bool { return l.turn.Written() }

// alive returns an error if this host's session may have ended, so that another host may have the lock. An operation
// without a lock (nil) does not depend on the session.
//
// Errors: unavailable.
func (l *writeLock) alive() error {
	if l == nil {
		return nil
	}
	return stateError(l.turn.Alive())
}

// overtaken reports whether another host has written in the scope since the lock was asked for, while it was not taken
// by a commit yet: then the write may start anew.
func (l *writeLock) overtaken(ctx context.Context) (bool, error) {
	overtaken, err := l.turn.Overtaken(ctx)
	return overtaken, stateError(err)
}

// lockScope takes the scope's write lock for the operation. unlock follows.
func (o *operation) lockScope(ctx context.Context, sc *scopeState, when lockWhen) (err error) {
	o.lock, err = o.slot.lockScope(ctx, o.provider, sc, o.Op, when)
	return err
}

func (o *operation) unlock(ctx context.Context) {
	o.lock.unlock(ctx)
	o.lock = nil
}

// lockAmongHosts takes the turn of a key of the scope, so that no other host writes, and learns how the scope is now.
func (s *Slot) lockAmongHosts(ctx context.Context, p *Provider, sc *scopeState, key []byte, op string,
	when lockWhen) (*fleet.Turn, error) {
	learn := s.learnUnderLock
	if when == besideWrites {
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

// busy is the error of an operation that did not get its lock in time.
func busy(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return stateError(err)
	}
	e := abi.WrapError(abi.CodeTimeout, "an earlier write of the same scope was still running", err).WithReason("busy")
	e.Operation = op
	return e
}

// unlockElsewhere takes the turn from a host that has ended and frees it. It reports whether the turn is free; false
// when its host lives.
func (s *Slot) unlockElsewhere(ctx context.Context, p *Provider, key []byte) (free bool, err error) {
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
	return h.ledger.EachSent(ctx, space, func(id string, e *delivery.Entry) { delivery.Resent(b, space, id, e, from) })
}
