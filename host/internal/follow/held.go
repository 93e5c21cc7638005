package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// A read-only scope holds back only its own events: the follower skips them, and records from which number on they
// wait. Once the scope is writable, it reads the archive from there.

// errHeld means that the event's scope is read-only.
var errHeld = errors.New("the scope is read-only")

// heldScope is a scope with waiting events: Events is their number, and From the number of the first in the archive.
type heldScope struct {
	Scope  abi.MemoryScope `json:"scope"`
	From   int64           `json:"from"`
	Events int64           `json:"events"`
	// Waiting means that an event of the scope failed and will be retried (waiting.go). Otherwise the scope is
	// read-only.
	Waiting bool `json:"waiting,omitempty"`
}

// hold adds events that are held back, by scope.
func (r *Record) hold(more []heldScope) {
	list := slices.Clone(r.Held)
	for _, h := range more {
		i := slices.IndexFunc(list, func(known heldScope) bool { return known.Scope == h.Scope })
		if i < 0 {
			list = append(list, h)
			continue
		}
		list[i].Events += h.Events
	}
	r.Held = list
}

// unhold removes an event from those that wait for their scopes, and reports whether it was one of them.
func (r *Record) unhold(number int64, e *abi.MemoryEvent) bool {
	i := slices.IndexFunc(r.Held, func(h heldScope) bool {
		return h.From <= number && h.Scope.RunID == e.RunID && h.Scope.PersonaID == e.UserID &&
			(h.Scope.AgentID == "" || h.Scope.AgentID == e.AgentID)
	})
	if i < 0 {
		return false
	}
	list := slices.Clone(r.Held)
	if list[i].Events--; list[i].Events <= 0 {
		list = slices.Delete(list, i, i+1)
	}
	r.Held = list
	return true
}

// heldEvents counts the events whose scopes are read-only.
func (r *Record) heldEvents() (n int64) {
	for _, h := range r.Held {
		if !h.Waiting {
			n += h.Events
		}
	}
	return n
}

// heldText names the scopes whose events wait, for an operator who lets a memory serve without them.
func (r *Record) heldText() string {
	var names []string
	for _, h := range r.Held[:min(len(r.Held), heldNamed)] {
		name := fmt.Sprintf("run %q, user %q", h.Scope.RunID, h.Scope.PersonaID)
		if h.Scope.AgentID != "" {
			name += fmt.Sprintf(", agent %q", h.Scope.AgentID)
		}
		names = append(names, fmt.Sprintf("%d of %s from number %d on", h.Events, name, h.From))
	}
	if more := len(r.Held) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("those of %d scopes more", more))
	}
	return fmt.Sprintf("%d not delivered because their scopes are read-only: %s", r.heldEvents(),
		strings.Join(names, "; "))
}

// heldNamed is the most scopes that heldText names.
const heldNamed = 20

// heldScopes describes a delivery that is held back as a whole.
func heldScopes(d delivery, waiting bool) []heldScope {
	return []heldScope{{Scope: d.scope, From: d.events[0].number, Events: int64(len(d.events)), Waiting: waiting}}
}

// deliverUnlessHeld is deliverScope, unless earlier events of the scope are held back.
func (f *Follower) deliverUnlessHeld(ctx context.Context, d delivery) (deliveryCounts, error) {
	waits := func(h heldScope) bool { return h.Scope == d.scope }
	if slices.ContainsFunc(f.Record().Held, waits) {
		return deliveryCounts{held: heldScopes(d, false)}, nil // added to what is already held back
	}
	return f.deliverScope(ctx, d)
}

// release delivers the events of scopes that are writable again, or due for a retry.
func (f *Follower) release(ctx context.Context) error {
	list := f.Record().Held
	return f.sideBySide(ctx, len(list), func(ctx context.Context, i int) error {
		h := list[i]
		if h.Waiting {
			if !f.due(h.Scope) {
				return nil
			}
			return f.releaseScope(ctx, h)
		}
		readOnly, err := f.memory.ReadOnly(&abi.MemoryEvent{RunID: h.Scope.RunID, UserID: h.Scope.PersonaID,
			AgentID: h.Scope.AgentID})
		if err != nil || readOnly {
			return err
		}
		return f.releaseScope(ctx, h)
	})
}

// releaseScope delivers a scope's waiting events, page by page, and records its progress.
func (f *Follower) releaseScope(ctx context.Context, h heldScope) error {
	record := f.Record()
	end := record.Position
	for h.From <= end {
		entries, more, err := f.store.read(ctx, &record, h.From-1, PageEvents)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			h.From = entries[len(entries)-1].Seq + 1
		}
		if !more {
			h.From = end + 1
		}
		result, err := f.deliverHeld(ctx, entries, h.Scope, end)
		if err != nil {
			return err
		}
		h.Events -= result.done + result.leftOut + result.open
		if len(result.held) > 0 {
			h.From, h.Waiting = result.held[0].From, result.held[0].Waiting
		}
		err = f.keep(ctx, func(r *Record) {
			r.Done += result.done
			r.LeftOut += result.leftOut
			r.Held = slices.DeleteFunc(slices.Clone(r.Held), func(known heldScope) bool { return known.Scope == h.Scope })
			if h.From <= end {
				r.Held = append(r.Held, h)
			} else {
				r.LeftOut += max(0, h.Events) // forgotten or reset since then
			}
		})
		f.mu.Lock()
		f.inPage = 0
		f.mu.Unlock()
		if err != nil || len(result.held) > 0 {
			return err
		}
	}
	return nil
}

// deliverHeld delivers a scope's events from a page, up to the archive number end.
func (f *Follower) deliverHeld(ctx context.Context, page []archive.Entry, scope abi.MemoryScope, end int64) (deliveryCounts,
	error) {
	after := slices.IndexFunc(page, func(e archive.Entry) bool { return e.Seq > end })
	if after >= 0 {
		page = page[:after]
	}
	erasures, err := f.store.Archive.Erasures(ctx)
	if err != nil {
		return deliveryCounts{}, err
	}
	scopes, _, err := f.sortOut(page, erasures)
	own := slices.IndexFunc(scopes, func(d delivery) bool { return d.scope == scope })
	if err != nil || own < 0 {
		return deliveryCounts{}, err
	}
	return f.deliverScope(ctx, scopes[own])
}
