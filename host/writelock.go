package host

import (
	"bytes"
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// The locks of a scope: for writes, for operations that yield the scope, and for native calls that are not reads.
// internal/writelock explains how a lock works, agreed.go what its holder learns from other hosts.

// The suffixes of the keys of a scope's lock for work and of its lock for calls.
const (
	workKey = 'w'
	callKey = 'c'
)

// lockScope waits until no other write of the scope is running, at this host or another one, and then reads the scope's
// present record. The write must have been admitted before. The caller must unlock.
//
// In: ahead are records that the write needs soon.
// Errors: those of writelock.Acquire.
func (s *Slot) lockScope(ctx context.Context, p *Provider, sc *scopeState, op string, when writelock.When,
	ahead ...fleet.Ref) (l *writelock.Lock, err error) {
	ctx, span := s.host.part(ctx, "lock")
	defer func() { span.End(string(abi.CodeOf(err))) }()
	r := s.lockRequest(p, sc, op)
	r.Local, r.Key, r.When, r.Ahead = sc.writing, sc.key[:], when, ahead
	r.Learn = func(values [][]byte) (bool, error) { return s.learnUnderLock(p, sc, values) }
	return writelock.Acquire(ctx, s.host.fleet, r)
}

// lockWork waits until no other operation that yields the scope is running, at this host or another one. It is taken
// before the write lock. The caller must unlock.
func (s *Slot) lockWork(ctx context.Context, p *Provider, sc *scopeState, op string) (*writelock.Lock, error) {
	r := s.lockRequest(p, sc, op)
	r.Local, r.Key = sc.working, append(bytes.Clone(sc.key[:]), workKey)
	return writelock.Acquire(ctx, s.host.fleet, r)
}

// lockRequest is a request for one of the scope's other locks. It does not read the scope's record, which belongs to
// the holder of the write lock.
func (s *Slot) lockRequest(p *Provider, sc *scopeState, op string) *writelock.Request {
	r := &writelock.Request{Op: op, When: writelock.AtOnce, Facts: factsOf(sc),
		Learn: func(values [][]byte) (bool, error) { return s.learn(p, sc, values) }}
	if sc != nil {
		r.Inherit = func(ctx context.Context, b *state.Batch) error {
			generation, err := s.host.currentGeneration(ctx, sc)
			if err != nil {
				return err
			}
			return s.host.inherit(ctx, p, sc.key, generation, b)
		}
	}
	return r
}

// lockCall takes the scope's lock for native calls, for a call that is not a read made by an operation that is not a
// write. It shows other hosts that the call is running, and keeps the call from leaving after they have raised the
// wall. An operation without a scope takes the slot's lock. If one process owns the store, counting the call at the
// wall is enough.
func (o *operation) lockCall(ctx context.Context) (unlock func(), err error) {
	s := o.slot
	if !s.host.fleet.Shared() {
		return func() {}, nil
	}
	key := o.scope.wallKey()
	r := s.lockRequest(o.provider, o.scope, o.Op)
	r.Local, r.Key = s.host.calling, append(key[:], callKey)
	if o.scope != nil {
		r.Local = o.scope.calling
	}
	l, err := writelock.Acquire(ctx, s.host.fleet, r)
	if err != nil {
		return nil, err
	}
	before := o.lock
	o.lock = l // losing this lock makes the call a late write
	return func() {
		o.lock = before
		l.Unlock(ctx)
	}, nil
}

// lockScope takes the scope's write lock for the operation. The caller must unlock.
func (o *operation) lockScope(ctx context.Context, sc *scopeState, when writelock.When) (err error) {
	o.lock, err = o.slot.lockScope(ctx, o.provider, sc, o.Op, when)
	return err
}

// lockScopeAhead is lockScope for an operation that records events. What it needs of them comes with the lock, in the
// same round trip (ahead.go).
func (o *operation) lockScopeAhead(ctx context.Context, sc *scopeState, when writelock.When,
	events ...*abi.MemoryEvent) (err error) {
	var refs []fleet.Ref
	o.aheadOf, refs = o.slot.aheadOf(sc, events)
	o.lock, err = o.slot.lockScope(ctx, o.provider, sc, o.Op, when, refs...)
	return err
}

func (o *operation) unlock(ctx context.Context) {
	o.lock.Unlock(ctx)
	o.lock = nil
}

// takeOver releases the lock of a scope that is still held by a host that has ended. free is false while its host
// lives.
func (s *Slot) takeOver(ctx context.Context, p *Provider, key []byte) (free bool, err error) {
	return writelock.TakeOver(ctx, s.host.fleet, key, func(ctx context.Context, b *state.Batch) error {
		record, err := s.host.scopeRecordOf(ctx, scopeKey(key))
		if err != nil || record == nil {
			return err
		}
		return s.host.inherit(ctx, p, scopeKey(key), record.Generation, b)
	})
}

// inherit completes the batch that takes over the lock of a host that has ended. Requests of that host may still arrive
// at the backend: they count as if sent now, with all of the operation's time left.
func (h *Host) inherit(ctx context.Context, p *Provider, sc scopeKey, generation int64, b *state.Batch) error {
	space := generationSpace(sc, generation)
	from := h.now().Add(p.deadline(abi.OpRecordEvent))
	return h.ledger.EachSent(ctx, space, func(id string, e *delivery.Entry) { delivery.Resent(b, space, id, e, from) })
}
