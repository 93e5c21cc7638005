// Package report has the types with which a host describes itself to operators and tools. Agents and plugins don't need
// them.
package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
)

// Listing lists what a slot recorded, from its own records, without contacting a backend. It is for operators and
// tools, not for agents. host.Slot implements it, and so does a client of a slot's HTTP door.
type Listing interface {
	// ListScopes returns a page of the serving provider's scopes, in an arbitrary but stable order.
	//
	// Errors: invalid_argument for an invalid cursor.
	ListScopes(ctx context.Context, q ScopeQuery) (*ScopePage, error)
	// ListEvents returns a page of what the delivery ledger knows about a scope's present generation, ordered by event
	// id (bytewise).
	//
	// Errors: invalid_argument for a scope that does not belong to the slot, and for an unknown state.
	ListEvents(ctx context.Context, q EventQuery) (*EventPage, error)
}

// EventLister is the part of Listing that lists events.
type EventLister interface {
	ListEvents(ctx context.Context, q EventQuery) (*EventPage, error)
}

// EventIDs returns the ids of all events that a slot has of a scope, ordered bytewise. It returns nil if the slot cannot list
// them or does not know the scope.
//
// Errors: those of ListEvents.
func EventIDs(ctx context.Context, from EventLister, scope abi.MemoryScope) ([]string, error) {
	ids := []string{}
	for q := (EventQuery{Scope: scope, Limit: MaxPage}); ; {
		page, err := from.ListEvents(ctx, q)
		if err != nil {
			if code := abi.CodeOf(err); code == abi.CodeUnsupported || code == abi.CodeNotFound {
				return nil, nil
			}
			return nil, err
		}
		for _, e := range page.Events {
			ids = append(ids, e.EventID)
		}
		if page.Next == "" {
			return ids, nil
		}
		q.After = page.Next
	}
}

// Sizes of a page, in items.
const (
	DefaultPage = 100
	MaxPage     = 500
)

// ScopeQuery asks for a page of scopes.
type ScopeQuery struct {
	// After is Next of the previous page; empty for the first page.
	After string
	// Limit is the maximum number of scopes in the page; 0 means DefaultPage, more than MaxPage means MaxPage.
	Limit int64
	// Contains selects scopes whose ids, joined as "run / person / agent", contain this text, in upper or lower case.
	// Empty means all.
	Contains string
	// OnlyOpen selects scopes with queued, pending or lost events.
	OnlyOpen bool
	// Counts fills ListedScope.Events and LastAt. A page may then be shorter: it ends once about 20,000 events are counted.
	Counts bool
}

// ScopePage is a part of the list of scopes.
type ScopePage struct {
	Scopes []ListedScope
	// Next is where the next page starts; empty on the last page. A page may have fewer scopes than the limit, or none,
	// and still not be the last.
	Next string
	// Default is the scope that commands mean when they name none. Nil if a slot does not tell it.
	Default *abi.MemoryScope
}

// TimeFormat is RFC 3339 with three digits of the second, so that the order of the texts is the order of the times.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// ListedScope is a scope with its open events.
type ListedScope struct {
	ScopeMapping
	// Queued and Pending count the events that may still arrive in memory, Lost those that did not.
	Queued, Pending, Lost int64
	// Events counts the events in the ledger of the present generation, and LastAt is when the last of them was sent,
	// in TimeFormat; empty if that is unknown. Both are nil or empty unless ScopeQuery.Counts asked for them.
	Events *int64
	LastAt string
}

// EventQuery asks for a page of a scope's events.
type EventQuery struct {
	Scope abi.MemoryScope
	// After is Next of the previous page; empty for the first page.
	After string
	// Limit is the maximum number of events in the page; 0 means DefaultPage, more than MaxPage means MaxPage.
	Limit int64
	// States filters by state (EventStates); empty means every state.
	States []string
	// SessionID filters by session; empty means every session, including events whose session is not known.
	SessionID string
}

// Validate checks the query.
//
// Errors: invalid_argument; for an unknown state it suggests the nearest known one.
func (q *EventQuery) Validate() error {
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

// Wants reports whether an event matches the query.
func (q *EventQuery) Wants(e *ListedEvent) bool {
	return (len(q.States) == 0 || slices.Contains(q.States, e.State)) &&
		(q.SessionID == "" || q.SessionID == e.SessionID)
}

// OnlyOpen reports whether the query asks for open states only.
func (q *EventQuery) OnlyOpen() bool {
	isFinal := func(is string) bool { return !slices.Contains(openStates(), is) }
	return len(q.States) > 0 && !slices.ContainsFunc(q.States, isFinal)
}

// EventPage is a part of the list of a scope's events.
type EventPage struct {
	// Generation is the scope's generation: it starts at 1, and each reset increases it. Events of earlier generations
	// are not listed.
	Generation int64
	Events     []ListedEvent
	// Next is where the next page starts; empty on the last page. A page may have fewer events than the limit, or none,
	// and still not be the last.
	Next string
}

// ListedEvent is what the delivery ledger knows about an event.
type ListedEvent struct {
	EventID string
	// SessionID is empty for events from before the ledger stored it.
	SessionID string
	// State is the outcome so far: one of EventStates.
	State string
	// SentAt is when the event was last sent to the provider, in TimeFormat; empty if unknown.
	SentAt string
	// Receipt is the provider's receipt, without its trace; nil in the state sent.
	Receipt *abi.WriteReceipt
}

// States of an event in the ledger, besides those of abi.WriteStatus.
const (
	// EventSent means that the event was sent, and its outcome is unknown.
	EventSent = "sent"
	// EventLost and EventFailed mean that it did not arrive. If it is recorded again, it is sent again.
	EventLost   = "lost"
	EventFailed = "failed"
)

// EventStates are the states that a listed event may have. The last two are final.
func EventStates() []string {
	return append(openStates(), string(abi.StatusCommitted), string(abi.StatusNotRetained))
}

// openStates are the states that are not final.
func openStates() []string {
	return []string{EventSent, EventLost, EventFailed, string(abi.StatusQueued), string(abi.StatusPending),
		string(abi.StatusPartial), string(abi.StatusUncertain)}
}
