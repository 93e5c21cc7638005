package run

import (
	"context"
	"errors"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/stretchr/testify/assert"
)

// receipts is a slot that answers RecordEvent with one receipt after another, and then repeats the last.
type receipts struct {
	slot
	list []abi.ReceiptOrError
	next int
}

func (s *receipts) RecordEvent(context.Context, *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	now := s.list[min(s.next, len(s.list)-1)]
	s.next++
	if now.Error != nil {
		return nil, now.Error
	}
	return now.Receipt, nil
}

func TestAnUncertainEventIsRecordedAgainWithinTheWait(t *testing.T) {
	uncertain := abi.ReceiptOrError{Receipt: &abi.WriteReceipt{Status: abi.StatusUncertain,
		RetryAfterMS: new(int64(100))}}
	committed := abi.ReceiptOrError{Receipt: &abi.WriteReceipt{Status: abi.StatusCommitted, Duplicate: true}}
	down := abi.ReceiptOrError{Error: abi.NewError(abi.CodeUnavailable, "down")}
	for name, c := range map[string]struct {
		answers []abi.ReceiptOrError
		want    abi.WriteStatus
		again   int
	}{
		"settled at once":         {[]abi.ReceiptOrError{committed}, abi.StatusCommitted, 1},
		"settled after an outage": {[]abi.ReceiptOrError{uncertain, down, committed}, abi.StatusCommitted, 3},
		"open when time is over":  {[]abi.ReceiptOrError{uncertain}, abi.StatusUncertain, 4},
		"refused": {[]abi.ReceiptOrError{{Error: abi.NewError(abi.CodeConflict, "other content")}}, abi.StatusUncertain,
			1},
		"no retry settles it": {[]abi.ReceiptOrError{{Receipt: &abi.WriteReceipt{Status: abi.StatusUncertain}}},
			abi.StatusUncertain, 1},
	} {
		p := &persona{cell: &cell{runner: &runner{}, slot: &receipts{list: c.answers}}}
		p.Run = &rundir.Run{Lab: labOf(t, "readiness: {timeout_ms: 450}\nproviders: [no_memory]\n")}
		r := &journal.Record{Status: abi.StatusUncertain}
		assert.NoError(t, p.settle(t.Context(), &abi.MemoryEvent{}, uncertain.Receipt, r), name)
		assert.Equal(t, c.want, r.Status, name)
		assert.Equal(t, c.again, r.Again, name)
		assert.False(t, r.Duplicate, name)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	gone := errors.New("interrupted")
	stop(gone)
	p := &persona{cell: &cell{runner: &runner{}, slot: &receipts{}}}
	p.Run = &rundir.Run{Lab: labOf(t, "providers: [no_memory]\n")}
	assert.ErrorIs(t, p.settle(stopped, &abi.MemoryEvent{}, uncertain.Receipt, &journal.Record{
		Status: abi.StatusUncertain}), gone)
}
