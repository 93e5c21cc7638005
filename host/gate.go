package host

import (
	"context"
	"sync"

	"github.com/memhost/memhost/abi"
)

// gate lets operations that write pass. A turn closes it: it waits until no such operation is under way, and those that
// come meanwhile wait until it is open again. The zero value is open.
type gate struct {
	mu     sync.Mutex
	inside int
	// shut is closed when the gate opens again; nil while it is open. empty is closed when nobody is inside any more; nil
	// where nobody waits for that.
	shut, empty chan struct{}
}

// enter waits while the gate is closed. leave follows.
//
// Errors: timeout where ctx ends first.
func (g *gate) enter(ctx context.Context, op string) error {
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
			e := abi.WrapError(abi.CodeTimeout, "another provider takes over at this moment", context.Cause(ctx)).
				WithReason("busy")
			e.Operation = op
			return e
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// close closes the gate and waits until nobody is inside. Where ctx ends first it is open again, and closed is false.
// Only one caller at a time may close it; open follows.
func (g *gate) close(ctx context.Context) (closed bool) {
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
		g.open()
		return false
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}
