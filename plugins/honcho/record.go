package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// postLimit is the maximum number of messages per call. A call is one transaction: all of them are stored, or none.
const postLimit = 100

// recordEvent sends a turn as messages of its session, up to 100 in one call.
//
// Out: queued: the messages are committed, but not yet processed by the deriver. partial if sending an event of more
// than 100 pieces failed halfway.
// Errors: Honcho's own, typed. Reason not_stored: Honcho was asked afterwards and does not have the event. Reason
// uncertain: it may have it.
// Source: Honcho POST /v3/workspaces/{ws}/sessions/{s}/messages, which has no idempotency.
func recordEvent(b *backend, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	if b.Again {
		receipt, err := recordAgain(b, e)
		if receipt != nil || err != nil {
			return receipt, err
		}
	}
	w, err := newWriter(b)
	if err != nil {
		return nil, err
	}
	job, err := w.prepare(e, b.Resume)
	if err != nil {
		return nil, err
	}
	w.deliver([]*delivery{job})
	if job.err != nil {
		return nil, job.err
	}
	return job.receipt, w.close()
}

// recordAgain repeats the derivation of an event from which nothing was derived. Its messages exist, so sending the
// event would duplicate them. The receipt is nil if Honcho does not have them.
func recordAgain(b *backend, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	into, stored, err := b.deriveAgain(e.EventID, e.SessionID)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	m := marker{sentAt: b.Now, session: into, event: e.EventID, rows: int64(len(stored))}
	r := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsFinal,
		StoredCount: sdk.Ptr(int64(len(stored))), Trace: b.trace("messages")}
	for i := range stored {
		m.tokens += stored[i].tokens
		r.NativeIDs = append(r.NativeIDs, stored[i].id)
	}
	r.Markers, r.Trace.NativeIDs = []string{m.String()}, r.NativeIDs
	return r, nil
}

// recordEvents is recordEvent for each event, in order. Consecutive events of a session share calls of up to 100
// messages. Events that Honcho rejects are sent one by one, so that a bad one does not stop the others; after a write
// with an unknown outcome nothing more is sent, to keep the order.
func recordEvents(b *backend, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	w, err := newWriter(b)
	if err != nil {
		return nil, err
	}
	answer := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
	jobs := make([]*delivery, len(batch.Events))
	var group []*delivery
	size := 0
	flush := func() {
		if len(group) > 0 {
			w.deliver(group)
		}
		group, size = nil, 0
	}
	for i := range batch.Events {
		job, err := w.prepare(&batch.Events[i], nil)
		if jobs[i] = job; err != nil {
			jobs[i] = &delivery{event: &batch.Events[i], err: abi.AsError(err)}
			continue
		}
		if size > 0 && (job.session != group[0].session || size+len(job.pieces) > postLimit) {
			flush()
		}
		group, size = append(group, job), size+len(job.pieces)
	}
	flush()
	for i, job := range jobs {
		if answer.Receipts[i].Receipt = job.receipt; job.err != nil {
			answer.Receipts[i] = abi.ReceiptOrError{EventID: job.event.EventID, Error: job.err}
		}
	}
	return answer, w.close()
}

// delivery is the delivery of one event.
type delivery struct {
	event    *abi.MemoryEvent
	session  string
	pieces   []piece // pieces to be sent
	warnings []string

	stored  []message
	receipt *abi.WriteReceipt
	err     *abi.Error
}

// writer sends events of one scope.
type writer struct {
	*backend
	posted queueMark
	// writtenSessions are the sessions that were written to, by native id.
	writtenSessions map[string]string
	// broken is set after a write with an unknown outcome.
	broken *abi.Error
}

func newWriter(b *backend) (*writer, error) {
	p, err := readPosted(b.Call)
	return &writer{backend: b, posted: p, writtenSessions: map[string]string{}}, err
}

func (w *writer) close() error {
	for _, native := range abi.SortedKeys(w.writtenSessions) {
		err := w.Put(sessionPrefix+native, []byte(w.writtenSessions[native]), sdk.AnyVersion)
		if err != nil {
			return err
		}
	}
	return w.posted.write(w.Call)
}

// count adds rows that a write added to the deriver's queue, for a session given by its native and its own id.
func (w *writer) count(native, session string, rows int64) {
	w.posted.rows += rows
	w.posted.lastAt = w.Now
	if rows > 0 {
		w.writtenSessions[native] = session
	}
}

// prepare makes an event's pieces; after a partial write, only the missing ones.
func (w *writer) prepare(e *abi.MemoryEvent, resume *abi.Resume) (*delivery, error) {
	err := w.meet(e)
	if err != nil {
		return nil, err
	}
	pieces, warnings, err := w.pieces(e)
	if err != nil {
		return nil, err
	}
	d := &delivery{event: e, session: w.session(e.SessionID), pieces: pieces, warnings: warnings}
	if resume == nil || len(resume.Missing) == 0 {
		return d, nil
	}
	wanted, ok := inRanges(resume.Missing, len(pieces))
	if !ok {
		return nil, abi.NewError(abi.CodeInternal, "resume.missing: no ranges of the "+
			"event's "+sdk.Itoa(len(pieces))+" pieces")
	}
	d.pieces = nil
	for i, p := range pieces {
		if wanted[i] {
			d.pieces = append(d.pieces, p)
		}
	}
	return d, nil
}

// deliver sends the deliveries of one session. They have at most 100 pieces in total, unless there is only one
// delivery.
func (w *writer) deliver(group []*delivery) {
	if w.broken != nil {
		for _, d := range group {
			e := abi.NewError(abi.CodeUnavailable, "not sent: the outcome of an earlier event of this batch is not "+
				"known").WithReason("not_sent")
			e.Native = w.broken.Native
			d.err = e
		}
		return
	}
	if len(group) == 1 {
		w.deliverOne(group[0])
		return
	}
	var pieces []piece
	for _, d := range group {
		pieces = append(pieces, d.pieces...)
	}
	stored, err := w.post(group[0].session, pieces)
	switch {
	case err == nil:
		for _, d := range group {
			d.stored, stored = stored[:len(d.pieces)], stored[len(d.pieces):]
			w.finish(d)
		}
	case err.Reason == reasonNotStored:
		for _, d := range group {
			w.deliver([]*delivery{d})
		}
	default:
		w.broken = err
		for _, d := range group {
			d.err = err
		}
	}
}

// deliverOne sends one event, in calls of up to 100 pieces.
func (w *writer) deliverOne(d *delivery) {
	for rest := d.pieces; len(rest) > 0; {
		n := min(len(rest), postLimit)
		stored, err := w.post(d.session, rest[:n])
		if err != nil {
			if err.Reason != reasonNotStored {
				w.broken = err
			}
			if len(d.stored) == 0 {
				d.err = err
				return
			}
			d.warnings = append(d.warnings, "partial_write: "+sdk.Itoa(len(d.stored))+" "+
				"of "+sdk.Itoa(len(d.pieces))+" messages were stored, then: "+err.Message)
			break
		}
		d.stored, rest = append(d.stored, stored...), rest[n:]
	}
	w.finish(d)
}

// finish makes the receipt of stored pieces.
func (w *writer) finish(d *delivery) {
	m := marker{sentAt: w.Now, session: d.session, event: d.event.EventID}
	r := &abi.WriteReceipt{EventID: d.event.EventID, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsFinal,
		StoredCount: sdk.Ptr(int64(len(d.stored))), Warnings: d.warnings, Trace: w.trace("messages")}
	tokens := int64(0)
	for i, stored := range d.stored {
		r.NativeIDs = append(r.NativeIDs, stored.id)
		tokens += stored.tokens
		if d.pieces[i].observed {
			m.rows++
			m.tokens += stored.tokens
		}
	}
	if len(d.stored) < len(d.pieces) {
		r.Status = abi.StatusPartial
	}
	r.Markers = []string{m.String()}
	r.Trace.NativeIDs, r.Trace.TokenCount = r.NativeIDs, &tokens
	r.Trace.Details = wire.Object{"session", d.session, "rows", m.rows}.Map()
	w.count(d.session, d.event.SessionID, m.rows)
	d.receipt = r
}
