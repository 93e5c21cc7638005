package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
)

// This file has the answers that the host itself gives to writes: its own receipts, and what it adds to those of
// guests.

// repeatedReceipt answers an event that was recorded before: it returns the first receipt with its present status. The
// receipt is called a duplicate only if the event is known to have arrived.
func (o *operation) repeatedReceipt(receipt *abi.WriteReceipt) *abi.WriteReceipt {
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

// skipped is the receipt of an event that was not recorded because its scope is read-only.
func (o *operation) skipped(e *abi.MemoryEvent, warning string) *abi.WriteReceipt {
	o.wallSkipped++
	r := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusSkippedReadOnly, NativeIDsKind: abi.NativeIDsNone,
		Warnings: []string{warning}, Trace: o.trace(nil)}
	r.LatencyMS = r.Trace.LatencyMS
	return r
}

// complete fills in the host's fields of a guest's receipt.
func (o *operation) complete(r *abi.WriteReceipt, e *abi.MemoryEvent) {
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

// withDoubt completes the error of a write that may have arrived in part. The write can be settled, and so retried, if
// the provider can look the event up.
func (o *operation) withDoubt(e *abi.Error) *abi.Error {
	settled := *e
	settled.Retryable = o.provider.has(abi.OpFindEvent)
	if settled.Retryable {
		settled.Hint = joinHints(e.Hint, hintUncertain)
	} else {
		settled.Hint = joinHints(e.Hint, hintNoFind)
	}
	return &settled
}

// afterMS returns a waiting time in milliseconds, at least 1.
func afterMS(d time.Duration) *int64 {
	ms := max(d.Milliseconds(), 1)
	return &ms
}

// uncertainReceipt says that the outcome of a write is unknown, with the reason if there is one.
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

// answerLate answers the events of a late write: each is uncertain, and its receipt says why.
func (w *write) answerLate(why *abi.Error) {
	for _, one := range w.sending {
		r := w.uncertainReceipt(one.event.EventID, nil, why)
		r.Warnings = append(r.Warnings, warnLateWrite+"host "+w.slot.host.name+" sent it after its session had ended, when "+
			"another host may have acted for the scope")
		w.answers[one.at].Receipt = r
	}
}

// stillOpen is the receipt of an event whose outcome is still unknown. Recording the event again after afterMS can
// settle it; nil means that nothing can.
func (o *operation) stillOpen(known *delivery.Entry, eventID string, why *abi.Error, afterMS *int64) *abi.WriteReceipt {
	var r abi.WriteReceipt
	if known.Receipt == nil {
		r = *o.uncertainReceipt(eventID, nil, why)
	} else {
		r = *known.Receipt
		if !slices.Contains(r.Warnings, warnNoFind) {
			r.Warnings = append(slices.Clone(r.Warnings),
				warnUncertain+"the backend does not say yet whether it has all of it")
		}
	}
	r.RetryAfterMS = afterMS
	return &r
}

// later says why a lookup did not decide, and when to ask again.
func later(retryAfterMS *int64, message string) *abi.Error {
	e := abi.NewError(abi.CodeUnavailable, fmt.Sprintf("%s; ask again in %d ms", message, *retryAfterMS))
	e.RetryAfterMS = retryAfterMS
	return e
}

// errOtherContent rejects an event whose id is in the ledger with other content.
func errOtherContent(op, eventID string) *abi.Error {
	e := abi.NewError(abi.CodeConflict, fmt.Sprintf("event_id: %.80q was recorded before with other content",
		eventID)).WithReason("event_content")
	e.Operation = op
	return e
}

// mayDouble is the warning for an event that may now be stored twice.
func mayDouble(f *delivery.Facts) string {
	if f.Lookup != nil {
		return fmt.Sprintf(warnMayDouble, "the backend cannot tell whether it has the event")
	}
	return fmt.Sprintf(warnMayDouble, f.NotAsked)
}

// consistencyOf returns the consistency that a write's status implies.
func consistencyOf(status abi.WriteStatus) string {
	switch status {
	case abi.StatusQueued:
		return "queued"
	case abi.StatusCommitted:
		return "committed"
	case abi.StatusNotRetained:
		return "" // nothing was stored
	default:
		return "pending"
	}
}
