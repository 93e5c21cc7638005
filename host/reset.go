package host

import (
	"context"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// resetPause is how long the host waits before it asks a reset in progress again.
const resetPause = 200 * time.Millisecond

// resetScope is ResetScope. The scope's next generation begins before anything is erased, so that whatever happens no later event enters the old one, and
// no receipt of the old one suppresses anything in the new. What could not be erased is noted: a further reset goes on there, with the same new generation as
// long as nothing was written to it.
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
	if !s.mode.beginWrite(sc.key) {
		return nil, s.mode.refusal("nothing is reset, and no native call was made")
	}
	defer s.mode.endWrite(sc.key)
	o.admitted = true
	if err = sc.takeTurn(ctx, abi.OpResetScope); err != nil {
		return nil, err
	}
	defer sc.endTurn()
	old, err := s.host.nextGeneration(ctx, sc)
	if err != nil {
		return nil, err
	}
	s.manifestChanged(ctx)
	receipt = &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{}, Remains: []string{}, Warnings: []string{}, OldGeneration: old, NewGeneration: sc.generation.Load()}
	patience := s.host.patience(o.provider.deadline(abi.OpResetScope))
	for _, generation := range slices.Clone(sc.record.Erasing) {
		o.atGeneration(sc, generation)
		one, err := o.resetGuest(ctx, patience)
		if err != nil {
			e := *abi.AsError(err)
			e.Hint = joinHints(e.Hint, "the scope goes on in its new generation; reset it again to erase what remains of the old one")
			return nil, &e
		}
		if one.Status == abi.ResetDone {
			if err = o.erased(ctx, sc, generation); err != nil {
				return nil, err
			}
		}
		addReset(receipt, one)
	}
	if receipt.Status != abi.ResetDone {
		receipt.Warnings = append(receipt.Warnings, warnErasing)
	}
	receipt.Trace = o.trace(receipt.Trace)
	s.manifestChanged(ctx)
	return receipt, nil
}

const warnErasing = "reset_unfinished: the old generation is not served any more, but a part of it is still in the backend; reset the scope again to go on"

// addReset adds what one generation's erasure came to. The worst status is the whole's.
func addReset(sum, one *abi.ResetReceipt) {
	order := []abi.ResetStatus{abi.ResetDone, abi.ResetInProgress, abi.ResetIncomplete, abi.ResetFailed}
	if slices.Index(order, one.Status) > slices.Index(order, sum.Status) {
		sum.Status = one.Status
	}
	for kind, n := range one.Removed {
		before, again := sum.Removed[kind]
		switch {
		case !again:
			sum.Removed[kind] = n
		case before == nil || n == nil:
			sum.Removed[kind] = nil
		default:
			total := *before + *n
			sum.Removed[kind] = &total
		}
	}
	sum.Remains, sum.Warnings, sum.Trace = append(sum.Remains, one.Remains...), append(sum.Warnings, one.Warnings...), one.Trace
}

// resetGuest enters reset_scope until it no longer answers in_progress, or the operation's time is over.
func (o *operation) resetGuest(ctx context.Context, patience *patience) (*abi.ResetReceipt, error) {
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
			return nil, o.provider.breach(abi.OpResetScope, "status "+short(string(receipt.Status))+" is none of done, in_progress, incomplete, failed")
		}
		// What the guest noted of its progress is for its next look.
		if err := o.commitState(ctx); err != nil {
			return nil, err
		}
		if patience.pause(ctx, resetPause); ctx.Err() != nil {
			return receipt, nil
		}
	}
}

// nextGeneration lets a scope's next generation begin and puts the present one on the list of those to erase. A generation that an unfinished reset began and
// into which nothing was written since is kept. It returns the newest generation to erase. The caller holds the scope's turn.
func (h *Host) nextGeneration(ctx context.Context, sc *scopeState) (int64, error) {
	current, err := h.currentGeneration(ctx, sc)
	if err != nil {
		return 0, err
	}
	if n := len(sc.record.Erasing); n > 0 {
		untouched, err := h.untouched(ctx, sc.space(current))
		if err != nil || untouched {
			return sc.record.Erasing[n-1], err
		}
	}
	before := sc.record.Erasing
	sc.record.Erasing = append(slices.Clone(before), current)
	sc.record.NativeScope = nil // the old generation's
	var b state.Batch
	if err := sc.save(&b, current+1); err != nil {
		return 0, err
	}
	if _, err := h.store.Commit(context.WithoutCancel(ctx), &b); err != nil {
		sc.record.Erasing = before
		return 0, stateError(err)
	}
	sc.generation.Store(current + 1)
	return current, nil
}

// untouched tells whether nothing was delivered into a generation, nor kept for it.
func (h *Host) untouched(ctx context.Context, space state.Space) (bool, error) {
	records, err := h.store.Records(ctx, tableLedger, space[:], nil, 1)
	if err != nil {
		return false, stateError(err)
	}
	used, err := h.store.Usage(ctx, space)
	if err != nil {
		return false, stateError(err)
	}
	return len(records) == 0 && used == 0, nil
}

// erased drops what the host keeps of a generation that is gone from the backend, together with what the guest wrote last.
func (o *operation) erased(ctx context.Context, sc *scopeState, generation int64) error {
	h, batch := o.slot.host, &o.call.state.batch
	ctx = context.WithoutCancel(ctx)
	batch.DeletePrefix(o.call.state.space, "")
	if err := h.forgetLedger(ctx, batch, o.call.state.space); err != nil {
		return err
	}
	before := sc.record.Erasing
	sc.record.Erasing = slices.DeleteFunc(slices.Clone(before), func(g int64) bool { return g == generation })
	if err := sc.save(batch, sc.generation.Load()); err != nil {
		return err
	}
	if _, err := h.store.Commit(ctx, batch); err != nil {
		sc.record.Erasing = before
		return stateError(err)
	}
	return nil
}
