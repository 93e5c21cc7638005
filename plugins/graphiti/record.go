package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent queues a turn. The receipt says queued, always: neither server tells more, and only the graph shows whether it was processed.
//
// Errors: invalid_argument for a time that Graphiti cannot have; what the server answers. An error may leave the turn queued: find_event looks.
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

// recordEvents queues turns in order: on REST all in one request, on MCP one after another. That is queueing, not Graphiti's add_episode_bulk, which no
// server offers. When a turn cannot be sent on MCP, those behind it are not either, so that the order holds.
func recordEvents(c *sdk.Call, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	last, _, err := readLast(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
	var turns []turn
	var at []int // the turns' places in the batch
	for i := range batch.Events {
		t, err := s.turnOf(&batch.Events[i])
		switch {
		case err != nil:
			answer.Receipts[i] = abi.ReceiptOrError{EventID: batch.Events[i].EventID, Error: abi.AsError(err)}
		case t == nil:
			answer.Receipts[i].Receipt = s.notRetained(&batch.Events[i])
		default:
			turns, at = append(turns, *t), append(at, i)
		}
	}
	sent, failure := s.send(c, gid, turns)
	now := millis(c.Now)
	for j := range turns {
		e := &batch.Events[at[j]]
		if j >= sent {
			answer.Receipts[at[j]] = abi.ReceiptOrError{EventID: e.EventID, Error: unsent(failure, j > sent && s.mcp)}
			continue
		}
		last = marker{seq: last.seq + 1, sentMS: now, eventMS: turns[j].atMS, name: e.EventID}
		answer.Receipts[at[j]].Receipt = s.queued(gid, e, last)
	}
	if sent == 0 {
		return answer, nil
	}
	return answer, last.keep(c)
}

// send gives the turns to the server and answers how many it took, with what stopped it.
func (s *settings) send(c *sdk.Call, gid string, turns []turn) (int, error) {
	if len(turns) == 0 {
		return 0, nil
	}
	if !s.mcp {
		if err := s.restMessages(c, gid, turns); err != nil {
			return 0, err
		}
		return len(turns), nil
	}
	for i := range turns {
		if err := s.mcpAdd(c, gid, &turns[i]); err != nil {
			return i, err
		}
	}
	return len(turns), nil
}

// unsent is the error of a turn that was not taken; behind tells that it was not even sent.
func unsent(err error, behind bool) *abi.Error {
	if !behind {
		return abi.AsError(err)
	}
	e := abi.NewError(abi.CodeUnavailable, "not sent: an earlier turn of the batch failed: "+abi.AsError(err).Message).WithReason("not_sent")
	return e.WithHint("record it again")
}

func (s *settings) queued(gid string, e *abi.MemoryEvent, m marker) *abi.WriteReceipt {
	operation := "POST /messages"
	if s.mcp {
		operation = "add_memory"
	}
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsNone, Markers: []string{m.String()},
		Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: operation, Consistency: "queued",
			Details: map[string]abi.Raw{"group_id": sdk.Text(gid), "surface": sdk.Text(s.surface()), "ingest_mode": sdk.Text(s.source)}}}
}

func (s *settings) notRetained(e *abi.MemoryEvent) *abi.WriteReceipt {
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusNotRetained, NativeIDsKind: abi.NativeIDsNone,
		Warnings: []string{"roles_excluded: the configuration ingests none of the roles in this turn; nothing was sent"},
		Trace:    &abi.Trace{BackendName: s.config.Provider}}
}
