package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/memhost/memhost/abi"
)

const (
	// batchEvents is the maximum number of events in one call of record_events.
	batchEvents = 64
	// batchPeople is how many people's events of one batch are recorded at once. Most of that time is spent waiting for
	// a commit, and concurrent commits share one sync of the disk.
	batchPeople = 32
)

// RecordEvents implements Contract. An invalid event gets its own error and does not stop the others. The events of a
// scope are recorded in the batch's order; events of different people are recorded concurrently.
func (s *Slot) RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	return perform(ctx, s, abi.OpRecordEvents, batch, func(ctx context.Context) (*abi.BatchReceipts, error) {
		return s.recordEvents(ctx, batch)
	})
}

func (s *Slot) recordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	if len(batch.Events) == 0 {
		return nil, inOperation(abi.OpRecordEvents, abi.NewError(abi.CodeInvalidArgument, "events: want at least one"))
	}
	out := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
	queues := s.queuesOf(batch, out.Receipts)
	ctx = withSeats(ctx, max(s.host.limits.Pool-1, 1))
	var begun atomic.Int64
	work := func() {
		for i := begun.Add(1); i <= int64(len(queues)); i = begun.Add(1) {
			s.deliverQueue(ctx, *queues[i-1], out.Receipts)
		}
	}
	var others sync.WaitGroup
	for range min(len(queues), batchPeople) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return out, nil
}

// seatsKey is the context key of the number of guest calls that a batch may make at once.
type seatsKey struct{}

// withSeats limits a batch to n calls at once that are in the guest or wait for an instance. This leaves one instance
// for other callers. A call's deadline starts when it has its seat.
func withSeats(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, seatsKey{}, make(chan struct{}, n))
}

// takeSeat waits for a seat. A call that is not part of a batch needs none.
//
// Errors: timeout (busy) if ctx ends first.
func takeSeat(ctx context.Context) (leave func(), err error) {
	seats, _ := ctx.Value(seatsKey{}).(chan struct{})
	if seats == nil {
		return func() {}, nil
	}
	select {
	case seats <- struct{}{}:
		return func() { <-seats }, nil
	case <-ctx.Done():
		return nil, abi.WrapError(abi.CodeTimeout, "other events of the batch were still being recorded",
			context.Cause(ctx)).WithReason("busy")
	}
}

// batchCall is the part of a batch that goes into one call of the guest: events of one scope, without duplicates. at
// has their places in the batch.
type batchCall struct {
	events []*abi.MemoryEvent
	at     []int
}

// full reports whether an event cannot be added, and so has to go into the next call.
func (c *batchCall) full(e *abi.MemoryEvent) bool {
	return len(c.events) == batchEvents || !sameScope(c.events[0], e) ||
		slices.ContainsFunc(c.events, func(other *abi.MemoryEvent) bool { return other.EventID == e.EventID })
}

func sameScope(a, b *abi.MemoryEvent) bool {
	return a.RunID == b.RunID && a.UserID == b.UserID && a.AgentID == b.AgentID
}

// batchQueue lists calls that are made one after another.
type batchQueue []batchCall

// add appends an event to the last call, or to a new one.
func (q *batchQueue) add(e *abi.MemoryEvent, at int) {
	if len(*q) == 0 || (*q)[len(*q)-1].full(e) {
		*q = append(*q, batchCall{})
	}
	last := &(*q)[len(*q)-1]
	last.events, last.at = append(last.events, e), append(last.at, at)
}

// queuesOf sorts a batch into one queue per run and person. Two agents of a person share a queue, because they may
// share a scope: the provider decides that later. While a cassette is recorded there is one queue, in the batch's
// order. Invalid events are answered at their places.
//
//	ann 1, bob 2, ann 3, bob 4     [ann 1 3] and [bob 2 4]; recorded: [ann 1][bob 2][ann 3][bob 4]
func (s *Slot) queuesOf(batch *abi.EventBatch, receipts []abi.ReceiptOrError) []*batchQueue {
	type person struct{ run, user string }
	var queues []*batchQueue
	of := map[person]*batchQueue{}
	for i := range batch.Events {
		event := &batch.Events[i]
		if err := event.Validate(); err != nil {
			e := *abi.AsError(err)
			e.Operation, e.Message = abi.OpRecordEvents, fmt.Sprintf("events[%d].%s", i, e.Message)
			receipts[i] = abi.ReceiptOrError{EventID: event.EventID, Error: &e}
			continue
		}
		who := person{event.RunID, event.UserID}
		if s.host.recorded {
			who = person{}
		}
		if of[who] == nil {
			of[who] = new(batchQueue)
			queues = append(queues, of[who])
		}
		of[who].add(event, i)
	}
	return queues
}

// deliverQueue makes the calls of a queue, and writes the answers to their places in receipts.
func (s *Slot) deliverQueue(ctx context.Context, q batchQueue, receipts []abi.ReceiptOrError) {
	for _, call := range q {
		op := abi.OpRecordEvents
		if len(call.events) == 1 {
			op = abi.OpRecordEvent
		}
		for i, answer := range s.deliver(ctx, op, call.events, false) {
			receipts[call.at[i]] = answer
		}
	}
}
