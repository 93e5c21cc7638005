package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/state"
)

// Delivery: what the host knows of an unfinished write, and how it finds out. A write is noted in the ledger before its
// first native call other than a read is sent. So whatever happens afterwards, even a crash, the ledger knows that
// something may have arrived.

// pendingWrite is an event that is to be sent. at is its place in the answers.
type pendingWrite struct {
	event *abi.MemoryEvent
	hash  contentHash
	at    int
	// resume is set when a part of it has arrived already.
	resume *abi.Resume
	// warning goes into its receipt.
	warning string
}

// noteSending writes down that events are about to be sent.
func (o *operation) noteSending(ctx context.Context, fresh []pendingWrite) error {
	var b state.Batch
	now := o.slot.host.now()
	o.sending = nil
	for _, w := range fresh {
		o.sending = append(o.sending, w.event.EventID)
		entry := &ledgerEntry{hash: w.hash, state: deliverySent, sentAt: now, session: w.event.SessionID}
		if w.resume != nil {
			// The markers of the first attempt stay known.
			entry.state, entry.receipt = deliveryReceived,
				&abi.WriteReceipt{EventID: w.event.EventID, Status: abi.StatusUncertain,
					NativeIDs: []string{}, NativeIDsKind: abi.NativeIDsNone, Markers: w.resume.Markers,
					Warnings: []string{}}
		}
		putLedger(&b, o.scope, o.state.Space(), w.event.EventID, entry)
	}
	return o.keep(ctx, &b)
}

// Warnings about deliveries.
const (
	warnUncertain = "delivery_uncertain: "
	warnNoFind    = warnUncertain + "it may have reached the backend or not, and the provider cannot look it up " +
		"(no find_event): the host does not send it again"
	warnFound     = "delivery_found: the backend has it, though its first receipt was lost"
	hintUncertain = "it is not known whether the event was stored; " +
		"record it again: the host asks the backend before it sends anything twice"
	hintNoFind = "it is not known whether the event was stored, and the provider cannot look it up (no find_event): " +
		"recording it again sends nothing"
)

// inDoubt reports whether a write that ended with e may have arrived, in whole or in part.
func (o *operation) inDoubt(e *abi.Error) bool {
	return o.Noted && o.Effect != egress.EffectNone && !e.NothingStored
}

// doubted completes the error of a write that may have arrived in part: it can be settled, and so retried, if the
// provider can look the event up.
func (o *operation) doubted(e *abi.Error) *abi.Error {
	told := *e
	told.Retryable = o.provider.has(abi.OpFindEvent)
	if told.Retryable {
		told.Hint = joinHints(e.Hint, hintUncertain)
	} else {
		told.Hint = joinHints(e.Hint, hintNoFind)
	}
	return &told
}

// afterMS is a time to wait in ms, at least 1.
func afterMS(d time.Duration) *int64 {
	ms := max(d.Milliseconds(), 1)
	return &ms
}

// undecided answers for events whose write ended with an error. When nothing can have arrived the ledger forgets them
// and the error stands. Otherwise they are uncertain: after a time-out or an answer that breaks the contract they get
// receipts that say so, after another error its own words.
func (o *operation) undecided(ctx context.Context, fresh []pendingWrite, answers []abi.ReceiptOrError,
	failure error) error {
	if !o.Noted {
		return failure
	}
	e := abi.AsError(failure)
	if !o.inDoubt(e) {
		var b state.Batch
		for _, w := range fresh {
			if w.resume == nil {
				dropLedger(&b, o.state.Space(), w.event.EventID)
			}
		}
		if err := o.keep(ctx, &b); err != nil {
			o.provider.logger.Warn("the ledger keeps an event as uncertain that was not sent", "error", err)
		}
		return e
	}
	o.slot.host.uncertainEvents.Add(int64(len(fresh)))
	o.archiveDoubted(ctx, fresh)
	if o.late {
		return o.answerLate(fresh, answers, e)
	}
	if e.Code != abi.CodeTimeout && e.Reason != abi.ReasonContractBreach {
		return o.doubted(e)
	}
	for _, w := range fresh {
		answers[w.at].Receipt = o.uncertainReceipt(w.event.EventID, nil, e)
	}
	return nil
}

// answerLate answers events of which a late write was sent: they are uncertain, and their receipts say why.
func (o *operation) answerLate(fresh []pendingWrite, answers []abi.ReceiptOrError, why *abi.Error) error {
	for _, w := range fresh {
		r := o.uncertainReceipt(w.event.EventID, nil, why)
		r.Warnings = append(r.Warnings, warnLateWrite+"host "+o.slot.host.name+" sent it after its session had ended, when "+
			"another host may have acted for the scope")
		answers[w.at].Receipt = r
	}
	return nil
}

// archiveDoubted archives events of which something may have arrived: perhaps nobody records them again.
func (o *operation) archiveDoubted(ctx context.Context, fresh []pendingWrite) {
	events := make([]*abi.MemoryEvent, len(fresh))
	for i, w := range fresh {
		events[i] = w.event
	}
	if err := o.commitArchived(ctx, new(state.Batch), events...); err != nil {
		o.provider.logger.Warn("the archive lacks events whose outcome is not known", "error", err)
	}
}

// notDelivered judges one event of a batch that the guest answered with an error.
func (o *operation) notDelivered(b *state.Batch, w pendingWrite, failure *abi.Error) *abi.Error {
	e := o.provider.plugin.Failed(o.Op, failure)
	switch {
	case o.inDoubt(e):
		o.slot.host.uncertainEvents.Add(1)
		o.accepted = append(o.accepted, w.event)
		return o.doubted(e)
	case o.Noted:
		dropLedger(b, o.state.Space(), w.event.EventID)
	}
	return e
}

// uncertainReceipt says that the outcome of a write is unknown, and why as far as is known.
func (o *operation) uncertainReceipt(eventID string, markers []string, why *abi.Error) *abi.WriteReceipt {
	r := &abi.WriteReceipt{EventID: eventID, Status: abi.StatusUncertain, NativeIDs: []string{},
		NativeIDsKind: abi.NativeIDsNone, Markers: markers, Warnings: []string{}}
	if r.Markers == nil {
		r.Markers = []string{}
	}
	if !o.provider.has(abi.OpFindEvent) {
		r.Warnings = append(r.Warnings, warnNoFind)
	} else {
		r.Warnings = append(r.Warnings, warnUncertain+hintUncertain)
		r.RetryAfterMS = afterMS(o.provider.settle())
	}
	t := &abi.Trace{Consistency: consistencyOf(r.Status)}
	if why != nil {
		r.Warnings[0] += fmt.Sprintf(" (%s: %s)", why.Code, why.Message)
		t.Details = map[string]abi.Raw{"error": abi.Marshal(why)}
	}
	r.Trace = o.trace(t)
	r.LatencyMS = r.Trace.LatencyMS
	return r
}

// defaultSettle is how long after sending a request can still land, for a module that does not say.
const defaultSettle = 30 * time.Second

func (p *Provider) settle() time.Duration {
	if ms := p.module.Manifest.SettleMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return defaultSettle
}

// settle asks the backend about a write whose outcome is unknown. It returns the receipt to repeat, or resend:
// then nothing of the event has arrived, or w.resume says what. Only once no earlier request can still land is absence
// believed, and partial too.
func (o *operation) settle(ctx context.Context, known *ledgerEntry, w *pendingWrite) (receipt *abi.WriteReceipt,
	resend bool, err error) {
	if !o.provider.has(abi.OpFindEvent) {
		return o.stillOpen(known, w.event.EventID, nil, nil), false, nil
	}
	// Before the look: what lands between the backend's answer and a later reading of the clock was not seen.
	wait := o.untilSettled(ctx, w.event.EventID, known)
	found, failure := o.findEvent(ctx, w.event.EventID, w.event.SessionID, known)
	if failure != nil {
		e := abi.AsError(failure)
		after := e.RetryAfterMS
		if after == nil {
			after = afterMS(time.Second)
		}
		return o.stillOpen(known, w.event.EventID, e, after), false, nil
	}
	switch {
	case found.Found == answercheck.FoundPresent:
		entry := o.provider.found(w.event.EventID, known, found)
		var b state.Batch
		putLedger(&b, o.scope, o.state.Space(), w.event.EventID, entry)
		if err := o.commitArchived(ctx, &b, w.event); err != nil {
			return nil, false, err
		}
		return entry.receipt, false, nil
	case found.Found == answercheck.FoundUnknown:
		after := found.RetryAfterMS
		if after == nil {
			after = afterMS(max(wait, time.Second))
		}
		return o.stillOpen(known, w.event.EventID, later(after, "the backend cannot tell yet"), after), false, nil
	case wait > 0:
		after := afterMS(wait)
		has := "nothing"
		if found.Found == answercheck.FoundPartial {
			has = "a part"
		}
		return o.stillOpen(known, w.event.EventID, later(after, "the backend has "+has+" of it, and an earlier request "+
			"may still land"), after), false, nil
	case found.Found == answercheck.FoundPartial:
		w.resume = &abi.Resume{Missing: found.Missing, Markers: known.markers()}
	}
	return nil, true, nil
}

// stillOpen is the receipt of an event whose outcome is still unknown. After so many ms recording it again can settle
// it; nil where nothing can.
func (o *operation) stillOpen(known *ledgerEntry, eventID string, why *abi.Error, afterMS *int64) *abi.WriteReceipt {
	var r abi.WriteReceipt
	if known.receipt == nil {
		r = *o.uncertainReceipt(eventID, nil, why)
	} else {
		r = *known.receipt
		if !slices.Contains(r.Warnings, warnNoFind) {
			r.Warnings = append(slices.Clone(r.Warnings),
				warnUncertain+"the backend does not say yet whether it has all of it")
		}
	}
	r.RetryAfterMS = afterMS
	return &r
}

// later is why a look-up did not decide, and when to ask again.
func later(retryAfterMS *int64, message string) *abi.Error {
	e := abi.NewError(abi.CodeUnavailable, fmt.Sprintf("%s; ask again in %d ms", message, *retryAfterMS))
	e.RetryAfterMS = retryAfterMS
	return e
}

// findEvent enters the guest's find_event. Its native calls are part of the operation that needed it.
func (o *operation) findEvent(ctx context.Context, eventID, sessionID string,
	known *ledgerEntry) (found *abi.FindEventAnswer, err error) {
	ctx, child := o.slot.beginOn(ctx, o.provider, abi.OpFindEvent)
	defer child.end(&err)
	child.ioFrom, child.turn = o.ioFrom, o.turn
	if err = child.at(ctx, o.scope); err != nil {
		return nil, err
	}
	found = new(abi.FindEventAnswer)
	err = child.enter(ctx, &abi.FindEventRequest{EventID: eventID, SessionID: sessionID, Markers: known.markers(),
		SentAt: known.sentAt.UTC().Format(time.RFC3339Nano)}, found)
	o.IO = append(o.IO, child.IO...)
	o.Backend += child.Backend
	o.Guest += child.Guest
	if err != nil {
		return nil, err
	}
	return found, nil
}

// untilSettled is how long an earlier request of the event can still land; 0 when it no longer can. Where the clock has
// gone back behind the time of sending, that time becomes the present one, so that the wait has an end. What another
// host had sent before it ended counts as sent up to an operation's time ahead (inherit).
func (o *operation) untilSettled(ctx context.Context, eventID string, known *ledgerEntry) time.Duration {
	now := o.slot.host.now()
	if known.sentAt.After(now.Add(o.provider.deadline(abi.OpRecordEvent) + time.Second)) {
		known.sentAt = now
		var b state.Batch
		putLedger(&b, o.scope, o.state.Space(), eventID, known)
		if err := o.keep(ctx, &b); err != nil {
			o.provider.logger.Warn("the clock went back, and the ledger cannot be corrected", "error", err)
		}
	}
	return max(0, o.provider.settle()-now.Sub(known.sentAt))
}

// found is the record of an event that the backend turned out to have. With an immediate backend it is then committed;
// with others readiness has to see it first.
func (p *Provider) found(eventID string, known *ledgerEntry, answer *abi.FindEventAnswer) *ledgerEntry {
	r := &abi.WriteReceipt{EventID: eventID, Status: abi.StatusQueued, NativeIDs: answer.NativeIDs,
		NativeIDsKind: abi.NativeIDsFinal,
		Markers:       known.markers(), Warnings: []string{warnFound}}
	if len(r.Markers) == 0 && answer.Markers != nil {
		r.Markers = answer.Markers // those of the receipt went down with it
	}
	if len(r.NativeIDs) == 0 {
		r.NativeIDs, r.NativeIDsKind = []string{}, abi.NativeIDsNone
	}
	if p.consistency == answercheck.ConsistencyImmediate || !p.has(abi.OpReadiness) {
		r.Status, r.Markers = abi.StatusCommitted, []string{}
	}
	return &ledgerEntry{hash: known.hash, state: deliveryReceived, sentAt: known.sentAt, session: known.session,
		receipt: r}
}

// consistencyOf is what a write's status says of consistency.
func consistencyOf(status abi.WriteStatus) string {
	switch status {
	case abi.StatusQueued:
		return "queued"
	case abi.StatusCommitted:
		return "committed"
	case abi.StatusNotRetained:
		return "" // nothing was kept that could be consistent
	default:
		return "pending"
	}
}

// Values of tableTrimmed: why an event that the ledger does not know may have been recorded before.
const (
	trimmedByRetention byte = 1 // retention has dropped receipts
	trimmedByLoss      byte = 2 // the backend had the scope before this data folder had
)

const (
	warnScopeExisted = "scope_existed: the backend had this scope before the data folder did: an event that the " +
		"folder does not know is looked up before it is sent"
	warnNotLookedUp = "scope_existed: the backend had this scope before the data folder did, and " +
		"memory.lookup_existing is off: what the folder does not know is sent, and what was recorded before is doubled"
	warnMayDouble = "delivery_unverified: the backend had this scope before the data folder did, and %s: if the " +
		"event " +
		"was recorded before, it is stored twice now"
)

// noteExisted adds to a batch that the backend had a scope before this data folder was first used with it: the folder
// is new or was lost, and another one may have recorded events. A control without a backend has its scopes from its
// configuration.
func (o *operation) noteExisted(b *state.Batch, receipt *abi.SetupReceipt) {
	first := o.scope.record.Since == ""
	if !first || receipt.Existed == nil || !*receipt.Existed || len(o.provider.module.Manifest.Origins) == 0 {
		return
	}
	space := o.state.Space()
	b.PutRecord(tableTrimmed, space[:], []byte{trimmedByLoss})
	warning := warnScopeExisted
	if o.provider.config.NoLookup {
		warning = warnNotLookedUp
	}
	receipt.Warnings = append(receipt.Warnings, warning)
}

// lookUp finds out about an event that the ledger does not know, where it may have been recorded before. After
// retention has dropped receipts it counts as sent, with an unknown outcome. Where another data folder may have
// recorded it the backend is asked: known is its record when the backend has all of it, w.resume is set when it has a
// part. If the backend cannot tell, the event is sent, since this host never sent it, and the receipt says that it may
// be there twice: nothing is lost.
//
// Errors: those of find_event, and nothing was sent.
func (o *operation) lookUp(ctx context.Context, w *pendingWrite) (known *ledgerEntry, err error) {
	space := o.state.Space()
	why, err := o.slot.host.store.Record(ctx, tableTrimmed, space[:])
	if err != nil {
		return nil, stateError(err)
	}
	if len(why) == 0 {
		return nil, nil
	}
	lost, canAsk := why[0] == trimmedByLoss, o.provider.has(abi.OpFindEvent)
	// Sent perhaps, at any time before.
	perhaps := &ledgerEntry{hash: w.hash, state: deliverySent, sentAt: time.UnixMilli(0),
		session: w.event.SessionID}
	switch {
	case lost && o.provider.config.NoLookup:
		w.warning = fmt.Sprintf(warnMayDouble, "memory.lookup_existing is off")
		return nil, nil
	case lost && !canAsk:
		w.warning = fmt.Sprintf(warnMayDouble, "the provider cannot look events up (no find_event)")
		return nil, nil
	case !canAsk:
		return nil, nil
	case !lost:
		return perhaps, nil // the host has sent events that it no longer knows
	}
	found, err := o.findEvent(ctx, w.event.EventID, w.event.SessionID, perhaps)
	if err != nil {
		return nil, err
	}
	switch found.Found {
	case answercheck.FoundPresent:
		perhaps.sentAt = o.slot.host.now()
		known = o.provider.found(w.event.EventID, perhaps, found)
		var b state.Batch
		putLedger(&b, o.scope, space, w.event.EventID, known)
		return known, o.commitArchived(ctx, &b, w.event)
	case answercheck.FoundPartial:
		w.resume = &abi.Resume{Missing: found.Missing, Markers: []string{}}
	case answercheck.FoundUnknown:
		w.warning = fmt.Sprintf(warnMayDouble, "the backend cannot tell whether it has the event")
	}
	return nil, nil
}
