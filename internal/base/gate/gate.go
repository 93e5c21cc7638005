// Package gate lets many pass side by side until one closes it behind them.
package gate

import (
	"context"
	"sync"
)

// Gate lets callers pass. Closing it waits until nobody is inside, and those that come meanwhile wait until it is open
// again. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	inside int
	// shut is closed when the gate opens again; nil while it is open. empty is closed when nobody is inside any more; nil
	// where nobody waits for that.
	shut, empty chan struct{}
}

// Enter waits while the gate is closed. Leave follows, unless ctx ended first: then the error is its cause.
func (g *Gate) Enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := g.shut
		if shut == nil {
			g.inside++
			g.mu.Unlock()
			return nil
		}
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Leave ends what Enter began.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Close closes the gate and waits until nobody is inside. Where ctx ends first it is open again, and closed is false.
// Only one caller at a time may close it; Open follows.
func (g *Gate) Close(ctx context.Context) (closed bool) {
	g.mu.Lock()
	g.shut = make(chan struct{})
	if g.inside == 0 {
		g.mu.Unlock()
		return true
	}
	empty := make(chan struct{})
	g.empty = empty
	g.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-ctx.Done():
		g.mu.Lock()
		g.empty = nil
		g.mu.Unlock()
		g.Open()
		return false
	}
}

// Open lets callers pass again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}
