package host

import (
	"context"
	"errors"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// A scope that is read-only holds back its own events and no others: the follower passes them, and notes from where on
// they wait. Once the scope may be written it reads the archive from there.

// errHeld: the event's scope is read-only.
var errHeld = errors.New("the scope is read-only")

// heldScope is a scope whose events wait: Events of them, the first of which has the number From.
type heldScope struct {
	Scope  abi.MemoryScope `json:"scope"`
	From   int64           `json:"from"`
	Events int64           `json:"events"`
}

// hold adds scopes of which something more is held back.
func (r *followRecord) hold(more []heldScope) {
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

// heldEvents counts the events that wait for their scopes.
func (r *followRecord) heldEvents() (n int64) {
	for _, h := range r.Held {
		n += h.Events
	}
	return n
}

func (f *follower) heldEvents() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record.heldEvents()
}

// heldFrom is what is held back when a scope's events stop at the first of a list.
func (f *follower) heldFrom(events []archivedEvent) []heldScope {
	return []heldScope{{Scope: f.provider().memoryScopeOf(events[0].event), From: events[0].number,
		Events: int64(len(events))}}
}

// deliverUnlessHeld is deliverScope, unless earlier events of the scope wait.
func (f *follower) deliverUnlessHeld(ctx context.Context, events []archivedEvent) (delivered, error) {
	scope := f.provider().memoryScopeOf(events[0].event)
	f.mu.Lock()
	held := slices.ContainsFunc(f.record.Held, func(h heldScope) bool { return h.Scope == scope })
	f.mu.Unlock()
	if held {
		return delivered{held: f.heldFrom(events)}, nil
	}
	return f.deliverScope(ctx, events)
}

// release delivers what waits of scopes that may be written again.
func (f *follower) release(ctx context.Context) error {
	f.mu.Lock()
	list := f.record.Held
	f.mu.Unlock()
	for _, h := range list {
		readOnly, err := f.behindWall(&abi.MemoryEvent{RunID: h.Scope.RunID, UserID: h.Scope.PersonaID,
			AgentID: h.Scope.AgentID})
		if err == nil && !readOnly {
			err = f.releaseScope(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseScope delivers what waits of a scope, page by page, and keeps how far it has come.
func (f *follower) releaseScope(ctx context.Context, h heldScope) error {
	end := f.position()
	for h.From <= end {
		entries, more, err := f.host.archive.Read(ctx, h.From-1, followPage)
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
			h.From = result.held[0].From
		}
		err = f.keep(ctx, func(r *followRecord) {
			r.Done += result.done
			r.LeftOut += result.leftOut
			r.Held = slices.DeleteFunc(slices.Clone(r.Held), func(known heldScope) bool { return known.Scope == h.Scope })
			if h.From <= end {
				r.Held = append(r.Held, h)
			} else {
				r.LeftOut += max(0, h.Events) // forgotten or reset since
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

// deliverHeld delivers a scope's events of a page, up to a number.
func (f *follower) deliverHeld(ctx context.Context, page []archive.Entry, scope abi.MemoryScope, end int64) (delivered,
	error) {
	var own []archive.Entry
	for i := range page {
		event, err := page[i].Decode()
		if err != nil {
			return delivered{}, err
		}
		if page[i].Seq <= end && f.provider().memoryScopeOf(event) == scope {
			own = append(own, page[i])
		}
	}
	erasures, err := f.host.archive.Erasures(ctx)
	if err != nil {
		return delivered{}, err
	}
	scopes, _, err := f.sortOut(own, erasures)
	if err != nil || len(scopes) == 0 {
		return delivered{}, err
	}
	return f.deliverScope(ctx, scopes[0])
}
