package server

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/text/whose"
)

// batch is an EventBatch as it arrived: the events that can be delivered, and an error for each that cannot.
type batch struct {
	abi.EventBatch
	// place is the index in the request of each of Events.
	place []int
	// refused holds the answers by place.
	refused map[int]abi.ReceiptOrError
	size    int
}

// maxBatch is the most events in a batch. The answer to each invalid event has some hundred bytes.
const maxBatch = 100_000

// decodeBatch decodes a batch so that an invalid event does not affect the others.
func decodeBatch(body []byte) (*batch, error) {
	if bytes.Count(body, []byte{','}) >= maxBatch {
		var items wire.RawBatch
		if abi.UnmarshalStrict(body, &items) == nil && len(items.Events) > maxBatch {
			return nil, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("events: %d in one batch, the limit is %d",
				len(items.Events), maxBatch)).WithHint("send them in several batches")
		}
	}
	b := new(batch)
	whole := decode(body, &b.EventBatch)
	if whole == nil {
		b.size = len(b.Events)
		b.place = make([]int, b.size)
		for i := range b.place {
			b.place[i] = i
		}
		return b, nil
	}
	if _, hint := whose.Rename(body); hint != "" {
		return nil, whole // with the names of the contract
	}
	var items wire.RawBatch
	if err := abi.UnmarshalStrict(body, &items); err != nil {
		return nil, whole
	}
	*b = batch{size: len(items.Events), refused: map[int]abi.ReceiptOrError{}}
	for i, item := range items.Events {
		var one abi.EventBatch // so that the path in an error is that of an event in a batch
		if err := decode(abi.Marshal(&wire.RawBatch{Events: []abi.Raw{item}}), &one); err != nil {
			b.refuse(i, wire.EventIDOf(item), moved(err, 0, i))
			continue
		}
		b.Events, b.place = append(b.Events, one.Events[0]), append(b.place, i)
	}
	if len(b.refused) == 0 { // the mistake is not in an event
		return nil, whole
	}
	return b, nil
}

// refuse sets the error for the event at a place.
func (b *batch) refuse(place int, id string, e *abi.Error) {
	if b.refused == nil {
		b.refused = map[int]abi.ReceiptOrError{}
	}
	b.refused[place] = abi.ReceiptOrError{EventID: id, Error: inOperation(abi.OpRecordEvents, e)}
}

// moved changes an error about events[from] to one about events[to].
func moved(err error, from, to int) *abi.Error {
	e := *abi.AsError(err)
	if rest, ok := strings.CutPrefix(e.Message, fmt.Sprintf("events[%d]", from)); ok {
		e.Message = fmt.Sprintf("events[%d]%s", to, rest)
	}
	return &e
}

// recordBatch delivers the valid events and answers every event at its place. A batch with a scoped token is rejected
// as a whole if an event has another scope or session.
func (s *Server) recordBatch(ctx context.Context, b *batch) (*abi.BatchReceipts, error) {
	for i := range b.Events {
		if err := scopedToken(ctx).checkEvent(&b.Events[i]); err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("events[%d].%s", b.place[i], e.Message)
			return nil, &e
		}
	}
	s.dropForeign(b)
	answers := make([]abi.ReceiptOrError, b.size)
	for place, answer := range b.refused {
		answers[place] = answer
	}
	if len(b.Events) == 0 && b.size > 0 {
		return &abi.BatchReceipts{Receipts: answers}, nil
	}
	ctx, release := detached(ctx)
	defer release()
	given, err := s.options.Slot.RecordEvents(ctx, &b.EventBatch)
	if err != nil {
		return nil, err
	}
	if len(given.Receipts) != len(b.Events) {
		return nil, abi.NewError(abi.CodeInternal,
			fmt.Sprintf("the slot answered %d receipts for %d events", len(given.Receipts), len(b.Events)))
	}
	for i, answer := range given.Receipts {
		if answer.Error != nil {
			answer.Error = moved(answer.Error, i, b.place[i])
		}
		answers[b.place[i]] = answer
	}
	return &abi.BatchReceipts{Receipts: answers}, nil
}

// dropForeign rejects the events of scopes that may not be named.
func (s *Server) dropForeign(b *batch) {
	if s.options.Scopes.Only == nil {
		return
	}
	events, place := b.Events[:0], b.place[:0]
	for i := range b.Events {
		at := b.place[i]
		if err := s.options.Scopes.checkEvent(&b.Events[i]); err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("events[%d].%s", at, e.Message)
			b.refuse(at, b.Events[i].EventID, &e)
			continue
		}
		events, place = append(events, b.Events[i]), append(place, at)
	}
	b.Events, b.place = events, place
}
