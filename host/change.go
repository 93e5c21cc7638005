package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
)

// NativeMutation implements Contract.
func (s *Slot) NativeMutation(ctx context.Context, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return run(ctx, s, abi.OpNativeMutation, r,
		func(ctx context.Context, o *operation, receipt *abi.MutationReceipt) error {
			admitted, err := o.change(ctx, r.Scope, r, receipt)
			if err != nil {
				return explainNative(err, o.provider.mutations, r.Name)
			}
			if !admitted {
				receipt.Status = string(abi.StatusSkippedReadOnly)
			}
			receipt.Trace = o.trace(receipt.Trace)
			return nil
		})
}

// ApplyFeedback implements Contract.
func (s *Slot) ApplyFeedback(ctx context.Context, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return run(ctx, s, abi.OpApplyFeedback, r,
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
			}
			receipt.FeedbackID, receipt.Trace = r.FeedbackID, o.trace(receipt.Trace)
			return nil
		})
}

// change enters an operation that may change a scope, in its turn, and commits the state that the guest wrote. admitted
// is false for one that read-only keeps out.
func (o *operation) change(ctx context.Context, scope abi.MemoryScope, in abi.Encodable,
	out abi.Decodable) (admitted bool, err error) {
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
	if slices.Contains(o.provider.module.Manifest.YieldsScope, o.Op) {
		err = o.changeYielding(ctx, sc, in, out)
	} else {
		err = o.changeInTurn(ctx, sc, in, out)
	}
	if errors.Is(err, errBecameReadOnly) {
		o.permit = nil
		return false, o.at(ctx, sc)
	}
	return true, err
}

// changeInTurn makes the scope ready, enters the operation and commits, while no other write of the scope runs.
func (o *operation) changeInTurn(ctx context.Context, sc *scopeState, in abi.Encodable, out abi.Decodable) error {
	if err := o.readyInTurn(ctx, sc); err != nil {
		return err
	}
	defer o.endTurn(ctx, sc)
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	return o.commitLast(ctx)
}

// inTurn runs a write in the scope's turn, or refuses it while the scope is read-only.
func (o *operation) inTurn(ctx context.Context, sc *scopeState, refusal string, write func() error) error {
	permit, err := o.admit(ctx, sc)
	if err != nil {
		return err
	}
	if permit == nil {
		return o.slot.refusal(refusal)
	}
	defer permit.Release()
	err = o.takeTurn(ctx, sc, atOnce)
	if errors.Is(err, errBecameReadOnly) {
		return o.slot.refusal(refusal)
	}
	if err != nil {
		return err
	}
	defer o.endTurn(ctx, sc)
	return write()
}

// readyInTurn takes the scope's turn and makes the scope ready. endTurn follows where it did.
func (o *operation) readyInTurn(ctx context.Context, sc *scopeState) (err error) {
	if err = o.takeTurn(ctx, sc, atOnce); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			o.endTurn(ctx, sc)
		}
	}()
	if err = o.slot.ensureSetUp(ctx, o.provider, sc, o.permit, o.turn); err != nil {
		return err
	}
	return o.at(ctx, sc)
}

// changeYielding makes the scope ready in its turn and enters the operation outside of it: other writes of the scope
// pass while it runs. What it wrote counts if no other write of the same key came first and the generation is still the
// same. Of the operations that let writes pass one runs at a time: what one works off the next need not.
func (o *operation) changeYielding(ctx context.Context, sc *scopeState, in abi.Encodable, out abi.Decodable) error {
	work, err := o.slot.takeWork(ctx, o.provider, sc, o.Op)
	if err != nil {
		return err
	}
	defer o.slot.endWork(ctx, sc, work)
	if err := o.readyInTurn(ctx, sc); err != nil {
		return err
	}
	o.endTurn(ctx, sc)
	o.turn = work
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	began := o.generation
	if err := o.takeTurn(context.WithoutCancel(ctx), sc, withFirstCommit); err != nil {
		return err
	}
	defer o.endTurn(ctx, sc)
	if now := sc.generation.Load(); now != began {
		return abi.NewError(abi.CodeConflict,
			fmt.Sprintf("the scope was reset meanwhile: it is in generation %d, this began in %d", now,
				began)).WithReason("generation")
	}
	return o.commitLast(ctx)
}
