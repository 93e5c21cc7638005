package follow

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/pause"
)

// waitForWall waits while everything is read-only.
//
// Errors: errHeld where the event's scope alone is.
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
		f.sets(abi.FollowerReadOnly)
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// keepRate waits until the limit on events a second lets n more go.
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

// giveWay pauses nine times as long as a delivery took, where a caller was served lately: store and processors are free
// for callers most of the time. A delivery that waited for a backend took little of either, and a follower that is
// close behind has little to do.
func (f *Follower) giveWay(ctx context.Context, took time.Duration) {
	f.mu.Lock()
	far := f.lastPage == PageEvents
	f.mu.Unlock()
	if far && f.lanes == 1 && f.memory.Busy() {
		_ = pause.For(ctx, min(9*took, time.Second))
	}
}
