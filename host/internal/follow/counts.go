package follow

import (
	"context"
	"sync/atomic"
	"time"
)

// Counts are what metrics show of a follower.
type Counts struct {
	// Queue is how many events it has not dealt with, those included that wait because their scope is read-only.
	Queue int64
	// Lag is how long ago the oldest of them was recorded; 0 where there are none.
	Lag time.Duration
	// Delivered counts the events that its memory got since the follower was made, Failed the deliveries of an event that
	// were refused, did not reach it, or had an outcome that was not known. An event may fail more than once.
	Delivered, Failed int64
}

// tally counts the outcomes of deliveries.
type tally struct{ delivered, failed atomic.Int64 }

func (t *tally) add(result outcome) {
	switch result {
	case outcomeDone:
		t.delivered.Add(1)
	case outcomeOpen, outcomeAgain, outcomeUnreached:
		t.failed.Add(1)
	case outcomeLeftOut, outcomeReadOnly: // nothing was to be delivered
	}
}

// Counts reads what metrics show. Within a page Lag is that of its first event.
func (f *Follower) Counts(ctx context.Context) (c Counts, err error) {
	f.mu.Lock()
	record, inPage := f.record, f.inPage
	f.mu.Unlock()
	c.Delivered, c.Failed = f.tally.delivered.Load(), f.tally.failed.Load()
	behind, err := f.store.countAfter(ctx, &record)
	if err != nil {
		return c, err
	}
	if c.Queue = max(0, behind-inPage) + record.heldEvents(); c.Queue > 0 {
		c.Lag, err = f.store.lag(ctx, &record)
	}
	return c, err
}

// lag is how long ago the oldest event was recorded that a follower has not dealt with.
func (s *Store) lag(ctx context.Context, r *Record) (time.Duration, error) {
	after := r.Position
	for _, h := range r.Held {
		after = min(after, h.From-1)
	}
	entries, _, err := s.read(ctx, r, after, 1)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	at, err := time.Parse(time.RFC3339Nano, entries[0].At)
	if err != nil {
		return 0, err
	}
	return max(0, s.Now().Sub(at)), nil
}
