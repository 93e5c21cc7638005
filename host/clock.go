package host

import (
	"context"
	"time"
)

// stamp is the host's clock as the contract writes it.
func (h *Host) stamp() string { return h.now().UTC().Format(time.RFC3339Nano) }

// pause waits for d by the host's clock, or until ctx ends. A replay does not wait: it moves its clock.
func (h *Host) pause(ctx context.Context, d time.Duration) {
	if h.tape == nil || h.tape.play == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	if h.tape != nil {
		h.tape.advance(d)
	}
}

// patience is how long the host polls, by its own clock. What it has waited counts even where that clock stands still or goes back.
type patience struct {
	host   *Host
	began  time.Time
	most   time.Duration
	waited time.Duration
}

func (h *Host) patience(most time.Duration) *patience {
	return &patience{host: h, began: h.now(), most: most}
}

func (p *patience) left() time.Duration { return p.most - max(p.host.now().Sub(p.began), p.waited) }

func (p *patience) pause(ctx context.Context, d time.Duration) {
	p.host.pause(ctx, d)
	p.waited += d
}
