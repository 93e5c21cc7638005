package host

import (
	"context"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// ResetScope implements Contract. The scope's next generation starts before anything is erased. So whatever happens, no
// later event enters the old generation, and no receipt of the old generation suppresses an event in the new one. The
// host stores what could not be erased, and another reset continues there, with the same new generation as long as
// nothing was written to it.
//
// It also erases the scope's archived events, those queued for a backfill, and the stored answers of shadows, and has
// the store overwrite the deleted data.
func (s *Slot) ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error) {
	return s.resetIn(ctx, scope, s.followers != nil)
}

// resetIn is ResetScope; own says whether to erase the host's own data too.
func (s *Slot) resetIn(ctx context.Context, scope abi.MemoryScope, own bool) (*abi.ResetReceipt, error) {
	return operate(ctx, s, abi.OpResetScope, &scope,
		func(ctx context.Context, o *operation, receipt *abi.ResetReceipt) error {
			sc, err := o.provider.scopeOf(scope)
			if err != nil {
				return err
			}
			var erased *ownErased
			err = o.withLock(ctx, sc, "nothing is reset, and no native call was made", func() error {
				after, err := s.followers.resetting(ctx, sc.memoryScope())
				if err != nil {
					return err
				}
				defer after()
				if own {
					done, err := s.host.erasingCopies(ctx, sc.memoryScope())
					if err != nil {
						return err
					}
					defer done()
					erased = new(ownErased)
					if err := erased.erase(ctx, s.host, sc.memoryScope()); err != nil {
						return err
					}
				}
				return o.reset(ctx, sc, receipt)
			})
			if erased != nil { // also if the provider failed
				outside, left := s.host.scrub(ctx)
				erased.addTo(receipt, outside, left)
			}
			return err
		})
}

// ownErased is what the host itself erased for a scope that is reset.
type ownErased struct {
	events int64
	damage string // damage in the archive, which may keep part of the events; empty if there is none
}

// erase removes the scope's events from the archive and from the queue of a backfill, and the stored answers of
// shadows.
func (e *ownErased) erase(ctx context.Context, h *Host, scope abi.MemoryScope) error {
	if err := h.follow.ForgetAnswers(ctx, scope); err != nil {
		return err
	}
	gone, err := h.forgetStored(ctx, scope.PersonaID, func(event *abi.MemoryEvent) bool { return inScope(event, scope) }, nil)
	e.events = int64(len(gone))
	if err != nil && abi.AsError(err).Reason == "archive" { // damaged: continue with the rest
		e.damage, err = abi.AsError(err).Message, nil
	}
	return err
}

// addTo adds what the host has erased, and what the store reports about it, to the provider's receipt.
func (e *ownErased) addTo(receipt *abi.ResetReceipt, outside []string, left string) {
	if e.events > 0 && receipt.Removed != nil {
		receipt.Removed[NativeArchived] = &e.events
	}
	receipt.Outside = outside
	var remains []string
	if e.damage != "" {
		remains = append(remains, "the archive, which cannot be read to its end: "+e.damage)
	}
	if left != "" {
		remains = append(remains, left)
	}
	receipt.Remains = append(receipt.Remains, remains...)
	if len(remains) > 0 && receipt.Status == abi.ResetDone {
		receipt.Status = abi.ResetIncomplete
	}
}

// reset starts the next generation of a scope and erases the earlier ones. The caller holds the scope's lock.
func (o *operation) reset(ctx context.Context, sc *scopeState, receipt *abi.ResetReceipt) error {
	old, err := o.nextGeneration(ctx, sc)
	if err != nil {
		return err
	}
	o.slot.manifestChanged(ctx)
	*receipt = abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{}, Remains: []string{},
		Warnings:      []string{},
		OldGeneration: old, NewGeneration: sc.generation.Load()}
	wait := o.slot.host.waiting(o.provider.deadline(o.Op))
	for _, generation := range slices.Clone(sc.record.Erasing) {
		o.atGeneration(sc, generation)
		one, err := o.resetGuest(ctx, wait)
		if err != nil {
			e := *abi.AsError(err)
			e.Hint = joinHints(e.Hint,
				"the scope goes on in its new generation; reset it again to erase what remains of the old one")
			return &e
		}
		if one.Status == abi.ResetDone {
			if err := o.erased(ctx, sc, generation); err != nil {
				return err
			}
		}
		addReset(receipt, one)
	}
	if receipt.Status != abi.ResetDone {
		receipt.Warnings = append(receipt.Warnings, warnErasing)
	}
	receipt.Trace = o.trace(receipt.Trace)
	o.slot.manifestChanged(ctx)
	return nil
}

const warnErasing = "reset_unfinished: the old generation is not served any more, " +
	"but a part of it is still in the backend; reset the scope again to go on"

// addReset adds the outcome of erasing one generation to the sum, whose status is the worst of all.
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
	sum.Remains, sum.Warnings, sum.Trace = append(sum.Remains, one.Remains...), append(sum.Warnings, one.Warnings...),
		one.Trace
}

// resetGuest repeats reset_scope until the guest stops answering in_progress, or the operation's time is over.
func (o *operation) resetGuest(ctx context.Context, wait *waiting) (*abi.ResetReceipt, error) {
	for {
		receipt := new(abi.ResetReceipt)
		if err := o.enter(ctx, new(abi.Empty), receipt); err != nil {
			return nil, err
		}
		switch receipt.Status {
		case abi.ResetDone, abi.ResetIncomplete, abi.ResetFailed:
			return receipt, nil
		case abi.ResetInProgress:
			if wait.left() < wait.next {
				return receipt, nil
			}
		}
		// The guest saved its progress for its next call.
		if err := o.commit(ctx); err != nil {
			return nil, err
		}
		wait.pause(ctx)
		if ctx.Err() != nil {
			return receipt, nil
		}
	}
}

// nextGeneration starts a scope's next generation and adds the present one to the list of generations to erase. A
// generation that an unfinished reset started is reused if nothing was written to it. It returns the newest generation
// to erase. The caller holds the scope's lock.
func (o *operation) nextGeneration(ctx context.Context, sc *scopeState) (int64, error) {
	h := o.slot.host
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
	sc.record.NativeScope = nil // belongs to the old generation
	var b state.Batch
	if err := sc.save(&b, current+1); err != nil {
		return 0, err
	}
	if err := o.keep(ctx, &b); err != nil {
		sc.record.Erasing = before
		return 0, err
	}
	sc.generation.Store(current + 1)
	return current, nil
}

// untouched reports whether a generation has no events and no state.
func (h *Host) untouched(ctx context.Context, space state.Space) (bool, error) {
	used, err := h.ledger.HasEvents(ctx, space)
	if err != nil {
		return false, err
	}
	bytes, err := h.store.Usage(ctx, space)
	return !used && bytes == 0, stateError(err)
}

// erased drops what the host keeps about a generation that the backend has erased, together with what the guest wrote
// last.
func (o *operation) erased(ctx context.Context, sc *scopeState, generation int64) error {
	h, batch := o.slot.host, &o.state.Batch
	batch.DeletePrefix(o.state.Space(), "")
	if err := o.state.CountCommit(ctx); err != nil {
		return stateError(err)
	}
	if err := h.ledger.DropAll(ctx, batch, o.state.Space()); err != nil {
		return err
	}
	before := sc.record.Erasing
	sc.record.Erasing = slices.DeleteFunc(slices.Clone(before), func(g int64) bool { return g == generation })
	if err := sc.save(batch, sc.generation.Load()); err != nil {
		return err
	}
	if err := o.keep(ctx, batch); err != nil {
		sc.record.Erasing = before
		return err
	}
	return nil
}
