package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent gives a turn to Graphiti. Behind its own servers the receipt says queued, always: neither tells more, and only the graph shows whether it was processed.
// On core it says committed, with what was stored, or queued where receipts: queued is configured.
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

// recordEvents gives turns to Graphiti in order: on REST all in one request, on MCP and core one after another, which is not add_episode_bulk. That is sent only on
// core, and only where bulk: native is configured. When a turn cannot be sent, those behind it are not either, so that the order holds.
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
	events := make([]*abi.MemoryEvent, len(turns))
	for j := range turns {
		events[j] = &batch.Events[at[j]]
	}
	now := millis(c.Now)
	receipts, failure := s.send(c, gid, now, events, turns, last.seq)
	sent := len(receipts)
	for j := range turns {
		if j < sent {
			answer.Receipts[at[j]].Receipt = receipts[j]
			last = marker{seq: last.seq + 1, sentMS: now, eventMS: turns[j].atMS, name: turns[j].name}
			continue
		}
		behind := j > sent && (s.mcp || s.core && !s.library.bulk)
		answer.Receipts[at[j]] = abi.ReceiptOrError{EventID: turns[j].name, Error: unsent(failure, behind)}
	}
	if sent == 0 {
		return answer, nil
	}
	return answer, last.keep(c)
}

// send gives the turns to the server, seq being the number of the last one before them and now the time of the call, and answers the receipts of those that it
// took, with what stopped it.
func (s *settings) send(c *sdk.Call, gid string, now int64, events []*abi.MemoryEvent, turns []turn, seq int64) (receipts []*abi.WriteReceipt, err error) {
	if len(turns) == 0 {
		return nil, nil
	}
	if s.core {
		return s.coreDeliver(c, gid, events, turns, seq)
	}
	if !s.mcp {
		if err := s.restMessages(c, gid, turns); err != nil {
			return nil, err
		}
	}
	for i := range turns {
		if s.mcp {
			if err := s.mcpAdd(c, gid, &turns[i]); err != nil {
				return receipts, err
			}
		}
		m := marker{seq: seq + int64(i) + 1, sentMS: now, eventMS: turns[i].atMS, name: turns[i].name}
		receipts = append(receipts, s.queued(gid, events[i], m))
	}
	return receipts, nil
}

// unsent is the error of a turn that was not taken; behind tells that it was not even sent.
func unsent(err error, behind bool) *abi.Error {
	if !behind {
		return abi.AsError(err)
	}
	e := abi.NewError(abi.CodeUnavailable, "not sent: an earlier turn of the batch failed: "+abi.AsError(err).Message).WithReason("not_sent")
	e.NothingStored = true
	return e.WithHint("record it again")
}

func (s *settings) queued(gid string, e *abi.MemoryEvent, m marker) *abi.WriteReceipt {
	operation := "POST /messages"
	if s.mcp {
		operation = "add_memory"
	}
	t := s.writeTrace(gid, operation)
	t.Consistency = "queued"
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsNone, Markers: []string{m.String()}, Trace: t}
}

func (s *settings) notRetained(e *abi.MemoryEvent) *abi.WriteReceipt {
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusNotRetained, NativeIDsKind: abi.NativeIDsNone,
		Warnings: []string{"roles_excluded: the configuration ingests none of the roles in this turn; nothing was sent"},
		Trace:    &abi.Trace{BackendName: s.config.Provider}}
}
