// Package writelock ensures that a scope is written by one operation at a time.
//
// A Lock is a lock of this process and, if hosts share the store, a lock among them (package fleet). Everything about
// writes that differs with several hosts is in this package: the lock is taken in the write's first commit, is lost if
// another host takes it over, and knows whether the write may start over.
//
// The package knows neither slots nor providers. The functions of a Request receive the records that hosts agree on,
// and handle what is left of a host that has ended.
package writelock

import (
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Lock is a lock that an operation holds. It is used by one goroutine.
type Lock struct {
	// Sending has the ids of the events that the holder sends. Late is set if a native call of the holder left after
	// this host's session had ended.
	Sending []string
	Late    bool

	shared *fleet.Lock
	local  Local
}

// Local is a lock of this process: it contains an element while the lock is held. Create it with capacity 1.
type Local chan struct{}

// When says at what point a lock is taken among hosts, and for what.
type When int

const (
	// WithFirstCommit is for writes. Until the first commit, nothing is sent that changes the backend.
	WithFirstCommit When = iota
	// AtOnce is for writes, in a separate commit.
	AtOnce
	// ToRead is for operations that only exclude writes, in a separate commit.
	ToRead
)

// Whether more commits follow under a lock. The last one releases it among hosts.
const (
	MoreFollow = false
	LastCommit = true
)

// ErrBecameReadOnly means that another host made the scope or the slot read-only before the operation had its lock.
var ErrBecameReadOnly = errors.New("the slot or the scope became read-only")

// Request describes a lock to acquire.
type Request struct {
	// Op names the operation in errors.
	Op    string
	Local Local
	// Key identifies the lock among hosts.
	Key  []byte
	When When
	// Facts are records that hosts agree on. Learn gets their values (nil if one process owns the store), and reports
	// whether they make the scope read-only.
	Facts []fleet.Ref
	Learn func(values [][]byte) (readOnly bool, err error)
	// Ahead are records that the holder needs soon (Lock.Ahead).
	Ahead []fleet.Ref
	// Inherit completes the batch that takes the lock over from a host that has ended.
	Inherit func(ctx context.Context, b *state.Batch) error
}

// Acquire waits until no other operation has the lock, at this host or another one. The caller must call Unlock.
//
// Errors: timeout (busy) if ctx ends first; ErrBecameReadOnly; those of Learn, Inherit and the store.
func Acquire(ctx context.Context, f *fleet.Fleet, r *Request) (*Lock, error) {
	if err := r.Local.Acquire(ctx, r.Op); err != nil {
		return nil, err
	}
	shared, err := acquireShared(ctx, f, r)
	if err != nil {
		<-r.Local
		return nil, err
	}
	return &Lock{shared: shared, local: r.Local}, nil
}

// Acquire waits for the lock of this process.
//
// Errors: timeout (busy) if ctx ends first.
func (l Local) Acquire(ctx context.Context, op string) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return busy(op, context.Cause(ctx))
	}
}

// Release releases the lock of this process.
func (l Local) Release() { <-l }

// acquireShared takes the lock among hosts.
func acquireShared(ctx context.Context, f *fleet.Fleet, r *Request) (*fleet.Lock, error) {
	for {
		lock, err := f.BeginAhead(ctx, r.Key, r.Facts, r.Ahead)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				return nil, busy(r.Op, err)
			}
			return nil, state.ContractError(err)
		}
		readOnly, err := r.Learn(lock.Facts)
		switch {
		case err != nil:
			return nil, err
		case readOnly && r.When != ToRead:
			return nil, ErrBecameReadOnly
		}
		_, inherited := lock.From()
		if r.When == WithFirstCommit && !inherited {
			return lock, nil
		}
		var b state.Batch
		if inherited && r.Inherit != nil {
			if err := r.Inherit(ctx, &b); err != nil {
				return nil, err
			}
		}
		err = lock.Commit(context.WithoutCancel(ctx), &b, MoreFollow)
		switch {
		case err == nil:
			return lock, nil
		case !lock.Anew():
			lock.Unlock(context.WithoutCancel(ctx))
			return nil, state.ContractError(err)
		}
	}
}

// busy is the error for an operation that did not get its lock in time.
func busy(op string, cause error) error {
	e := abi.WrapError(abi.CodeTimeout, "an earlier write of the same scope was still running", cause).WithReason("busy")
	e.Operation = op
	return e
}

// TakeOver releases a lock that is still held by a host that has ended. free is false if that host is alive, or if
// another host took the lock over first.
//
// Errors: those of inherit and of the store.
func TakeOver(ctx context.Context, f *fleet.Fleet, key []byte, inherit func(context.Context, *state.Batch) error) (
	free bool, err error) {
	lock, err := f.TryBegin(ctx, key)
	if err != nil || lock == nil {
		return false, state.ContractError(err)
	}
	if _, inherited := lock.From(); !inherited {
		return true, nil
	}
	var b state.Batch
	if err := inherit(ctx, &b); err != nil {
		return false, err
	}
	err = lock.Commit(context.WithoutCancel(ctx), &b, LastCommit)
	if lock.Anew() {
		return false, nil
	}
	return err == nil, state.ContractError(err)
}

// Ahead returns the values of Request.Ahead, which were read with the lock; nil if one process owns the store, and once
// something was committed under the lock.
func (l *Lock) Ahead() [][]byte {
	if l.shared.Written() {
		return nil
	}
	return l.shared.Ahead
}

// Unlock releases the lock.
func (l *Lock) Unlock(ctx context.Context) {
	l.shared.Unlock(context.WithoutCancel(ctx))
	l.local.Release()
}

// Commit commits a batch under the lock. The guest may have changed the backend, so the caller cannot cancel it.
//
// Errors: those of the store, converted to the contract's.
func (l *Lock) Commit(ctx context.Context, b *state.Batch, last bool) error {
	return state.ContractError(l.shared.Commit(context.WithoutCancel(ctx), b, last))
}

// Anew reports whether the operation may start over: its first commit was refused, and so nothing was written.
func (l *Lock) Anew() bool { return l.shared.Anew() }

// Written reports whether the operation has committed something under the lock.
func (l *Lock) Written() bool { return l.shared.Written() }

// Alive returns an error if this host's session may have ended, so that another host may have the lock. An operation
// without a lock (nil) does not depend on the session.
//
// Errors: unavailable.
func (l *Lock) Alive() error {
	if l == nil {
		return nil
	}
	return state.ContractError(l.shared.Alive())
}

// Overtaken reports whether another host has written under the lock since it was requested, if no commit has taken it
// yet: the operation may then start over.
func (l *Lock) Overtaken(ctx context.Context) (bool, error) {
	overtaken, err := l.shared.Overtaken(ctx)
	return overtaken, state.ContractError(err)
}
