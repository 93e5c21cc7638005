package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// A write delivers events of one scope, in order, in these steps. This file has them from top to bottom:
//
//	admit        a permit from the wall; without one the answer is skipped_read_only
//	lock         the scope's write lock, of this process or of all hosts that share the store
//	gather       what is known about each event (gather.go)
//	decide       what happens to it (the table in internal/delivery/decide.go)
//	settle       ask the backend about an event whose outcome is not known
//	set up       make the scope ready if it is new, then gather again: the backend may have had the scope before
//	send         record in the ledger that the events are being sent, then enter the guest
//	judge        what the guest's answer, or its failure, means for each event
//	commit       guest's state, ledger and archive in one transaction, which releases the lock
//	acknowledge  note which receipts callers get, and build the answers
//
// Several events go as one batch to a provider that takes batches. If one of them needs its own look at the backend,
// the lock is given back and each event goes alone, by the same steps.

// RecordEvent implements Contract.
func (s *Slot) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return perform(ctx, s, abi.OpRecordEvent, event, func(ctx context.Context) (*abi.WriteReceipt, error) {
		if err := event.Validate(); err != nil {
			return nil, inOperation(abi.OpRecordEvent, err)
		}
		answers := make([]abi.ReceiptOrError, 1)
		err := s.write(ctx, abi.OpRecordEvent, []*abi.MemoryEvent{event}, answers, false)
		switch answer := answers[0]; {
		case answer.Receipt != nil: // it arrived, or may have: report this even if a later step failed
			return answer.Receipt, nil
		case answer.Error != nil:
			return nil, answer.Error
		}
		return nil, err
	})
}

// write is one write while it runs.
type write struct {
	*operation
	events []*abi.MemoryEvent
	// answers has one entry for each event, in order. An event without an answer gets the error of the write.
	answers []abi.ReceiptOrError
	// sending lists the events to send.
	sending []pendingWrite
	// accepted lists the events that the provider has, or may have: the next commit archives them.
	accepted []*abi.MemoryEvent
	// archived is set if the events were read from the archive, and must not be added to it.
	archived bool
	// separately is set if each event has to be sent alone; nothing has been sent then.
	separately bool
}

// pendingWrite is an event to send. at is its index among the write's events.
type pendingWrite struct {
	event *abi.MemoryEvent
	hash  delivery.Hash
	at    int
	// resume is set if a part of the event has already arrived.
	resume *abi.Resume
	// again is set if the backend kept nothing of the event, and it is sent again.
	again bool
	// before is the ledger entry of an event that did not arrive, or of which nothing was kept. It is restored if
	// nothing arrives this time either.
	before *delivery.Entry
	// warning is added to the event's receipt.
	warning string
}

// deliver writes events of one scope as a part of a batch. If the provider is swapped while it runs, later events may
// go to another provider. Every event gets a receipt or an error. archived is set if the events are from the archive.
func (s *Slot) deliver(ctx context.Context, op string, events []*abi.MemoryEvent, archived bool) []abi.ReceiptOrError {
	answers := make([]abi.ReceiptOrError, len(events))
	_, err := route(ctx, s, func(ctx context.Context) (struct{}, error) {
		clear(answers)
		return struct{}{}, s.write(ctx, op, events, answers, archived)
	})
	for i, e := range events {
		if err != nil && answers[i].Receipt == nil && answers[i].Error == nil {
			answers[i] = abi.ReceiptOrError{EventID: e.EventID, Error: abi.AsError(err)}
		}
	}
	return answers
}

// write is deliver at the provider that serves now. Its error applies to every event without an answer.
func (s *Slot) write(ctx context.Context, op string, events []*abi.MemoryEvent, answers []abi.ReceiptOrError,
	archived bool) (err error) {
	ctx, o, err := s.begin(ctx, op)
	if err != nil {
		return err
	}
	w := &write{operation: o, events: events, answers: answers, archived: archived}
	defer func() { err = w.endWith(err) }()
	if len(events) > 1 && !o.provider.has(abi.OpRecordEvents) {
		w.oneByOne(ctx)
		return nil
	}
	sc, err := o.provider.scopeOfEvent(events[0])
	if err != nil {
		return err
	}
	permit, err := w.admit(ctx, sc)
	if err != nil {
		return err
	}
	if permit == nil {
		return w.skipAll(ctx, sc)
	}
	defer permit.Release()
	anew, err := w.underLock(ctx, sc)
	for anew {
		clear(answers)
		anew, err = w.underLock(ctx, sc)
	}
	switch {
	case errors.Is(err, writelock.ErrBecameReadOnly):
		o.permit = nil
		return w.skipAll(ctx, sc)
	case err == nil && w.separately: // the scope's lock has been released, and each event takes it again
		w.oneByOne(ctx)
	}
	return err
}

// endWith ends the operation. For a write of a single event, observers get the event's outcome.
func (w *write) endWith(err error) error {
	reported := err
	if e := w.answers[0].Error; err == nil && len(w.events) == 1 && e != nil {
		reported = e
	}
	w.end(&reported)
	if err != nil {
		return reported
	}
	return nil
}

// oneByOne records each event alone.
func (w *write) oneByOne(ctx context.Context) {
	for i := range w.events {
		w.answers[i] = w.slot.deliver(ctx, abi.OpRecordEvent, w.events[i:i+1], w.archived)[0]
	}
}

// skipAll answers that nothing was recorded, without entering the guest.
func (w *write) skipAll(ctx context.Context, sc *scopeState) error {
	if err := w.at(ctx, sc); err != nil {
		return err
	}
	for i, e := range w.events {
		w.answers[i].Receipt = w.skipped(e, warnReadOnly)
	}
	return nil
}

// underLock takes the write lock for the steps that need it. anew reports that the lock was lost before anything was
// written, so that the write must start over.
func (w *write) underLock(ctx context.Context, sc *scopeState) (anew bool, err error) {
	w.accepted, w.separately = nil, false
	if err := w.lockScopeAhead(ctx, sc, writelock.WithFirstCommit, w.events...); err != nil {
		return false, err
	}
	err = w.locked(ctx, sc)
	if !w.separately {
		err = cmp.Or(w.confirmKnown(ctx), err)
	}
	anew = w.lock.Anew()
	w.unlock(ctx)
	return anew, err
}

func (w *write) locked(ctx context.Context, sc *scopeState) error {
	if err := w.at(ctx, sc); err != nil {
		return err
	}
	if err := w.sort(ctx); err != nil || len(w.sending) == 0 {
		return err
	}
	isNew := sc.record.Since == ""
	if err := w.slot.ensureSetUp(ctx, w.provider, sc, w.permit, w.lock); err != nil {
		return err
	}
	if isNew { // only now is it known whether the backend had the scope before
		if err := w.sort(ctx); err != nil || len(w.sending) == 0 {
			return err
		}
	}
	received, failure := w.send(ctx)
	if conflict := firstConflict(received, failure); conflict != nil {
		overtaken, err := w.lock.Overtaken(ctx)
		if overtaken || err != nil {
			return cmp.Or(err, conflict)
		}
	}
	if failure == nil {
		failure = w.judge(received)
	}
	if failure != nil {
		return w.judgeFailure(ctx, failure)
	}
	if done, err := w.commitWrite(ctx); !done {
		return err
	}
	w.acknowledge(received)
	return nil
}

// sort answers the events that need not be sent, and lists the others in w.sending.
func (w *write) sort(ctx context.Context) error {
	w.sending = nil
	for i, e := range w.events {
		f, err := w.gather(ctx, i)
		if err != nil {
			return err
		}
		next, answer := pendingWrite{event: e, hash: f.Hash, at: i}, &w.answers[i]
		switch delivery.Decide(f, len(w.events) > 1) {
		case delivery.SkipTest:
			answer.Receipt = w.skipped(e, warnTest)
		case delivery.RefuseForgotten:
			*answer = abi.ReceiptOrError{EventID: e.EventID, Error: errForgotten(w.Op, e.EventID)}
		case delivery.RefuseContent:
			*answer = abi.ReceiptOrError{EventID: e.EventID, Error: errOtherContent(w.Op, e.EventID)}
		case delivery.Repeat:
			answer.Receipt = w.repeatedReceipt(f.Known.Receipt)
		case delivery.Adopt:
			if answer.Receipt, err = w.adopt(ctx, e, f); err != nil {
				return err
			}
		case delivery.Settle:
			known := cmp.Or(f.Known, f.PerhapsSent(e))
			receipt, resend, err := w.settle(ctx, known, &next)
			if err != nil {
				return err
			}
			if resend {
				w.sending = append(w.sending, next)
			} else {
				answer.Receipt = w.repeatedReceipt(receipt)
			}
		case delivery.SendMissing:
			next.resume = &abi.Resume{Missing: f.Lookup.Missing, Markers: []string{}}
			w.sending = append(w.sending, next)
		case delivery.SendAgain:
			next.again, next.before = true, f.Known
			w.sending = append(w.sending, next)
		case delivery.SendWarned:
			next.warning = mayDouble(f)
			w.sending = append(w.sending, next)
		case delivery.Send:
			next.before = f.Known
			w.sending = append(w.sending, next)
		case delivery.OneByOne:
			w.sending, w.separately = nil, true
			return nil
		}
	}
	return nil
}

// confirmKnown commits under the lock before events are answered as already recorded, if hosts share the store and the
// write has not committed anything. The receipts that were read may not have reached a standby of the database yet, but
// the answer must survive a failover. If the commit fails, these events have no answer.
func (w *write) confirmKnown(ctx context.Context) error {
	duplicate := func(a abi.ReceiptOrError) bool { return a.Receipt != nil && a.Receipt.Duplicate }
	if w.lock.Written() || w.lock.Anew() || !slices.ContainsFunc(w.answers, duplicate) {
		return nil
	}
	err := w.lock.Commit(ctx, new(state.Batch), writelock.LastCommit)
	for i, a := range w.answers {
		if err != nil && duplicate(a) {
			w.answers[i] = abi.ReceiptOrError{}
		}
	}
	return err
}

// send enters record_event for one event and record_events for several. Before the first native call that is not a read
// leaves, the ledger records that the events are being sent. So whatever happens afterwards, even a crash, it knows
// that something may have arrived.
func (w *write) send(ctx context.Context) ([]abi.ReceiptOrError, error) {
	w.OnWrite = func() error { return w.noteSending(ctx) }
	w.state.Remember() // only this operation writes the scope, or its commit is refused
	if len(w.sending) == 1 {
		w.Op = abi.OpRecordEvent
		one, receipt := w.sending[0], new(abi.WriteReceipt)
		err := w.enterWith(ctx, &abi.Envelope{Resume: one.resume, Again: one.again,
			Body: abi.Marshal(one.event)}, receipt)
		return []abi.ReceiptOrError{{Receipt: receipt}}, err
	}
	w.Op = abi.OpRecordEvents
	in, out := &abi.EventBatch{Events: make([]abi.MemoryEvent, len(w.sending))}, new(abi.BatchReceipts)
	for i, one := range w.sending {
		in.Events[i] = *one.event
	}
	if err := w.enter(ctx, in, out); err != nil {
		return nil, err
	}
	if len(out.Receipts) != len(w.sending) {
		return nil, w.contractBreach(fmt.Sprintf("answered %d receipts for %d events", len(out.Receipts),
			len(w.sending)))
	}
	return out.Receipts, nil
}

// noteSending records in the ledger that the events are about to be sent.
func (w *write) noteSending(ctx context.Context) error {
	var b state.Batch
	now := w.slot.host.now()
	w.lock.Sending = nil
	for _, one := range w.sending {
		w.lock.Sending = append(w.lock.Sending, one.event.EventID)
		entry := &delivery.Entry{Hash: one.hash, State: delivery.Sent, SentAt: now, Session: one.event.SessionID}
		if one.resume != nil { // keep the markers of the first attempt
			entry.State, entry.Receipt = delivery.Received,
				&abi.WriteReceipt{EventID: one.event.EventID, Status: abi.StatusUncertain,
					NativeIDs: []string{}, NativeIDsKind: abi.NativeIDsNone, Markers: one.resume.Markers,
					Warnings: []string{}}
		}
		delivery.Put(&b, w.scope.key, w.state.Space(), one.event.EventID, entry)
	}
	return w.keep(ctx, &b)
}

// judge goes through the guest's answers: it records in the ledger what receipts mean, and handles errors and breaches
// of the contract. It returns a breach that cannot be attributed to one event because nothing was sent; the answer as a
// whole then fails.
func (w *write) judge(received []abi.ReceiptOrError) error {
	batch, now := &w.state.Batch, w.slot.host.now()
	for i, one := range w.sending {
		r := received[i]
		if r.Error != nil {
			w.answers[one.at] = abi.ReceiptOrError{EventID: one.event.EventID, Error: w.notDelivered(one, r.Error)}
			continue
		}
		if wrong := answercheck.WrongReceipt(r.Receipt); wrong != "" {
			breach := w.contractBreach(wrong)
			if !w.inDoubt(breach) {
				return breach
			}
			w.slot.host.uncertainEvents.Add(1)
			w.answers[one.at].Receipt = w.uncertainReceipt(one.event.EventID, nil, breach) // the ledger has it as sent
			w.accept(one)
			received[i].Receipt = nil
			continue
		}
		w.complete(r.Receipt, one.event)
		w.accept(one)
		entry := &delivery.Entry{Hash: one.hash, State: delivery.Received, SentAt: now, Session: one.event.SessionID,
			Receipt: r.Receipt}
		if one.again {
			r.Receipt.Warnings = append(r.Receipt.Warnings, warnSentAgain)
		}
		if r.Receipt.Status == abi.StatusNotRetained && w.provider.has(abi.OpReadiness) {
			entry.State = delivery.Empty
		}
		delivery.Put(batch, w.scope.key, w.state.Space(), one.event.EventID, entry)
	}
	return nil
}

// accept lists an event that the provider has, or may have, for archiving. A retried event is already in the archive.
func (w *write) accept(one pendingWrite) {
	if !one.again && !w.archived {
		w.accepted = append(w.accepted, one.event)
	}
}

// inDoubt reports whether a write that ended with e may have arrived, in whole or in part.
func (o *operation) inDoubt(e *abi.Error) bool {
	return o.Noted && o.Effect != egress.EffectNone && !e.NothingStored
}

// notDelivered handles one event of a batch for which the guest returned an error.
func (w *write) notDelivered(one pendingWrite, failure *abi.Error) *abi.Error {
	e := w.provider.plugin.Failed(w.Op, failure)
	switch {
	case w.inDoubt(e):
		w.slot.host.uncertainEvents.Add(1)
		w.accept(one)
		return w.withDoubt(e)
	case w.Noted:
		w.takeBack(&w.state.Batch, one)
	}
	return e
}

// takeBack undoes the note that an event is being sent, in a batch.
func (w *write) takeBack(b *state.Batch, one pendingWrite) {
	switch {
	case one.before != nil:
		delivery.Put(b, w.scope.key, w.state.Space(), one.event.EventID, one.before)
	case one.resume == nil:
		delivery.Drop(b, w.state.Space(), one.event.EventID)
	}
}

// judgeFailure answers a write that failed as a whole. If nothing can have arrived, the ledger has the events as before
// and the callers get the error. Otherwise they are uncertain: after a timeout or an answer that violates the contract
// they get receipts that say so; after another error they get that error.
func (w *write) judgeFailure(ctx context.Context, failure error) error {
	if !w.Noted {
		return failure
	}
	e := abi.AsError(failure)
	if !w.inDoubt(e) {
		var b state.Batch
		for _, one := range w.sending {
			w.takeBack(&b, one)
		}
		if err := w.keep(ctx, &b); err != nil {
			w.provider.logger.Warn("the ledger keeps an event as uncertain that was not sent", "error", err)
		}
		return e
	}
	w.slot.host.uncertainEvents.Add(int64(len(w.sending)))
	w.accepted = nil
	for _, one := range w.sending {
		w.accept(one)
	}
	// the caller may never record them again
	if err := w.commitAccepted(ctx, new(state.Batch), writelock.MoreFollow, w.accepted...); err != nil {
		w.provider.logger.Warn("the archive lacks events whose outcome is not known", "error", err)
	}
	switch {
	case w.lock.Late:
		w.answerLate(e)
		return nil
	case e.Code != abi.CodeTimeout && e.Reason != abi.ReasonContractBreach:
		return w.withDoubt(e)
	}
	for _, one := range w.sending {
		w.answers[one.at].Receipt = w.uncertainReceipt(one.event.EventID, nil, e)
	}
	return nil
}

// commitWrite commits what guest and judge wrote, and releases the lock. done is false if the events are not recorded
// as received: then they are already answered, or get the error.
func (w *write) commitWrite(ctx context.Context) (done bool, err error) {
	if err := w.slot.host.ledger.Sweep(ctx, &w.state.Batch); err != nil {
		return false, err
	}
	err = w.commitLast(ctx, w.accepted...)
	if err == nil {
		return true, nil
	}
	if w.Noted {
		w.slot.host.uncertainEvents.Add(int64(len(w.sending)))
		if w.lock.Late {
			w.answerLate(abi.AsError(err))
			return false, nil
		}
	}
	return false, err
}

// acknowledge notes which receipts callers get, and then builds their answers.
func (w *write) acknowledge(received []abi.ReceiptOrError) {
	w.noteReceipts(received)
	for i, one := range w.sending {
		r := received[i].Receipt
		if r == nil {
			continue
		}
		if r.Trace == nil {
			r.Trace = &abi.Trace{NativeIDs: r.NativeIDs}
		}
		r.Trace.Consistency = consistencyOf(r.Status)
		r.Trace = w.trace(r.Trace)
		r.LatencyMS = r.Trace.LatencyMS
		if one.warning != "" && r.Status != abi.StatusNotRetained {
			r.Warnings = append(r.Warnings, one.warning)
		}
		w.answers[one.at] = abi.ReceiptOrError{Receipt: r}
	}
}

// firstConflict returns the first conflict in a guest's answer; nil if there is none. A conflict of keys means that
// reads happened before and after another host's commit.
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
