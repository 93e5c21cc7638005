package follow

import (
	"context"
	"sync/atomic"
	"time"
)

// Counts are a follower's numbers for metrics.
type Counts struct {
	// Queue is how many events it has not handled yet, including those that wait because their scope is read-only.
	Queue int64
	// Lag is how long ago the oldest of them was recorded; 0 if there are none.
	Lag time.Duration
	// Delivered counts the events that reached its memory since the follower was created. Failed counts deliveries that
	// were refused, did not arrive, or had an unknown outcome; an event may fail more than once.
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
	case outcomeLeftOut, outcomeReadOnly: // there was nothing to deliver
	}
}

// Counts reads the numbers for metrics. Within a page, Lag is that of the page's first event.
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

// lag is how long ago the oldest event that a follower has not handled was recorded.
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
