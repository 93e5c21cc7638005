package host

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
)

// Listing is what a slot knows by itself of what went through it. No backend is asked. It is for people and tools that
// look at a slot, not for an agent. A Slot implements it.
type Listing interface {
	// ListScopes returns a page of the serving provider's scopes. The order is the same for every call and has no
	// meaning.
	//
	// Errors: invalid_argument for a cursor that is not one.
	ListScopes(ctx context.Context, q ScopeQuery) (*ScopePage, error)
	// ListEvents returns a page of what the delivery ledger knows of a scope's present generation, in the byte order
	// of the event ids.
	//
	// Errors: invalid_argument for a scope that is not one of the slot's, and for an unknown state.
	ListEvents(ctx context.Context, q EventQuery) (*EventPage, error)
}

var _ Listing = (*Slot)(nil)

// Sizes of a page, in items.
const (
	DefaultPage = 100
	MaxPage     = 500
)

// ScopeQuery asks for a page of scopes.
type ScopeQuery struct {
	// After is Next of the page before; empty for the first page.
	After string
	// Limit is how many scopes the page has at most; 0 means DefaultPage, more than MaxPage means MaxPage.
	Limit int64
}

// ScopePage is a part of the list of scopes.
type ScopePage struct {
	Scopes []ListedScope
	// Next is where the following page begins; empty on the last page. A page may have fewer scopes than asked for,
	// even none, and still not be the last.
	Next string
}

// ListedScope is a scope with what its ledger leaves open.
type ListedScope struct {
	abi.ScopeMapping
	// Queued and Pending count the events that may still come into memory, Lost those that did not arrive.
	Queued, Pending, Lost int64
}

// EventQuery asks for a page of a scope's events.
type EventQuery struct {
	Scope abi.MemoryScope
	// After is Next of the page before; empty for the first page.
	After string
	// Limit is how many events the page has at most; 0 means DefaultPage, more than MaxPage means MaxPage.
	Limit int64
	// States are those wanted (EventStates); empty means every state.
	States []string
	// SessionID is the session wanted; empty means every session, and events whose session is not known.
	SessionID string
}

// EventPage is a part of the list of a scope's events.
type EventPage struct {
	// Generation counts the scope's resets, from 1. Events of earlier generations are not listed.
	Generation int64
	Events     []ListedEvent
	// Next is where the following page begins; empty on the last page. A page may have fewer events than asked for,
	// even none, and still not be the last.
	Next string
}

// ListedEvent is what the delivery ledger knows of an event.
type ListedEvent struct {
	EventID string
	// SessionID is empty for an event that was recorded before the ledger kept it.
	SessionID string
	// State is the outcome so far: one of EventStates.
	State string
	// SentAt is when the event was last sent to the provider, RFC 3339; empty where that is not known.
	SentAt string
	// Receipt is the provider's receipt, without its trace; nil in the state sent.
	Receipt *abi.WriteReceipt
}

// States of an event in the ledger beside those of abi.WriteStatus.
const (
	// EventSent means that the event has left, and that its outcome is not known.
	EventSent = "sent"
	// EventLost and EventFailed mean that it did not arrive. Recorded again, it is sent again.
	EventLost   = "lost"
	EventFailed = "failed"
)

// EventStates are the states that a listed event may have. Those before StatusCommitted are not final: the host keeps
// them on a list of its own.
func EventStates() []string {
	return append(openStates(), string(abi.StatusCommitted), string(abi.StatusNotRetained))
}

func openStates() []string {
	return []string{EventSent, EventLost, EventFailed, string(abi.StatusQueued), string(abi.StatusPending),
		string(abi.StatusPartial), string(abi.StatusUncertain)}
}

// pageScan is how many records one page looks at, so that a rare state does not hold a call up.
const pageScan = 5000

// ListScopes implements Listing.
func (s *Slot) ListScopes(ctx context.Context, q ScopeQuery) (*ScopePage, error) {
	const op = "list_scopes"
	after, err := hex.DecodeString(q.After)
	if err != nil || len(after) != 0 && len(after) != len(scopeKey{}) {
		e := abi.NewError(abi.CodeInvalidArgument, "after: not a cursor of this list").
			WithHint("send next of the page before, or nothing")
		return nil, inOperation(op, e)
	}
	v, err := s.take(op)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	page := &ScopePage{Scopes: []ListedScope{}}
	last, more, err := s.host.scan(ctx, tableScopes, nil, after, func(stored state.KeyValue) (full bool, err error) {
		var r scopeRecord
		if json.Unmarshal(stored.Value, &r) != nil || len(stored.Key) != len(scopeKey{}) || !v.provider.owns(&r) {
			return false, nil // another provider's, or damaged, which is reported where it is used
		}
		var open delivery.Completeness
		if err := s.host.ledger.Count(ctx, generationSpace(scopeKey(stored.Key), r.Generation), &open); err != nil {
			return false, err
		}
		page.Scopes = append(page.Scopes, ListedScope{ScopeMapping: r.mapping(), Queued: int64(open.Queued),
			Pending: int64(open.Pending), Lost: int64(open.Lost)})
		return len(page.Scopes) == pageLimit(q.Limit), nil
	})
	if err != nil {
		return nil, inOperation(op, err)
	}
	if more {
		page.Next = hex.EncodeToString(last)
	}
	return page, nil
}

// ListEvents implements Listing.
func (s *Slot) ListEvents(ctx context.Context, q EventQuery) (*EventPage, error) {
	const op = "list_events"
	if err := q.validate(); err != nil {
		return nil, inOperation(op, err)
	}
	v, err := s.take(op)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	page, err := s.host.listEvents(ctx, v.provider, &q)
	if err != nil {
		return nil, inOperation(op, err)
	}
	return page, nil
}

func (q *EventQuery) validate() error {
	for _, is := range q.States {
		if slices.Contains(EventStates(), is) {
			continue
		}
		e := abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("states: %.80q is not a state of an event", is))
		if near := abi.Nearest(is, EventStates()); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return e
	}
	return q.Scope.Validate()
}

func (h *Host) listEvents(ctx context.Context, p *Provider, q *EventQuery) (*EventPage, error) {
	sc, err := p.scopeOf(q.Scope)
	if err != nil {
		return nil, err
	}
	page := &EventPage{Events: []ListedEvent{}}
	if page.Generation, err = h.currentGeneration(ctx, sc); err != nil {
		return nil, err
	}
	space := sc.space(page.Generation)
	table := delivery.TableEntries
	if len(q.States) > 0 && !slices.ContainsFunc(q.States, isFinalState) {
		table = delivery.TableUnseen // short, where the ledger may have a hundred thousand
	}
	var after []byte
	if q.After != "" {
		after = delivery.Key(space, q.After)
	}
	last, more, err := h.scan(ctx, table, space[:], after, func(r state.KeyValue) (full bool, err error) {
		id := string(r.Key[len(space):])
		var e *delivery.Entry
		if table == delivery.TableEntries {
			e, err = delivery.Decode(r.Value)
		} else {
			e, err = h.ledger.Entry(ctx, space, id)
		}
		if err != nil || e == nil {
			return false, err
		}
		listed := listedEvent(id, e)
		if q.wants(&listed) {
			page.Events = append(page.Events, listed)
		}
		return len(page.Events) == pageLimit(q.Limit), nil
	})
	if err != nil {
		return nil, err
	}
	if more {
		page.Next = string(last[len(space):])
	}
	return page, nil
}

// wants reports whether an event is one of those asked for.
func (q *EventQuery) wants(e *ListedEvent) bool {
	return (len(q.States) == 0 || slices.Contains(q.States, e.State)) &&
		(q.SessionID == "" || q.SessionID == e.SessionID)
}

func isFinalState(is string) bool { return !slices.Contains(openStates(), is) }

// listedEvent is an entry of the ledger as callers see it.
func listedEvent(eventID string, e *delivery.Entry) ListedEvent {
	l := ListedEvent{EventID: eventID, SessionID: e.Session, Receipt: e.Receipt}
	if e.SentAt.UnixMilli() > 0 {
		l.SentAt = e.SentAt.UTC().Format(time.RFC3339Nano)
	}
	switch e.State {
	case delivery.Sent:
		l.State = EventSent
	case delivery.Lost:
		l.State = EventLost
	case delivery.Failed, delivery.Again:
		l.State = EventFailed
	default:
		l.State = string(e.Receipt.Status)
	}
	return l
}

func pageLimit(limit int64) int {
	if limit <= 0 {
		return DefaultPage
	}
	return int(min(limit, MaxPage))
}

// scan visits the records of a table whose key begins with prefix and is greater than after, until visit says that the
// page is full or pageScan records were seen. last is the key of the last record visited, more whether there are others
// behind it.
func (h *Host) scan(ctx context.Context, table state.Table, prefix, after []byte,
	visit func(state.KeyValue) (full bool, err error)) (last []byte, more bool, err error) {
	const chunk = MaxPage + 1
	for seen := 0; ; {
		records, err := h.store.Records(ctx, table, prefix, after, chunk)
		if err != nil {
			return nil, false, stateError(err)
		}
		for i, r := range records {
			full, err := visit(r)
			if err != nil {
				return nil, false, err
			}
			after = r.Key
			seen++
			if full || seen == pageScan {
				return after, i < len(records)-1 || len(records) == chunk, nil
			}
		}
		if len(records) < chunk {
			return after, false, nil
		}
	}
}
