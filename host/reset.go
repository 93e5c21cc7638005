package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
)

// resetPause is how long the host waits before it asks a reset in progress again.
const resetPause = 200 * time.Millisecond

// resetScope is ResetScope. The old generation's state and ledger go in the transaction that starts the new one: an interrupted reset can be asked for
// again, and a receipt of the old generation suppresses nothing in the new.
func (s *Slot) resetScope(ctx context.Context, scope abi.MemoryScope) (receipt *abi.ResetReceipt, err error) {
	if err := scope.Validate(); err != nil {
		return nil, inOperation(abi.OpResetScope, err)
	}
	o, err := s.begin(abi.OpResetScope)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return nil, err
	}
	if !s.mode.beginWrite() {
		return nil, abi.NewError(abi.CodeReadOnly, "the slot is read-only: nothing is reset, and no native call was made").WithHint("set the mode first: memhost mode write")
	}
	defer s.mode.endWrite()
	o.admitted = true
	if err = sc.takeTurn(ctx, abi.OpResetScope); err != nil {
		return nil, err
	}
	defer sc.endTurn()
	if err = o.at(ctx, sc, nil); err != nil {
		return nil, err
	}
	if receipt, err = o.resetGuest(ctx); err != nil {
		return nil, err
	}
	receipt.OldGeneration, receipt.NewGeneration = o.call.generation, o.call.generation
	if receipt.Status == abi.ResetDone {
		if err = o.nextGeneration(ctx, sc); err != nil {
			return nil, err
		}
		receipt.NewGeneration++
	}
	receipt.Trace = o.trace(receipt.Trace)
	return receipt, nil
}

// resetGuest enters reset_scope until it no longer answers in_progress, or the operation's time is over.
func (o *operation) resetGuest(ctx context.Context) (*abi.ResetReceipt, error) {
	patience := o.slot.host.patience(o.provider.deadline(abi.OpResetScope))
	for {
		receipt := new(abi.ResetReceipt)
		if err := o.enter(ctx, new(abi.Empty), receipt); err != nil {
			return nil, err
		}
		switch receipt.Status {
		case abi.ResetDone, abi.ResetIncomplete, abi.ResetFailed:
			return receipt, nil
		case abi.ResetInProgress:
			if patience.left() < resetPause {
				return receipt, nil
			}
		default:
			return nil, o.provider.breach(abi.OpResetScope, "status "+string(receipt.Status)+" is none of done, in_progress, incomplete, failed")
		}
		if patience.pause(ctx, resetPause); ctx.Err() != nil {
			return receipt, nil
		}
	}
}

// nextGeneration erases what the host keeps of the generation and starts the next one.
func (o *operation) nextGeneration(ctx context.Context, sc *scopeState) error {
	h, batch := o.slot.host, &o.call.state.batch
	ctx = context.WithoutCancel(ctx)
	batch.DeletePrefix(o.call.state.space, "")
	if err := h.forgetLedger(ctx, batch, o.call.state.space); err != nil {
		return err
	}
	next := o.call.generation + 1
	sc.record.NativeScope = nil // the old generation's
	if err := sc.save(batch, next); err != nil {
		return err
	}
	if _, err := h.store.Commit(ctx, batch); err != nil {
		return stateError(err)
	}
	sc.generation.Store(next)
	o.slot.manifestChanged(ctx)
	return nil
}
