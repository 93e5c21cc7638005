package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/state"
)

// RecordEvent implements Contract.
func (s *Slot) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return through(ctx, s, abi.OpRecordEvent, event, func(ctx context.Context) (*abi.WriteReceipt, error) {
		if err := event.Validate(); err != nil {
			return nil, inOperation(abi.OpRecordEvent, err)
		}
		if err := s.enterGate(ctx, abi.OpRecordEvent); err != nil {
			return nil, err
		}
		defer s.gate.Leave()
		answer := s.deliver(ctx, abi.OpRecordEvent, []*abi.MemoryEvent{event})[0]
		if answer.Error != nil {
			return nil, answer.Error
		}
		return answer.Receipt, nil
	})
}

// scopeOfEvent is where an event belongs.
func (p *Provider) scopeOfEvent(e *abi.MemoryEvent) (*scopeState, error) {
	return p.scopeOf(p.memoryScopeOf(e))
}

// memoryScopeOf is the scope of an event. An agent that is no part of it travels as a label.
func (p *Provider) memoryScopeOf(e *abi.MemoryEvent) abi.MemoryScope {
	scope := abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID}
	if p.config.AgentScoped {
		scope.AgentID = e.AgentID
	}
	return scope
}

// deliver writes events of one scope, in order. Every event gets a receipt or an error.
func (s *Slot) deliver(ctx context.Context, opName string, events []*abi.MemoryEvent) []abi.ReceiptOrError {
	answers := make([]abi.ReceiptOrError, len(events))
	_, err := withServing(ctx, s, func(ctx context.Context) (struct{}, error) {
		clear(answers)
		return struct{}{}, s.deliverAll(ctx, opName, events, answers)
	})
	if err != nil {
		for i, e := range events {
			if answers[i].Receipt == nil && answers[i].Error == nil {
				answers[i] = abi.ReceiptOrError{EventID: e.EventID, Error: abi.AsError(err)}
			}
		}
	}
	return answers
}

// deliverAll fills answers; its error is of the events that have no answer yet.
func (s *Slot) deliverAll(ctx context.Context, opName string, events []*abi.MemoryEvent,
	answers []abi.ReceiptOrError) (err error) {
	ctx, o, err := s.begin(ctx, opName)
	if err != nil {
		return err
	}
	defer func() {
		told := err
		if e := answers[0].Error; told == nil && len(events) == 1 && e != nil {
			told = e // Observe gets the outcome of the one event
		}
		o.end(&told)
		if err != nil {
			err = told
		}
	}()
	if len(events) > 1 && !o.provider.has(abi.OpRecordEvents) {
		for i := range events {
			answers[i] = s.deliver(ctx, abi.OpRecordEvent, events[i:i+1])[0]
		}
		return nil
	}
	sc, err := o.provider.scopeOfEvent(events[0])
	if err != nil {
		return err
	}
	permit, err := o.admit(ctx, sc)
	if err != nil {
		return err
	}
	if permit == nil {
		return o.skipAll(ctx, sc, events, answers)
	}
	defer permit.Release()
	alone, err := o.deliverInTurn(ctx, sc, events, answers)
	for o.moved { // nothing was written: another host was first, or changed the mode
		clear(answers)
		alone, err = o.deliverInTurn(ctx, sc, events, answers)
	}
	if errors.Is(err, errBecameReadOnly) {
		o.permit = nil
		return o.skipAll(ctx, sc, events, answers)
	}
	if alone { // the scope's turn is free again, and each event takes its own
		for i := range events {
			answers[i] = s.deliver(ctx, abi.OpRecordEvent, events[i:i+1])[0]
		}
	}
	return err
}

// deliverInTurn delivers while no other write of the scope runs. alone asks the caller to pass the events one at a
// time, because one of them has to be looked up first; then nothing has been done yet.
func (o *operation) deliverInTurn(ctx context.Context, sc *scopeState, events []*abi.MemoryEvent,
	answers []abi.ReceiptOrError) (alone bool, err error) {
	o.moved, o.accepted, o.last = false, nil, false
	if err := o.takeTurn(ctx, sc, withFirstCommit); err != nil {
		return false, err
	}
	defer func() {
		if !alone {
			err = cmp.Or(o.confirmKnown(ctx, answers), err)
		}
		o.moved = o.turn.Anew()
		o.endTurn(ctx, sc)
	}()
	if err := o.at(ctx, sc); err != nil {
		return false, err
	}
	fresh, alone, err := o.sortKnown(ctx, events, answers)
	if alone || err != nil || len(fresh) == 0 {
		return alone, err
	}
	first := sc.record.Since == ""
	if err := o.slot.ensureSetUp(ctx, o.provider, sc, o.permit, o.turn); err != nil {
		return false, err
	}
	if first { // now it is known whether the backend had the scope before
		fresh, alone, err = o.sortKnown(ctx, events, answers)
		if alone || err != nil || len(fresh) == 0 {
			return alone, err
		}
	}
	return false, o.write(ctx, fresh, answers)
}

// sortKnown answers the events whose outcome is known and returns those to send.
func (o *operation) sortKnown(ctx context.Context, events []*abi.MemoryEvent,
	answers []abi.ReceiptOrError) (fresh []pendingWrite, alone bool, err error) {
	for i, e := range events {
		if o.provider.testSession(e.SessionID) {
			answers[i].Receipt = o.skipped(e, warnTest)
			continue
		}
		forgotten, err := o.slot.host.wasForgotten(ctx, e)
		if err != nil {
			return nil, false, err
		}
		if forgotten {
			answers[i] = abi.ReceiptOrError{EventID: e.EventID, Error: errForgotten(o.Op, e.EventID)}
			continue
		}
		hash, err := hashEvent(e)
		if err != nil {
			return nil, false, err
		}
		known, err := o.slot.host.ledgerRecord(ctx, o.state.Space(), e.EventID)
		if err != nil {
			return nil, false, err
		}
		w := pendingWrite{event: e, hash: hash, at: i}
		if known == nil {
			if known, err = o.lookUp(ctx, &w); err != nil {
				return nil, false, err
			}
		}
		switch {
		case known == nil && w.resume != nil && len(events) > 1:
			return nil, true, nil
		case known == nil:
			fresh = append(fresh, w)
		case known.hash != hash:
			conflict := abi.NewError(abi.CodeConflict,
				fmt.Sprintf("event_id: %.80q was recorded before with other content",
					e.EventID)).WithReason("event_content")
			conflict.Operation = o.Op
			answers[i] = abi.ReceiptOrError{EventID: e.EventID, Error: conflict}
		case known.state == deliveryLost || known.state == deliveryFailed:
			fresh = append(fresh, w)
		case !known.uncertain():
			answers[i].Receipt = o.repeated(known.receipt)
		case len(events) > 1:
			return nil, true, nil
		default:
			receipt, resend, err := o.settle(ctx, known, &w)
			if err != nil {
				return nil, false, err
			}
			if resend {
				fresh = append(fresh, w)
				continue
			}
			answers[i].Receipt = o.repeated(receipt)
		}
	}
	return fresh, false, nil
}

// confirmKnown makes a write in the scope's turn before events are answered as recorded before, where hosts share the
// store and the operation has made none: what was read may be on no standby of the database yet, and this answer
// outlasts a failover as the first one does. Where it fails these events have no answer.
func (o *operation) confirmKnown(ctx context.Context, answers []abi.ReceiptOrError) error {
	duplicate := func(a abi.ReceiptOrError) bool { return a.Receipt != nil && a.Receipt.Duplicate }
	if o.turn.Written() || o.turn.Anew() || !slices.ContainsFunc(answers, duplicate) {
		return nil
	}
	err := stateError(o.turn.Commit(context.WithoutCancel(ctx), new(state.Batch), true))
	for i, a := range answers {
		if err != nil && duplicate(a) {
			answers[i] = abi.ReceiptOrError{}
		}
	}
	return err
}

// repeated is the answer to an event that was recorded before: its first receipt at its present status. It is called a
// duplicate only when it is known to have arrived.
func (o *operation) repeated(receipt *abi.WriteReceipt) *abi.WriteReceipt {
	r := *receipt
	if r.Duplicate = !answercheck.Undecided(r.Status); r.Duplicate {
		r.Warnings = append(slices.Clone(r.Warnings), warnDuplicate)
	}
	r.Trace = o.trace(&abi.Trace{Consistency: consistencyOf(r.Status), NativeIDs: r.NativeIDs})
	r.LatencyMS = r.Trace.LatencyMS
	return &r
}

// Warnings of the host, each with its stable code.
const (
	warnDuplicate = "duplicate_event: this event_id was recorded before; this is its first receipt"
	warnReadOnly  = "read_only: the slot is read-only, nothing was recorded"
	warnTest      = "read_only: this is a test session, nothing was recorded"
)

// write gives events to the guest and commits its state together with their receipts.
func (o *operation) write(ctx context.Context, fresh []pendingWrite, answers []abi.ReceiptOrError) error {
	o.OnWrite = func() error { return o.noteSending(ctx, fresh) }
	received, err := o.callRecord(ctx, fresh)
	if wrong := firstConflict(received, err); wrong != nil {
		overtaken, askErr := o.turn.Overtaken(ctx)
		if overtaken || askErr != nil {
			return cmp.Or(stateError(askErr), wrong)
		}
	}
	if err != nil {
		return o.undecided(ctx, fresh, answers, err)
	}
	batch := &o.state.Batch
	now := o.slot.host.now()
	for i, w := range fresh {
		r := received[i]
		if r.Error != nil {
			answers[w.at] = abi.ReceiptOrError{EventID: w.event.EventID, Error: o.notDelivered(batch, w, r.Error)}
			continue
		}
		if wrong := answercheck.WrongReceipt(r.Receipt); wrong != "" {
			breach := o.contractBreach(wrong)
			if !o.inDoubt(breach) {
				return o.undecided(ctx, fresh, answers, breach)
			}
			o.slot.host.uncertainEvents.Add(1)
			answers[w.at].Receipt = o.uncertainReceipt(w.event.EventID, nil, breach) // the ledger has it as sent
			o.accepted = append(o.accepted, w.event)
			received[i].Receipt = nil
			continue
		}
		o.own(r.Receipt, w.event)
		o.accepted = append(o.accepted, w.event)
		putLedger(batch, o.scope, o.state.Space(), w.event.EventID,
			&ledgerEntry{hash: w.hash, state: deliveryReceived, sentAt: now, session: w.event.SessionID,
				receipt: r.Receipt})
	}
	if err := o.slot.host.sweepLedger(ctx, batch); err != nil {
		return err
	}
	if err := o.commitLast(ctx); err != nil {
		if !o.Noted {
			return err
		}
		o.slot.host.uncertainEvents.Add(int64(len(fresh)))
		if o.late {
			return o.answerLate(fresh, answers, abi.AsError(err))
		}
		return err
	}
	o.acknowledge(fresh, received)
	for i, w := range fresh {
		if r := received[i].Receipt; r != nil {
			if r.Trace == nil {
				r.Trace = &abi.Trace{NativeIDs: r.NativeIDs}
			}
			r.Trace.Consistency = consistencyOf(r.Status)
			r.Trace = o.trace(r.Trace)
			r.LatencyMS = r.Trace.LatencyMS
			if w.warning != "" && r.Status != abi.StatusNotRetained {
				r.Warnings = append(r.Warnings, w.warning)
			}
			answers[w.at] = abi.ReceiptOrError{Receipt: r}
		}
	}
	return nil
}

// firstConflict is the first conflict in a guest's answer; nil when there is none. One of keys comes from reads before
// and after another host's commit.
func firstConflict(received []abi.ReceiptOrError, err error) error {
	if err != nil && abi.CodeOf(err) == abi.CodeConflict {
		return err
	}
	for _, r := range received {
		if r.Error != nil && r.Error.Code == abi.CodeConflict {
			return r.Error
		}
	}
	return nil
}

// callRecord enters record_event for one event and record_events for several.
func (o *operation) callRecord(ctx context.Context, fresh []pendingWrite) ([]abi.ReceiptOrError, error) {
	if len(fresh) == 1 {
		o.Op = abi.OpRecordEvent
		o.resume = fresh[0].resume
		receipt := new(abi.WriteReceipt)
		err := o.enter(ctx, fresh[0].event, receipt)
		return []abi.ReceiptOrError{{Receipt: receipt}}, err
	}
	o.Op = abi.OpRecordEvents
	in, out := &abi.EventBatch{Events: make([]abi.MemoryEvent, len(fresh))}, new(abi.BatchReceipts)
	for i, w := range fresh {
		in.Events[i] = *w.event
	}
	if err := o.enter(ctx, in, out); err != nil {
		return nil, err
	}
	if len(out.Receipts) != len(fresh) {
		return nil, o.contractBreach(fmt.Sprintf("answered %d receipts for %d events", len(out.Receipts), len(fresh)))
	}
	return out.Receipts, nil
}

// own fills in the host's fields of a guest's receipt.
func (o *operation) own(r *abi.WriteReceipt, e *abi.MemoryEvent) {
	r.EventID, r.Duplicate, r.RetryAfterMS = e.EventID, false, nil
	if !answercheck.Undecided(r.Status) {
		return
	}
	if !o.provider.has(abi.OpFindEvent) {
		r.Warnings = append(r.Warnings, warnNoFind)
		return
	}
	r.RetryAfterMS = afterMS(o.provider.settle())
}

// skipAll answers writes while the slot is read-only. The guest is not entered.
func (o *operation) skipAll(ctx context.Context, sc *scopeState, events []*abi.MemoryEvent,
	answers []abi.ReceiptOrError) error {
	if err := o.at(ctx, sc); err != nil {
		return err
	}
	for i, e := range events {
		answers[i].Receipt = o.skipped(e, warnReadOnly)
	}
	return nil
}

// skipped is the receipt of an event that read-only kept out.
func (o *operation) skipped(e *abi.MemoryEvent, warning string) *abi.WriteReceipt {
	r := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusSkippedReadOnly, NativeIDsKind: abi.NativeIDsNone,
		Warnings: []string{warning}, Trace: o.trace(nil)}
	r.LatencyMS = r.Trace.LatencyMS
	return r
}
