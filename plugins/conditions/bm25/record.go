package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// recordEvent stores the messages and indexes their words. It is committed with the receipt, in one transaction.
//
// Errors: conflict if the scope holds the event id with other content; those of the state.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	w, err := newWriter(c)
	if err != nil {
		return nil, err
	}
	receipt, err := w.add(e)
	if err != nil {
		return nil, err
	}
	w.warn(w.embed(), receipt)
	w.close()
	return receipt, w.Err()
}

// recordEvents is recordEvent for each, in order. An event that cannot be stored does not stop the others; a state
// that fails stops all.
func recordEvents(c *sdk.Call, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	w, err := newWriter(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
	for i := range batch.Events {
		e := &batch.Events[i]
		receipt, err := w.add(e)
		if err != nil {
			answer.Receipts[i] = abi.ReceiptOrError{EventID: e.EventID, Error: abi.AsError(err)}
		} else {
			answer.Receipts[i].Receipt = receipt
		}
	}
	if err := w.embed(); err != nil {
		for i := range answer.Receipts {
			w.warn(err, answer.Receipts[i].Receipt)
		}
	}
	w.close()
	return answer, w.Err()
}

// writer stores messages. It writes postings and counts once for all messages of an operation.
type writer struct {
	*state.State
	settings *settings
	stored   collection
	changed  bool
	postings map[string]*postings
}

func newWriter(c *sdk.Call) (*writer, error) {
	settings, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	s := state.Of(c)
	return &writer{State: s, settings: settings, stored: readCollection(s), postings: map[string]*postings{}}, nil
}

// add stores an event's messages, or returns a receipt for those already stored.
//
// Errors: conflict when the scope holds the event id with other content.
func (w *writer) add(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	digest := sdk.DigestBytes(abi.Marshal(e))
	x := eventEntry{}
	if w.Load(eventKey(e.EventID), x.members()...) != 0 {
		if x.digest != digest {
			return nil, abi.NewError(abi.CodeConflict, "event_id: the scope holds this id with other content")
		}
		receipt := w.receipt(e, &x)
		receipt.StoredCount, receipt.Duplicate = new(int64), true
		receipt.Warnings = []string{"duplicate_event: the scope holds this event already; nothing was stored"}
		return receipt, nil
	}
	messages := messagesOf(e)
	x = eventEntry{digest: digest, first: w.stored.messages + 1, last: w.stored.messages + int64(len(messages))}
	for _, m := range messages {
		w.index(m)
	}
	w.Store(eventKey(e.EventID), 0, x.members()...)
	return w.receipt(e, &x), nil
}

// warn adds a warning to the receipt of a stored turn that has no vectors yet.
func (w *writer) warn(err error, r *abi.WriteReceipt) {
	if err != nil && r != nil && r.Status == abi.StatusCommitted && !r.Duplicate {
		r.Warnings = append(r.Warnings, embedderFailed(err)+"; the turn is stored, and words find it; a later turn embeds it")
	}
}

// index stores a message after the others.
func (w *writer) index(m *message) {
	w.changed = true
	w.stored.messages++
	w.Append(messageLog, object.Encode(m.members()...))
	if w.settings.recall {
		w.Put(whenKey(m, w.stored.messages), []byte(sdk.Itoa(w.stored.messages)), 0)
	}
	list := terms(m.document())
	w.stored.words += int64(len(list))
	counts := count(list)
	for _, term := range abi.SortedKeys(counts) {
		w.of(term).add(w.State, term, w.stored.messages, counts[term], int64(len(list)))
	}
}

// of returns a term's postings.
func (w *writer) of(term string) *postings {
	p := w.postings[term]
	if p == nil {
		p = readPostings(w.State, term)
		w.postings[term] = p
	}
	return p
}

// close writes the changed postings in byte order, so that the same events cause the same writes. The key of a term
// without messages is removed.
func (w *writer) close() {
	if !w.changed {
		return
	}
	for _, term := range abi.SortedKeys(w.postings) {
		if p := w.postings[term]; p.with > 0 {
			p.write(w.State, term)
		} else {
			w.Delete(blockPrefix + term + "/")
			w.Remove(termPrefix + term)
		}
	}
	w.Store(countKey, w.stored.version, w.stored.members()...)
}

func (w *writer) receipt(e *abi.MemoryEvent, x *eventEntry) *abi.WriteReceipt {
	ids := x.nativeIDs()
	r := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDs: ids,
		NativeIDsKind: abi.NativeIDsFinal,
		StoredCount:   sdk.Ptr(int64(len(ids))), Trace: &abi.Trace{BackendName: w.settings.config.Provider,
			NativeOperation: "state_append",
			NativeIDs:       ids, Consistency: "committed"}}
	if len(ids) == 0 {
		r.Status, r.NativeIDsKind = abi.StatusNotRetained, abi.NativeIDsNone
		r.Warnings = []string{"nothing_said: the turn has no text; nothing was stored"}
	}
	return r
}
