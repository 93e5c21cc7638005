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
	// batchEvents is how many events one call of record_events carries at most.
	batchEvents = 64
	// batchPeople is how many people's events of one batch are recorded at once. Most of the time they wait for a
	// commit, and commits that wait together share one sync of the disk.
	batchPeople = 32
)

// RecordEvents implements Contract. An invalid event gets its own error and does not stop the others. The events of a
// scope are recorded in the batch's order, different people's side by side.
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

// seatsKey is the context's key of the seats that a batch has in the guest.
type seatsKey struct{}

// withSeats lets at most n calls of a batch be in the guest, or wait for an instance, at once. One instance is left for
// other callers, and the deadline of a call begins when it has its seat.
func withSeats(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, seatsKey{}, make(chan struct{}, n))
}

// takeSeat waits for a seat. A call that is no part of a batch needs none.
//
// Errors: timeout (busy) when ctx ends first.
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

// batchCall is what one call of the guest gets of a batch: events of one scope, none twice. at are their places.
type batchCall struct {
	events []*abi.MemoryEvent
	at     []int
}

// full reports whether an event cannot be added: the call after this one gets it.
func (c *batchCall) full(e *abi.MemoryEvent) bool {
	return len(c.events) == batchEvents || !sameScope(c.events[0], e) ||
		slices.ContainsFunc(c.events, func(other *abi.MemoryEvent) bool { return other.EventID == e.EventID })
}

func sameScope(a, b *abi.MemoryEvent) bool {
	return a.RunID == b.RunID && a.UserID == b.UserID && a.AgentID == b.AgentID
}

// batchQueue are calls that are made one after another.
type batchQueue []batchCall

// add puts an event into the last call, or into a new one.
func (q *batchQueue) add(e *abi.MemoryEvent, at int) {
	if len(*q) == 0 || (*q)[len(*q)-1].full(e) {
		*q = append(*q, batchCall{})
	}
	last := &(*q)[len(*q)-1]
	last.events, last.at = append(last.events, e), append(last.at, at)
}

// queuesOf sorts a batch into a queue for each person of a run, whose scopes may be one: whether an agent has a scope of
// its own is for the provider that is found later. While a cassette is recorded there is one queue, in the batch's order.
// Invalid events are answered at their places.
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

// deliverQueue makes the calls of a queue, and puts the answers at their places.
func (s *Slot) deliverQueue(ctx context.Context, q batchQueue, receipts []abi.ReceiptOrError) {
	for _, call := range q {
		op := abi.OpRecordEvents
		if len(call.events) == 1 {
			op = abi.OpRecordEvent
		}
		for i, answer := range s.deliver(ctx, op, call.events) {
			receipts[call.at[i]] = answer
		}
	}
}
