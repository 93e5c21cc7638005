package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent sends a turn to Graphiti. With its own servers the receipt always says queued, because only the graph
// shows whether the turn was processed. On core it says committed, with what was stored, or queued if receipts: queued
// is configured.
//
// Errors: invalid_argument for a time that Graphiti cannot store; those of the server. The turn may be queued despite
// an error: find_event checks.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	answer, err := recordEvents(c, &abi.EventBatch{Events: []abi.MemoryEvent{*e}})
	if err != nil {
		return nil, err
	}
	if failed := answer.Receipts[0].Error; failed != nil {
		return nil, failed
	}
	return answer.Receipts[0].Receipt, nil
}

// recordEvents sends turns to Graphiti in order: on REST all in one request, on MCP and core one after another.
// add_episode_bulk is used only on core with bulk: native.
func recordEvents(c *sdk.Call, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	last, _, err := v.readLast()
	if err != nil {
		return nil, err
	}
	receipts := make([]abi.ReceiptOrError, len(batch.Events))
	var turns []turn
	var places []int // indexes of the turns in the batch
	for i := range batch.Events {
		t, err := v.turnOf(&batch.Events[i])
		switch {
		case err != nil:
			receipts[i] = abi.ReceiptOrError{EventID: batch.Events[i].EventID, Error: abi.AsError(err)}
		case t == nil:
			receipts[i].Receipt = v.notRetained(batch.Events[i].EventID)
		default:
			turns, places = append(turns, *t), append(places, i)
		}
	}
	answer := &abi.BatchReceipts{Receipts: receipts}
	if len(turns) == 0 {
		return answer, nil
	}
	begin := last.seq
	for j, outcome := range v.surface.add(v, turns, begin) {
		receipts[places[j]] = outcome
		if outcome.Receipt != nil {
			last = v.mark(&turns[j], last.seq+1)
		}
	}
	if last.seq == begin {
		return answer, nil
	}
	return answer, v.keepLast(last)
}

// mark makes the marker of a turn that is sent now.
func (v *scopedCall) mark(t *turn, seq int64) marker {
	return marker{seq: seq, sentMS: millis(v.Now), eventMS: t.atMS, name: t.name}
}

// oneByOne sends turns in order. If one cannot be sent, those after it are not sent either, to keep the order.
func oneByOne(turns []turn, send func(i int) (*abi.WriteReceipt, error)) []abi.ReceiptOrError {
	list := make([]abi.ReceiptOrError, len(turns))
	for i := range turns {
		receipt, err := send(i)
		if err != nil {
			return append(append(list[:i], failAll(turns[i:i+1], err)...), failAll(turns[i+1:], notSent(err))...)
		}
		list[i].Receipt = receipt
	}
	return list
}

// failAll sets the outcome of turns that failed together.
func failAll(turns []turn, err error) []abi.ReceiptOrError {
	list := make([]abi.ReceiptOrError, len(turns))
	for i := range turns {
		list[i] = abi.ReceiptOrError{EventID: turns[i].name, Error: abi.AsError(err)}
	}
	return list
}

func notSent(err error) error {
	e := abi.NewError(abi.CodeUnavailable, "not sent: an earlier turn of the batch failed: "+abi.AsError(err).Message).
		WithReason("not_sent").WithHint("record it again")
	e.NothingStored = true
	return e
}

// queuedReceipt returns the receipt of a queued turn.
func (v *scopedCall) queuedReceipt(m marker, operation string) *abi.WriteReceipt {
	t := v.writeTrace(operation)
	t.Consistency = "queued"
	return &abi.WriteReceipt{EventID: m.name, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsNone,
		Markers: []string{m.String()}, Trace: t}
}

func (v *scopedCall) writeTrace(operation string) *abi.Trace {
	t := v.trace(operation)
	t.Details = map[string]abi.Raw{"group_id": sdk.Text(v.group),
		"surface": sdk.Text(v.name), "ingest_mode": sdk.Text(v.source)}
	return t
}

func (v *scopedCall) notRetained(event string) *abi.WriteReceipt {
	warning := "roles_excluded: the configuration ingests none of the roles in this turn; nothing was sent"
	return &abi.WriteReceipt{EventID: event, Status: abi.StatusNotRetained, NativeIDsKind: abi.NativeIDsNone,
		Trace: v.trace(""), Warnings: []string{warning}}
}
