package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// ensureSetUp runs setup_scope once per scope, generation and loaded provider, before an admitted write. The caller
// holds the scope's write lock.
func (s *Slot) ensureSetUp(ctx context.Context, p *Provider, sc *scopeState, permit *wall.Permit,
	lock *writelock.Lock) error {
	generation, err := s.host.currentGeneration(ctx, sc)
	if err != nil {
		return err
	}
	if done, ok := p.setUp.Load(sc.key); ok && done == generation {
		return nil
	}
	_, err = s.setUp(ctx, p, sc, permit, lock)
	return err
}

// repeatable marks a set-up error as retryable if the backend failed (5xx). Set-up is idempotent, and the write that
// waits for it was not sent, so both can be retried.
func repeatable(err error) error {
	e := *abi.AsError(err)
	if e.Native != nil && e.Native.Status != nil && *e.Native.Status >= 500 {
		e.Retryable = true
	}
	return &e
}

// setUp enters setup_scope and stores the result. Without a permit it only checks. The caller holds the scope's write
// lock, which may be nil if setUp only checks.
func (s *Slot) setUp(ctx context.Context, p *Provider, sc *scopeState, permit *wall.Permit, lock *writelock.Lock) (
	receipt *abi.SetupReceipt, err error) {
	ctx, o := s.beginOn(ctx, p, abi.OpSetupScope)
	defer o.end(&err)
	o.permit, o.lock = permit, lock
	if permit != nil && s.host.fleet.Shared() { // two hosts must not set up one scope at the backend at the same time
		o.OnWrite = func() error { return o.keep(ctx, new(state.Batch)) }
	}
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	receipt = new(abi.SetupReceipt)
	if err = o.enter(ctx, new(abi.Empty), receipt); err != nil {
		return nil, repeatable(err)
	}
	if !receipt.Ready {
		return nil, abi.NewError(abi.CodeUnavailable,
			fmt.Sprintf("provider %s could not make the scope ready: %v", p.name,
				receipt.Warnings)).WithReason("scope_not_ready")
	}
	if permit != nil {
		o.noteExisted(&o.state.Batch, receipt)
		if err = sc.keepSetup(&o.state.Batch, receipt, o.generation, s.host.stamp()); err != nil {
			return nil, err
		}
		if err = o.commit(ctx); err != nil {
			return nil, err
		}
		p.setUp.Store(sc.key, o.generation)
		s.manifestChanged(ctx)
	}
	receipt.Trace = o.trace(receipt.Trace)
	return receipt, nil
}

// SetupScope implements Contract. While read-only it only checks.
func (s *Slot) SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error) {
	return perform(ctx, s, abi.OpSetupScope, &scope, func(ctx context.Context) (*abi.SetupReceipt, error) {
		if err := scope.Validate(); err != nil {
			return nil, inOperation(abi.OpSetupScope, err)
		}
		v, err := s.take(abi.OpSetupScope)
		if err != nil {
			return nil, err
		}
		defer v.provider.release()
		sc, err := v.provider.scopeOf(scope)
		if err != nil {
			return nil, inOperation(abi.OpSetupScope, err)
		}
		permit, err := s.admit(ctx, v.provider, sc)
		if err != nil {
			return nil, inOperation(abi.OpSetupScope, err)
		}
		if permit != nil {
			defer permit.Release()
			lock, err := s.lockScope(ctx, v.provider, sc, abi.OpSetupScope, writelock.AtOnce)
			if err == nil {
				defer lock.Unlock(ctx)
				return s.setUp(ctx, v.provider, sc, permit, lock)
			}
			if !errors.Is(err, writelock.ErrBecameReadOnly) {
				return nil, inOperation(abi.OpSetupScope, err)
			}
		}
		if err := sc.writing.Acquire(ctx, abi.OpSetupScope); err != nil {
			return nil, err
		}
		defer sc.writing.Release()
		return s.setUp(ctx, v.provider, sc, nil, nil)
	})
}

// keepSetup writes the scope's record.
func (sc *scopeState) keepSetup(b *state.Batch, r *abi.SetupReceipt, generation int64, now string) error {
	native, err := json.Marshal(r.NativeScope)
	if err != nil {
		return err
	}
	sc.record.NativeScope = native
	if sc.record.Since == "" {
		sc.record.Since = now
	}
	return sc.save(b, generation)
}
