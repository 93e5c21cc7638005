package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/internal/base/pause"
)

// clock is the host's time: real, or that of a cassette.
type clock interface {
	Now() time.Time
	// Pause waits for d, or until ctx ends.
	Pause(ctx context.Context, d time.Duration)
	// Measured is a measured duration as it appears in traces.
	Measured(d time.Duration) time.Duration
}

// realClock is the clock that reads Options.Now.
type realClock struct{ now func() time.Time }

func (c realClock) Now() time.Time { return c.now() }

func (realClock) Pause(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) }

func (realClock) Measured(d time.Duration) time.Duration { return d }

// now reads the host's clock, stamp as the contract writes it.
func (h *Host) now() time.Time { return h.clock.Now() }

func (h *Host) stamp() string { return h.now().UTC().Format(time.RFC3339Nano) }

// waiting is how long the host polls, by its own clock. The time it has waited counts even when that clock stops or
// goes back.
type waiting struct {
	clock  clock
	began  time.Time
	most   time.Duration
	waited time.Duration
}

func (h *Host) waiting(most time.Duration) *waiting {
	return &waiting{clock: h.clock, began: h.now(), most: most}
}

func (w *waiting) left() time.Duration { return w.most - max(w.clock.Now().Sub(w.began), w.waited) }

func (w *waiting) pause(ctx context.Context, d time.Duration) {
	w.clock.Pause(ctx, d)
	w.waited += d
}
