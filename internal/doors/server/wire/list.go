package wire

import "github.com/memhost/memhost/abi"

// ScopeList is a page of the scopes that the slot knows.
type ScopeList struct {
	Scopes []ListedScope `json:"scopes"`
	// Next goes into the query parameter after of the following page. Absent on the last page; a page before it may
	// have fewer scopes than asked for.
	Next string `json:"next,omitempty"`
	// Default is the scope of the slot's configuration (memory.scope): commands that name none mean that. Absent with
	// memory.scopes: configured: callers then have to know their scope.
	Default *abi.MemoryScope `json:"default,omitempty"`
}

// ListedScope is a scope with the number of its open events.
type ListedScope struct {
	Scope abi.MemoryScope `json:"scope"`
	// Generation counts the scope's resets, from 1.
	Generation int64 `json:"generation"`
	// NativeScope is from setup_scope: the backend's id for each of its concepts (workspace, group_id, ...). Absent if
	// the backend has no names of its own, and until the generation has been set up.
	NativeScope map[string]string `json:"native_scope,omitempty"`
	// Since is when the scope was set up, RFC 3339.
	Since string `json:"since,omitempty"`
	// Queued counts the events that the backend still works on.
	Queued int64 `json:"queued"`
	// Pending counts the events of which it is unknown whether they arrived, or how much of them.
	Pending int64 `json:"pending"`
	// Lost counts the events that are known not to have arrived. Record them again.
	Lost int64 `json:"lost"`
	// Events counts the events of the present generation that the ledger knows. Absent unless counts asked for it.
	Events *int64 `json:"events,omitempty"`
	// LastAt is when the last of them was sent, RFC 3339. Absent unless counts asked for it, and if it is unknown.
	LastAt string `json:"last_at,omitempty"`
}

// ScopeListRequest asks for a page of scopes. Unlike the query of GET /v1/scopes it can search, and ids in it reach no
// log of addresses.
type ScopeListRequest struct {
	// After is next of the page before; absent for the first page.
	After string `json:"after,omitempty"`
	// Limit is how many scopes the page has at most; 0 means 100. At most 500.
	Limit int64 `json:"limit,omitempty"`
	// Contains selects scopes whose ids, joined as "run / person / agent", contain this text, in upper or lower case.
	Contains string `json:"contains,omitempty"`
	// OnlyOpen selects scopes with queued, pending or lost events.
	OnlyOpen bool `json:"only_open,omitempty"`
	// Counts adds events and last_at to each scope. Such a page ends early once about 20,000 events are counted.
	Counts bool `json:"counts,omitempty"`
}

// Validate checks the limit.
func (x *ScopeListRequest) Validate() error {
	if x.Limit < 0 || x.Limit > 500 {
		return abi.NewError(abi.CodeInvalidArgument, "limit: want 0 to 500")
	}
	return nil
}

// EventListRequest asks for a page of a scope's events.
type EventListRequest struct {
	Scope abi.MemoryScope `json:"scope"`
	// After is next of the page before; absent for the first page.
	After string `json:"after,omitempty"`
	// Limit is how many events the page has at most; 0 means 100. At most 500.
	Limit int64 `json:"limit,omitempty"`
	// States selects events by state; absent means all: committed, not_retained, queued, pending, partial, uncertain,
	// sent (the outcome is unknown), lost and failed.
	States []string `json:"states,omitempty"`
	// SessionID selects a session; absent means all.
	SessionID string `json:"session_id,omitempty"`
}

// Validate checks scope and limit. The host checks the states.
func (x *EventListRequest) Validate() error {
	if x.Limit < 0 || x.Limit > 500 {
		return abi.NewError(abi.CodeInvalidArgument, "limit: want 0 to 500")
	}
	return under("scope", x.Scope.Validate())
}

// under adds a field's name to the message of an error inside it.
func under(name string, err error) error {
	if err == nil {
		return nil
	}
	e := *abi.AsError(err)
	e.Code = abi.CodeInvalidArgument
	e.Message = name + ": " + e.Message
	return &e
}

// EventList is a page of a scope's events, in the byte order of their ids.
type EventList struct {
	// Generation counts the scope's resets, from 1. Events of earlier generations are not listed.
	Generation int64         `json:"generation"`
	Events     []ListedEvent `json:"events"`
	// Next goes into after of the following page. Absent on the last page; a page before it may have fewer events than
	// asked for.
	Next string `json:"next,omitempty"`
}

// ListedEvent is what the delivery ledger knows of an event. The ledger keeps no text.
type ListedEvent struct {
	EventID string `json:"event_id"`
	// SessionID is the event's session. Absent for an event that was recorded before the ledger kept it.
	SessionID string `json:"session_id,omitempty"`
	// State is the outcome so far: a status of WriteReceipt, or sent, lost or failed.
	State string `json:"state"`
	// SentAt is when the event was last sent to the provider, RFC 3339. Absent if that is unknown.
	SentAt string `json:"sent_at,omitempty"`
	// Receipt is the provider's, without its trace. Absent in the state sent.
	Receipt *abi.WriteReceipt `json:"receipt,omitempty"`
}
