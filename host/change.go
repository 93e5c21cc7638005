package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/writelock"
)

// NativeMutation implements Contract.
func (s *Slot) NativeMutation(ctx context.Context, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return operate(ctx, s, abi.OpNativeMutation, r,
		func(ctx context.Context, o *operation, receipt *abi.MutationReceipt) error {
			admitted, err := o.changeChecked(ctx, r.Scope, r, receipt, func() error {
				return o.provider.mutations.check(r.Name, r.Params)
			})
			if err != nil {
				return o.provider.mutations.explain(err, r.Name)
			}
			if !admitted {
				receipt.Status = string(abi.StatusSkippedReadOnly)
				o.wallSkipped++
			}
			receipt.Trace = o.trace(receipt.Trace)
			return nil
		})
}

// ApplyFeedback implements Contract.
func (s *Slot) ApplyFeedback(ctx context.Context, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return operate(ctx, s, abi.OpApplyFeedback, r,
		func(ctx context.Context, o *operation, receipt *abi.FeedbackReceipt) error {
			if o.provider.has(abi.OpApplyFeedback) && !o.provider.config.Feedback {
				return abi.NewError(abi.CodeUnsupported, "feedback is off").WithReason("feedback_off").
					WithHint("set memory.feedback: true; the run manifest then says feedback_enabled")
			}
			o.forSession(r.SessionID)
			admitted, err := o.change(ctx, r.Scope, r, receipt)
			if err != nil {
				return err
			}
			if !admitted {
				receipt.Status = string(abi.StatusSkippedReadOnly)
				o.wallSkipped++
			}
			receipt.FeedbackID, receipt.Trace = r.FeedbackID, o.trace(receipt.Trace)
			return nil
		})
}

// change runs an operation that may change a scope: it enters the guest under the scope's lock, and commits the state
// that the guest wrote. admitted is false if the scope is read-only.
func (o *operation) change(ctx context.Context, scope abi.MemoryScope, in abi.Encodable,
	out abi.Decodable) (admitted bool, err error) {
	return o.changeChecked(ctx, scope, in, out, func() error { return nil })
}

// changeChecked is change for an operation that is validated after admission: a read-only scope refuses it whatever it
// asks for.
func (o *operation) changeChecked(ctx context.Context, scope abi.MemoryScope, in abi.Encodable, out abi.Decodable,
	check func() error) (admitted bool, err error) {
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return true, err
	}
	if !o.provider.has(o.Op) {
		return true, o.provider.unsupported(o.Op)
	}
	permit, err := o.admit(ctx, sc)
	if err != nil {
		return false, err
	}
	if permit == nil {
		return false, o.at(ctx, sc)
	}
	defer permit.Release()
	if err := check(); err != nil {
		return true, err
	}
	if slices.Contains(o.provider.module.Manifest.YieldsScope, o.Op) {
		err = o.changeYielding(ctx, sc, in, out)
	} else {
		err = o.changeLocked(ctx, sc, in, out)
	}
	if errors.Is(err, writelock.ErrBecameReadOnly) {
		o.permit = nil
		return false, o.at(ctx, sc)
	}
	return true, err
}

// changeLocked makes the scope ready, enters the operation and commits, with the scope's write lock held.
func (o *operation) changeLocked(ctx context.Context, sc *scopeState, in abi.Encodable, out abi.Decodable) error {
	if err := o.lockReady(ctx, sc); err != nil {
		return err
	}
	defer o.unlock(ctx)
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	return o.commitLast(ctx)
}

// withLock runs a write under the scope's lock, or refuses it while the scope is read-only.
func (o *operation) withLock(ctx context.Context, sc *scopeState, refusal string, write func() error) error {
	permit, err := o.admit(ctx, sc)
	if err != nil {
		return err
	}
	if permit == nil {
		return o.slot.refusal(refusal)
	}
	defer permit.Release()
	err = o.lockScope(ctx, sc, writelock.AtOnce)
	if errors.Is(err, writelock.ErrBecameReadOnly) {
		return o.slot.refusal(refusal)
	}
	if err != nil {
		return err
	}
	defer o.unlock(ctx)
	return write()
}

// lockReady takes the scope's write lock and makes the scope ready. After success the caller must call unlock.
func (o *operation) lockReady(ctx context.Context, sc *scopeState) (err error) {
	if err = o.lockScope(ctx, sc, writelock.AtOnce); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			o.unlock(ctx)
		}
	}()
	if err = o.slot.ensureSetUp(ctx, o.provider, sc, o.permit, o.lock); err != nil {
		return err
	}
	return o.at(ctx, sc)
}

// changeYielding makes the scope ready under its lock and then enters the operation without the lock, so that other
// writes of the scope can run. Its own writes count only if no other write changed the same key and the generation is
// still the same. Only one such operation runs per scope at a time, so that two do not do the same work.
func (o *operation) changeYielding(ctx context.Context, sc *scopeState, in abi.Encodable, out abi.Decodable) error {
	work, err := o.slot.lockWork(ctx, o.provider, sc, o.Op)
	if err != nil {
		return err
	}
	defer work.Unlock(ctx)
	if err := o.lockReady(ctx, sc); err != nil {
		return err
	}
	o.unlock(ctx)
	o.lock = work
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	began := o.generation
	if err := o.lockScope(context.WithoutCancel(ctx), sc, writelock.WithFirstCommit); err != nil {
		return err
	}
	defer o.unlock(ctx)
	if now := sc.generation.Load(); now != began {
		return abi.NewError(abi.CodeConflict,
			fmt.Sprintf("the scope was reset meanwhile: it is in generation %d, this began in %d", now,
				began)).WithReason("generation")
	}
	return o.commitLast(ctx)
}
