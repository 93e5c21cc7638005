package host

import (
	"context"
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
	if !o.admit(sc) {
		return false, o.at(ctx, sc)
	}
	defer o.done(sc)
	yields := slices.Contains(o.provider.module.Manifest.YieldsScope, o.Op)
	if yields { // of the operations that let writes pass one runs at a time: what one works off the next need not
		if err := sc.takeWork(ctx, o.Op); err != nil {
			return true, err
		}
		defer sc.endWork()
	}
	if err := o.changeInTurn(ctx, sc, yields, in, out); err != nil || !yields {
		return true, err
	}
	// Other writes of the scope pass while it runs. What it wrote counts if no other write of the same key came first
	// and the generation is still the same.
	if err := o.enter(ctx, in, out); err != nil {
		return true, err
	}
	if err := sc.takeTurn(context.WithoutCancel(ctx), o.Op); err != nil {
		return true, err
	}
	defer sc.endTurn()
	if now := sc.generation.Load(); now != o.generation {
		return true, abi.NewError(abi.CodeConflict,
			fmt.Sprintf("the scope was reset meanwhile: it is in generation %d, this began in %d", now,
				o.generation)).WithReason("generation")
	}
	return true, o.commit(ctx)
}

// changeInTurn makes the scope ready, and unless the operation yields the scope enters it and commits, while no other
// write of the scope runs.
func (o *operation) changeInTurn(ctx context.Context, sc *scopeState, yields bool, in abi.Encodable,
	out abi.Decodable) error {
	if err := sc.takeTurn(ctx, o.Op); err != nil {
		return err
	}
	defer sc.endTurn()
	if err := o.slot.ensureSetUp(ctx, o.provider, sc); err != nil {
		return err
	}
	if err := o.at(ctx, sc); err != nil || yields {
		return err
	}
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	return o.commit(ctx)
}
