package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// This file asks the backend what became of an event.

// defaultSettle is how long after sending a request may still arrive, for a module that does not declare it.
const defaultSettle = 30 * time.Second

func (p *Provider) settle() time.Duration {
	if ms := p.module.Manifest.SettleMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return defaultSettle
}

// Settling returns how long a record may take, and how long after it was sent a request may still arrive, both in ms.
// writes is false for a module that sends nothing but reads.
func (m *Module) Settling() (deadline, settle int64, writes bool) {
	if deadline = m.Manifest.DeadlinesMS[abi.OpRecordEvent]; deadline == 0 {
		deadline = defaultSettle.Milliseconds()
	}
	if settle = m.Manifest.SettleMS; settle == 0 {
		settle = defaultSettle.Milliseconds()
	}
	return deadline, settle, slices.ContainsFunc(m.Manifest.Routes, func(r abi.RouteDecl) bool { return r.Class != abi.ClassRead })
}

// SettleWarning warns of a settle_ms that is below the deadline of record_event: a turn that the backend takes later is
// sent again. Empty: there is nothing to warn of.
func (m *Module) SettleWarning() string {
	if deadline, settle, writes := m.Settling(); writes && settle < deadline {
		return fmt.Sprintf("settle_short: settle_ms is %d, and record_event may take %d ms: a turn that reaches the "+
			"backend later than settle_ms after it was sent can be there twice", settle, deadline)
	}
	return ""
}

// settle asks the backend about a write whose outcome is unknown. It returns the receipt to repeat, or resend: then
// nothing of the event has arrived, or w.resume says which part has. An answer that the event is absent or partial only
// counts once no earlier request can still arrive.
func (o *operation) settle(ctx context.Context, known *delivery.Entry, w *pendingWrite) (receipt *abi.WriteReceipt,
	resend bool, err error) {
	if !o.provider.has(abi.OpFindEvent) {
		return o.stillOpen(known, w.event.EventID, nil, nil), false, nil
	}
	// Read the clock before the lookup: a request that arrives between the backend's answer and a later reading would
	// be missed.
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
		delivery.Put(&b, o.scope.key, o.state.Space(), w.event.EventID, entry)
		if err := o.commitAccepted(ctx, &b, writelock.MoreFollow, w.event); err != nil {
			return nil, false, err
		}
		return entry.Receipt, false, nil
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
		w.resume = &abi.Resume{Missing: found.Missing, Markers: known.Markers()}
	}
	return nil, true, nil
}

// adopt records that the backend has an event that the ledger does not know.
func (w *write) adopt(ctx context.Context, e *abi.MemoryEvent, f *delivery.Facts) (*abi.WriteReceipt, error) {
	perhaps := f.PerhapsSent(e)
	perhaps.SentAt = w.slot.host.now()
	known := w.provider.found(e.EventID, perhaps, f.Lookup)
	var b state.Batch
	delivery.Put(&b, w.scope.key, w.state.Space(), e.EventID, known)
	if err := w.commitAccepted(ctx, &b, writelock.MoreFollow, e); err != nil {
		return nil, err
	}
	return w.repeatedReceipt(known.Receipt), nil
}

// findEvent enters the guest's find_event. Its native calls count as part of the operation that needed it.
func (o *operation) findEvent(ctx context.Context, eventID, sessionID string,
	known *delivery.Entry) (found *abi.FindEventAnswer, err error) {
	ctx, child := o.slot.beginOn(ctx, o.provider, abi.OpFindEvent)
	defer child.end(&err)
	child.ioFrom, child.lock = o.ioFrom, o.lock
	if err = child.at(ctx, o.scope); err != nil {
		return nil, err
	}
	found = new(abi.FindEventAnswer)
	err = child.enter(ctx, &abi.FindEventRequest{EventID: eventID, SessionID: sessionID, Markers: known.Markers(),
		SentAt: known.SentAt.UTC().Format(time.RFC3339Nano)}, found)
	o.IO = append(o.IO, child.IO...)
	o.Backend += child.Backend
	o.Guest += child.Guest
	if err != nil {
		return nil, err
	}
	return found, nil
}

// untilSettled is how long an earlier request of the event may still arrive; 0 if it no longer can. If the clock was
// set back to before the time of sending, that time becomes the present one, so that the wait ends. Requests of a host
// that has ended count as sent up to one operation's time in the future (inherit).
func (o *operation) untilSettled(ctx context.Context, eventID string, known *delivery.Entry) time.Duration {
	now := o.slot.host.now()
	if known.SentAt.After(now.Add(o.provider.deadline(abi.OpRecordEvent) + time.Second)) {
		known.SentAt = now
		var b state.Batch
		delivery.Put(&b, o.scope.key, o.state.Space(), eventID, known)
		if err := o.keep(ctx, &b); err != nil {
			o.provider.logger.Warn("the clock went back, and the ledger cannot be corrected", "error", err)
		}
	}
	return max(0, o.provider.settle()-now.Sub(known.SentAt))
}

// found is the ledger entry of an event that the backend turned out to have. With an immediate backend it is committed;
// with others readiness has to see it first.
func (p *Provider) found(eventID string, known *delivery.Entry, answer *abi.FindEventAnswer) *delivery.Entry {
	r := &abi.WriteReceipt{EventID: eventID, Status: abi.StatusQueued, NativeIDs: answer.NativeIDs,
		NativeIDsKind: abi.NativeIDsFinal,
		Markers:       known.Markers(), Warnings: []string{warnFound}}
	if len(r.Markers) == 0 && answer.Markers != nil {
		r.Markers = answer.Markers // the receipt with the markers was lost
	}
	if len(r.NativeIDs) == 0 {
		r.NativeIDs, r.NativeIDsKind = []string{}, abi.NativeIDsNone
	}
	if p.consistency == answercheck.ConsistencyImmediate || !p.has(abi.OpReadiness) {
		r.Status, r.Markers = abi.StatusCommitted, []string{}
	}
	return &delivery.Entry{Hash: known.Hash, State: delivery.Received, SentAt: known.SentAt, Session: known.Session,
		Receipt: r}
}

const (
	warnScopeExisted = "scope_existed: the backend had this scope before the data folder did: an event that the " +
		"folder does not know is looked up before it is sent"
	warnNotLookedUp = "scope_existed: the backend had this scope before the data folder did, and " +
		"memory.lookup_existing is off: what the folder does not know is sent, and what was recorded before is doubled"
	warnMayDouble = "delivery_unverified: the backend had this scope before the data folder did, and %s: if the " +
		"event " +
		"was recorded before, it is stored twice now"
)

// noteExisted records in a batch that the backend had a scope before this data folder was first used with it. The
// folder is then new or was lost, and another one may have recorded events. This does not apply to a control without a
// backend, whose scopes come from its configuration.
func (o *operation) noteExisted(b *state.Batch, receipt *abi.SetupReceipt) {
	first := o.scope.record.Since == ""
	if !first || receipt.Existed == nil || !*receipt.Existed || len(o.provider.module.Manifest.Origins) == 0 {
		return
	}
	delivery.PutGap(b, o.state.Space(), delivery.ScopeExisted)
	warning := warnScopeExisted
	if o.provider.config.NoLookup {
		warning = warnNotLookedUp
	}
	receipt.Warnings = append(receipt.Warnings, warning)
}
