package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/pause"
)

// waitForWall waits while the slot is read-only.
//
// Errors: errHeld where the event's scope alone is.
func (f *follower) waitForWall(ctx context.Context, event *abi.MemoryEvent) error {
	for {
		readOnly, err := f.behindWall(event)
		switch {
		case err != nil || !readOnly:
			return err
		case !f.slot.mode.isReadOnly(nil):
			return errHeld
		}
		f.sets(abi.FollowerReadOnly)
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// behindWall reports whether an event may not be delivered now: its scope may be read-only at the serving provider too.
func (f *follower) behindWall(event *abi.MemoryEvent) (bool, error) {
	providers := []*Provider{f.provider()}
	if v := f.slot.current.Load(); v != nil {
		providers = append(providers, v.provider)
	}
	for _, p := range providers {
		sc, err := p.scopeOfEvent(event)
		if err != nil || f.slot.mode.isReadOnly(sc) {
			return err == nil, err
		}
	}
	return false, nil
}

// keepRate waits until the limit on events a second lets n more go.
func (f *follower) keepRate(ctx context.Context, n int) error {
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
func (f *follower) giveWay(ctx context.Context, took time.Duration) {
	f.mu.Lock()
	far := f.lastPage == followPage
	f.mu.Unlock()
	lately := time.Since(time.Unix(0, f.slot.lastCall.Load())) < servingLately
	if far && lately && f.lanes == 1 {
		_ = pause.For(ctx, min(9*took, time.Second))
	}
}
