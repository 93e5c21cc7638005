// Package wall answers one question: may this be written now?
//
// A Wall holds the read-only mode of a slot and of each of its scopes. Whatever changes a backend asks it for a Permit
// first. Two kinds of callers do so:
//
//   - A write (an event, a reset, a mutation) asks once, before it begins, and keeps its permit until it has ended. To
//     stop it at its second native call would leave half of it behind.
//   - Any other operation asks before each native call that is not a read, and keeps the permit until that call has
//     returned. So a mode that changes while the operation runs holds for its next call.
//
// Asking and counting are one step under a lock, and a permit is counted until it is released. So when a mode is
// read-only and no permit is left, nothing that is not a read can still arrive at a backend.
//
// Wall knows this process only. Hosts that share a store agree by turns of scopes, in package host.
package wall

import (
	"context"
	"maps"
	"sync"
)

// Scope is the key of a scope. The zero value, Slot, stands for the slot as a whole.
type Scope [16]byte

// Slot stands for the slot as a whole: its mode holds for every scope, and for operations that have none.
var Slot Scope

// Mode is the read-only mode of a slot or a scope, in the form in which the store keeps it.
type Mode struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	Since    string `json:"since"` // RFC 3339; empty if it was never set
}

// Wall gives permits. It is safe for concurrent use.
type Wall struct {
	mu sync.RWMutex
	// modes has the slot's mode, and those of the scopes that are read-only themselves.
	modes map[Scope]Mode
	// permits counts the permits of each scope that has any. released is closed, and replaced, when one is released.
	permits  map[Scope]int64
	released chan struct{}
}

// New makes a Wall with the modes that hold now. A scope without a mode can be written, unless the slot is read-only.
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

// Mode is what was set for the slot, or for a scope alone: the slot's mode is not part of a scope's.
func (w *Wall) Mode(s Scope) Mode {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.modes[s]
}

// ReadOnly reports whether the slot, or a scope, may not be written now. A scope may not if the slot may not.
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

// Admit gives a permit for a scope, or for Slot to an operation that has none; nil while that is read-only.
func (w *Wall) Admit(s Scope) *Permit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readOnly(s) {
		return nil
	}
	w.permits[s]++
	return &Permit{wall: w, scope: s}
}

// Release gives the permit back. Doing so again, or for a nil permit, has no effect.
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

// InFlight counts the permits that were not released, of some scopes together; Slot among them means all.
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

// Wait returns when no permit of some scopes is left, or ctx ends. Slot among them means all.
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
