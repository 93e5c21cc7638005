package host

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// How complete memory is, from the ledger alone, and the looks at the backend by which it becomes complete.

// outstanding is what a list entry says of an event that has not been seen in memory, the byte behind the scopeKey.
// Older entries have none.
type outstanding byte

const (
	outstandingQueued  outstanding = 'q' // the backend has it and works on it
	outstandingPending outstanding = 'p' // anything else that may still come: pending, partial, uncertain, sent only
	outstandingLost    outstanding = 'l' // readiness proved it lost or failed: nothing of it will come
	outstandingMarked  outstanding = 'm' // arrived, and its markers are kept until readiness has seen them
)

// outstanding is how far an event is from being in memory.
func (e *ledgerEntry) outstanding() outstanding {
	switch e.state {
	case deliveryLost, deliveryFailed, deliveryAgain:
		return outstandingLost
	case deliverySent:
		return outstandingPending
	}
	switch e.receipt.Status {
	case abi.StatusQueued:
		return outstandingQueued
	case abi.StatusPending, abi.StatusPartial, abi.StatusUncertain:
		return outstandingPending
	}
	return outstandingMarked
}

// listEntry is the value in tableUnseen: scopeKey, outstanding.
func listEntry(sc *scopeState, e *ledgerEntry) []byte {
	return append(bytes.Clone(sc.key[:]), byte(e.outstanding()))
}

// parseListEntry reads an entry; false for one that is damaged.
func parseListEntry(value []byte) (key scopeKey, is outstanding, ok bool) {
	switch len(value) {
	case len(key):
		return scopeKey(value), outstandingPending, true
	case len(key) + 1:
		return scopeKey(value), outstanding(value[len(key)]), true
	}
	return key, 0, false
}

// completeness is how complete the memory of a scope's generation is, by the ledger.
type completeness struct {
	queued, pending, lost int
	// asOf is when the ledger was read.
	asOf string
}

// completeness counts the events of a space that are outstanding, and those that were lost.
func (h *Host) completeness(ctx context.Context, space state.Space) (*completeness, error) {
	c := &completeness{asOf: h.stamp()}
	return c, h.countOutstanding(ctx, space, c)
}

// countOutstanding adds the counts of a space to c.
func (h *Host) countOutstanding(ctx context.Context, space state.Space, c *completeness) error {
	return h.eachRecord(ctx, tableUnseen, space[:], func(r state.KeyValue) error {
		_, is, ok := parseListEntry(r.Value)
		if ok && len(r.Value) == len(scopeKey{}) { // of before the byte
			e, err := h.ledgerRecord(ctx, space, string(r.Key[len(space):]))
			if err != nil || e == nil {
				return err
			}
			is = e.outstanding()
		}
		switch is {
		case outstandingQueued:
			c.queued++
		case outstandingPending:
			c.pending++
		case outstandingLost:
			c.lost++
		}
		return nil
	})
}

const warnMemoryLost = "memory_lost: %d events are known not to have arrived; record them again"

// tell writes into the trace of a retrieval what may be missing from it.
func (c *completeness) tell(t *abi.Trace) {
	t.Consistency, t.ConsistencyAsOf = "committed", c.asOf
	switch {
	case c.pending > 0:
		t.Consistency = "pending"
	case c.queued > 0:
		t.Consistency = "queued"
	}
	if n := c.pending + c.queued; n > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: %d events", abi.WarnMemoryPending, n))
	}
	if c.lost > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf(warnMemoryLost, c.lost))
	}
}

// Pauses between two looks of the host's own at a scope with outstanding events: the first, and the longest, to which
// they double.
const (
	pollPause    = time.Second
	pollPauseMax = time.Minute
)

// polls are the scopes that the host looks at by itself, with the time of its next look.
type polls map[scopeKey]*nextLook

type nextLook struct {
	at      time.Time
	pause   time.Duration
	waiting int // events, at the last look
}

// pollOutstanding looks at the scopes of a provider that have outstanding events and are due, so that pending ends even
// if nobody asks. A look that fails is repeated after its pause.
func (s *Slot) pollOutstanding(ctx context.Context, p *Provider, due polls) {
	h := s.host
	waiting := map[scopeKey]int{}
	err := h.eachRecord(ctx, tableUnseen, nil, func(r state.KeyValue) error {
		key, is, ok := parseListEntry(r.Value)
		if ok && (is == outstandingQueued || is == outstandingPending) {
			waiting[key]++
		}
		return nil
	})
	if err != nil {
		p.logger.Debug("the outstanding events cannot be read", "error", err)
		return
	}
	for key := range due {
		if waiting[key] == 0 {
			delete(due, key)
		}
	}
	now := h.now()
	for key, n := range waiting {
		next := due[key]
		switch {
		case next == nil:
			due[key] = &nextLook{at: now.Add(pollPause), pause: pollPause, waiting: n}
			continue
		case n > next.waiting: // others have come: soon again
			next.waiting, next.pause = n, pollPause
			if soon := now.Add(pollPause); soon.Before(next.at) {
				next.at = soon
			}
		}
		if ctx.Err() != nil {
			return
		}
		if now.Before(next.at) {
			continue
		}
		if err := s.poll(ctx, p, key); err != nil {
			p.logger.Debug("a look at outstanding events", "error", err)
		}
		next.pause = min(2*next.pause, pollPauseMax)
		next.at, next.waiting = h.now().Add(next.pause), n
	}
}

// poll takes one look at a scope, if it is the provider's.
func (s *Slot) poll(ctx context.Context, p *Provider, key scopeKey) error {
	record, err := s.host.scopeRecordOf(ctx, key)
	if err != nil || record == nil || !p.owns(record) {
		return err
	}
	if p.has(abi.OpReadiness) {
		_, err := s.lookReady(ctx, &abi.ReadinessRequest{Scope: record.memoryScope()})
		return err
	}
	return s.settleUncertain(ctx, record.memoryScope())
}

// settleUncertain asks the backend about the events of a scope whose outcome is unknown.
func (s *Slot) settleUncertain(ctx context.Context, scope abi.MemoryScope) (err error) {
	ctx, o, err := s.begin(ctx, abi.OpFindEvent)
	if err != nil {
		return err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return err
	}
	if err = o.at(ctx, sc); err != nil {
		return err
	}
	u, err := o.readUnseen(ctx)
	if err == nil {
		o.askUncertain(ctx, u)
	}
	return err
}
