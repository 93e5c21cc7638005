// Package wall decides whether a scope may be written now.
//
// A Wall holds the read-only mode of a slot and of each of its scopes. Anything that changes a backend must first get a
// Permit. There are two kinds of callers:
//
//   - A write (an event, a reset, a mutation) asks once, before it starts, and keeps its permit until it has ended.
//     Stopping it at its second native call would leave it half done.
//   - Any other operation asks before each native call that is not a read, and keeps the permit until that call has
//     returned. So a mode that changes while the operation runs applies to its next call.
//
// Checking the mode and counting the permit are one step under a lock, and a permit counts until it is released. So
// once a mode is read-only and no permit is left, only reads can still arrive at a backend.
//
// Wall only covers this process. Hosts that share a store coordinate through the locks of scopes, in package host.
package wall

import (
	"context"
	"maps"
	"sync"
)

// Scope is the key of a scope. The zero value, Slot, is the slot as a whole.
type Scope [16]byte

// Slot is the slot as a whole: its mode applies to every scope, and to operations without one.
var Slot Scope

// Mode is the read-only mode of a slot or a scope, in the form in which it is stored.
type Mode struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	Since    string `json:"since"` // RFC 3339; empty if it was never set
}

// Wall issues permits. It is safe for concurrent use.
type Wall struct {
	mu sync.RWMutex
	// modes has the mode of the slot, and of each scope that is read-only itself.
	modes map[Scope]Mode
	// permits counts the permits of each scope that has any. released is closed, and replaced, whenever one is
	// released.
	permits  map[Scope]int64
	released chan struct{}
}

// New creates a Wall with the present modes. A scope without a mode can be written, unless the slot is read-only.
func New(modes map[Scope]Mode) *Wall {
	w := &Wall{modes: map[Scope]Mode{}, permits: map[Scope]int64{}, released: make(chan struct{})}
	w.Set(modes)
	return w
}

// Set changes modes, all at the same moment.
func (w *Wall) Set(modes map[Scope]Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.modes, modes)
	maps.DeleteFunc(w.modes, func(s Scope, m Mode) bool { return s != Slot && !m.ReadOnly })
}

// Mode is what was set for the slot or a scope. A scope's mode does not include the slot's.
func (w *Wall) Mode(s Scope) Mode {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.modes[s]
}

// ReadOnly reports whether the slot or a scope is read-only now. All scopes are read-only if the slot is.
func (w *Wall) ReadOnly(s Scope) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.readOnly(s)
}

func (w *Wall) readOnly(s Scope) bool { return w.modes[Slot].ReadOnly || w.modes[s].ReadOnly }

// ReadOnlyScopes counts the scopes that are read-only themselves.
func (w *Wall) ReadOnlyScopes() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := len(w.modes)
	if _, ok := w.modes[Slot]; ok {
		n--
	}
	return n
}

// Permit lets its holder write. It is counted until Release.
type Permit struct {
	wall  *Wall
	scope Scope
	once  sync.Once
}

// Admit returns a permit for a scope, or with Slot for an operation without one; nil if it is read-only.
func (w *Wall) Admit(s Scope) *Permit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readOnly(s) {
		return nil
	}
	w.permits[s]++
	return &Permit{wall: w, scope: s}
}

// Release returns the permit. Calling it again, or on a nil permit, has no effect.
func (p *Permit) Release() {
	if p != nil {
		p.once.Do(p.release)
	}
}

func (p *Permit) release() {
	w := p.wall
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.permits[p.scope]--; w.permits[p.scope] == 0 {
		delete(w.permits, p.scope)
	}
	close(w.released)
	w.released = make(chan struct{})
}

// InFlight counts the unreleased permits of some scopes together; Slot means all.
func (w *Wall) InFlight(scopes ...Scope) int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.inFlight(scopes)
}

func (w *Wall) inFlight(scopes []Scope) (n int64) {
	all := int64(0)
	for _, permits := range w.permits {
		all += permits
	}
	for _, s := range scopes {
		if s == Slot {
			return all
		}
		n += w.permits[s]
	}
	return n
}

// Wait waits until the scopes have no permits left, or ctx ends. Slot means all scopes.
func (w *Wall) Wait(ctx context.Context, scopes ...Scope) {
	for {
		w.mu.RLock()
		n, released := w.inFlight(scopes), w.released
		w.mu.RUnlock()
		if n == 0 {
			return
		}
		select {
		case <-released:
		case <-ctx.Done():
			return
		}
	}
}
