package follow

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
)

// waitForWall waits while the whole slot is read-only.
//
// Errors: errHeld if only the event's scope is.
func (f *Follower) waitForWall(ctx context.Context, event *abi.MemoryEvent) error {
	for {
		readOnly, err := f.memory.ReadOnly(event)
		if err != nil || !readOnly {
			return err
		}
		all, err := f.memory.ReadOnly(nil)
		if err != nil {
			return err
		}
		if !all {
			return errHeld
		}
		f.sets(report.FollowerReadOnly)
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// keepRate waits until the rate limit allows n more events.
func (f *Follower) keepRate(ctx context.Context, n int) error {
	f.mu.Lock()
	if f.record.Rate <= 0 {
		f.mu.Unlock()
		return nil
	}
	now := time.Now()
	at := f.nextSend
	if at.Before(now) {
		at = now
	}
	f.nextSend = at.Add(time.Duration(float64(n) / f.record.Rate * float64(time.Second)))
	f.mu.Unlock()
	return pause.For(ctx, at.Sub(now))
}

// giveWay pauses for nine times as long as a delivery took if a caller was served recently, so that store and
// processors are mostly free for callers. It does not pause after deliveries that mostly waited for a backend, or if
// the follower is nearly caught up.
func (f *Follower) giveWay(ctx context.Context, took time.Duration) {
	f.mu.Lock()
	far := f.lastPage == PageEvents
	f.mu.Unlock()
	if far && f.lanes == 1 && f.memory.Busy() {
		_ = pause.For(ctx, min(9*took, time.Second))
	}
}
