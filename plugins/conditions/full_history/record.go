package main

import (
	"bytes"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent stores the turn whole. It is committed with the receipt, in one transaction.
//
// Errors: conflict if the scope holds the event id with other content; those of the state.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	w, err := newWriter(c)
	if err != nil {
		return nil, err
	}
	receipt, err := w.add(e, c.Body())
	if err != nil {
		return nil, err
	}
	return receipt, w.close()
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
		receipt, err := w.add(e, abi.Marshal(e))
		switch {
		case err == nil:
			answer.Receipts[i].Receipt = receipt
		case abi.CodeOf(err) == abi.CodeConflict || abi.CodeOf(err) == abi.CodeInvalidArgument:
			answer.Receipts[i] = abi.ReceiptOrError{EventID: e.EventID, Error: abi.AsError(err)}
		default:
			return nil, err
		}
	}
	return answer, w.close()
}

// writer stores turns and counts them.
type writer struct {
	call     *sdk.Call
	settings *settings
	total    tally
	added    bool
}

func newWriter(c *sdk.Call) (*writer, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	held, err := readTally(c)
	return &writer{call: c, settings: s, total: held}, err
}

// add stores a turn under the next arrival number, or returns a receipt for the turn already stored.
func (w *writer) add(e *abi.MemoryEvent, stored []byte) (*abi.WriteReceipt, error) {
	at, err := abi.ParseTime(e.Timestamp)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "timestamp: "+abi.AsError(err).Message)
	}
	index := eventKey(e.EventID)
	known, version, err := w.call.Get(index)
	if err != nil {
		return nil, err
	}
	if len(known) > 0 {
		return w.repeatReceipt(e, string(known))
	}
	key := turnKey(at, w.total.arrived+1)
	if err := w.call.Put(key, stored, 0); err != nil {
		return nil, err
	}
	if err := w.call.Put(index, []byte(key), version); err != nil {
		return nil, err
	}
	w.total.turns++
	w.total.arrived++
	w.total.bytes += int64(len(stored))
	w.added = true
	return w.receipt(e, key, 1), nil
}

// repeatReceipt returns the receipt of an event that the scope already holds. Usually the host's ledger does so first;
// this covers events that the ledger has dropped.
func (w *writer) repeatReceipt(e *abi.MemoryEvent, key string) (*abi.WriteReceipt, error) {
	stored, _, err := w.call.Get(key)
	if err != nil {
		return nil, err
	}
	var before abi.MemoryEvent
	if err := abi.Unmarshal(stored, &before); err != nil {
		return nil, unreadable(key)
	}
	if !bytes.Equal(abi.Marshal(&before), abi.Marshal(e)) {
		return nil, abi.NewError(abi.CodeConflict, "event_id: the scope holds this id with other content")
	}
	receipt := w.receipt(e, key, 0)
	receipt.Duplicate = true
	receipt.Warnings = []string{"duplicate_event: the scope holds this turn already; nothing was stored"}
	return receipt, nil
}

func (w *writer) receipt(e *abi.MemoryEvent, key string, count int64) *abi.WriteReceipt {
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDs: []string{key},
		NativeIDsKind: abi.NativeIDsFinal,
		StoredCount:   &count, Trace: &abi.Trace{BackendName: w.settings.config.Provider, NativeOperation: "state_put",
			NativeIDs: []string{key}, Consistency: "committed"}}
}

func (w *writer) close() error {
	if !w.added {
		return nil
	}
	return w.total.write(w.call)
}
