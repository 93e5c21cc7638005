// Package gate has a gate that many callers may pass concurrently until one of them closes it.
package gate

import (
	"context"
	"sync"
)

// Gate lets callers pass. Closing it waits until all callers inside have left, and new callers wait until it is open
// again. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	inside int
	// shut is closed when the gate opens again; nil while it is open. empty is closed when the last caller has left;
	// nil unless Close waits for that.
	shut, empty chan struct{}
}

// Enter waits while the gate is closed. The caller must then call Leave, unless ctx ended first: the error is then
// ctx's cause.
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

// Leave undoes Enter.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Close closes the gate and waits until all callers have left. If ctx ends first, the gate is open again and closed is
// false. Only one caller at a time may close it, and must then call Open.
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
