package wire

import (
	"maps"
	"slices"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
)

// ScopeList is a page of the scopes that the slot knows.
type ScopeList struct {
	Scopes []ListedScope `json:"scopes"`
	// Next goes into the query parameter after of the following page. Absent on the last page; a page before it may
	// have fewer scopes than asked for.
	Next string `json:"next,omitempty"`
	// Default is the scope of the slot's configuration (memory.scope): commands that name none mean that. Absent with
	// memory.scopes: configured, where a caller has to know it.
	Default *abi.MemoryScope `json:"default,omitempty"`
}

// Encode implements abi.Encodable.
func (x *ScopeList) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	objects(e, "scopes", x.Scopes)
	optional(e, "next", x.Next)
	if x.Default != nil {
		e.FieldStart("default")
		x.Default.Encode(e)
	}
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *ScopeList) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = ScopeList{}
	return readObject(d, m, []member{
		{"scopes", func(d *wirejson.Decoder) error {
			x.Scopes = []ListedScope{}
			return d.Arr(func(d *wirejson.Decoder) error {
				x.Scopes = append(x.Scopes, ListedScope{})
				return x.Scopes[len(x.Scopes)-1].Decode(d, m)
			})
		}},
		{"next", text(&x.Next)},
		{"default", func(d *wirejson.Decoder) error {
			x.Default = new(abi.MemoryScope)
			return x.Default.Decode(d, m)
		}}})
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

// Encode implements abi.Encodable.
func (x *ListedScope) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("scope")
	x.Scope.Encode(e)
	number(e, "generation", x.Generation)
	if len(x.NativeScope) > 0 {
		e.FieldStart("native_scope")
		e.ObjStart()
		for _, name := range slices.Sorted(maps.Keys(x.NativeScope)) {
			e.FieldStart(name)
			e.Str(x.NativeScope[name])
		}
		e.ObjEnd()
	}
	optional(e, "since", x.Since)
	number(e, "queued", x.Queued)
	number(e, "pending", x.Pending)
	number(e, "lost", x.Lost)
	if x.Events != nil {
		number(e, "events", *x.Events)
	}
	optional(e, "last_at", x.LastAt)
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *ListedScope) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = ListedScope{}
	return readObject(d, m, []member{
		{"scope", func(d *wirejson.Decoder) error { return x.Scope.Decode(d, m) }},
		{"generation", integer(&x.Generation)}, {"native_scope", names(&x.NativeScope)}, {"since", text(&x.Since)},
		{"queued", integer(&x.Queued)}, {"pending", integer(&x.Pending)}, {"lost", integer(&x.Lost)},
		{"events", func(d *wirejson.Decoder) error {
			x.Events = new(int64)
			return integer(x.Events)(d)
		}},
		{"last_at", text(&x.LastAt)}})
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

// Encode implements abi.Encodable.
func (x *ScopeListRequest) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	optional(e, "after", x.After)
	if x.Limit != 0 {
		number(e, "limit", x.Limit)
	}
	optional(e, "contains", x.Contains)
	for _, f := range []struct {
		name string
		set  bool
	}{{"only_open", x.OnlyOpen}, {"counts", x.Counts}} {
		if f.set {
			e.FieldStart(f.name)
			e.Bool(true)
		}
	}
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *ScopeListRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = ScopeListRequest{}
	return readObject(d, m, []member{
		{"after", text(&x.After)}, {"limit", integer(&x.Limit)}, {"contains", text(&x.Contains)},
		{"only_open", flag(&x.OnlyOpen)}, {"counts", flag(&x.Counts)}})
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

// Encode implements abi.Encodable.
func (x *EventListRequest) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("scope")
	x.Scope.Encode(e)
	optional(e, "after", x.After)
	if x.Limit != 0 {
		number(e, "limit", x.Limit)
	}
	if len(x.States) > 0 {
		list(e, "states", x.States)
	}
	optional(e, "session_id", x.SessionID)
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *EventListRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = EventListRequest{}
	return readObject(d, m, []member{
		{"scope", func(d *wirejson.Decoder) error { return x.Scope.Decode(d, m) }},
		{"after", text(&x.After)}, {"limit", integer(&x.Limit)}, {"states", texts(&x.States)},
		{"session_id", text(&x.SessionID)}})
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

// Encode implements abi.Encodable.
func (x *EventList) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	number(e, "generation", x.Generation)
	objects(e, "events", x.Events)
	optional(e, "next", x.Next)
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *EventList) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = EventList{}
	return readObject(d, m, []member{
		{"generation", integer(&x.Generation)},
		{"events", func(d *wirejson.Decoder) error {
			x.Events = []ListedEvent{}
			return d.Arr(func(d *wirejson.Decoder) error {
				x.Events = append(x.Events, ListedEvent{})
				return x.Events[len(x.Events)-1].Decode(d, m)
			})
		}},
		{"next", text(&x.Next)}})
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

// Encode implements abi.Encodable.
func (x *ListedEvent) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("event_id")
	e.Str(x.EventID)
	optional(e, "session_id", x.SessionID)
	e.FieldStart("state")
	e.Str(x.State)
	optional(e, "sent_at", x.SentAt)
	if x.Receipt != nil {
		e.FieldStart("receipt")
		x.Receipt.Encode(e)
	}
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *ListedEvent) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = ListedEvent{}
	return readObject(d, m, []member{
		{"event_id", text(&x.EventID)}, {"session_id", text(&x.SessionID)}, {"state", text(&x.State)},
		{"sent_at", text(&x.SentAt)},
		{"receipt", func(d *wirejson.Decoder) error {
			x.Receipt = new(abi.WriteReceipt)
			return x.Receipt.Decode(d, m)
		}}})
}

// optional encodes a field unless it is empty.
func optional(e *wirejson.Encoder, name, value string) {
	if value != "" {
		e.FieldStart(name)
		e.Str(value)
	}
}

// objects writes a field of objects.
func objects[T any, P interface {
	*T
	abi.Encodable
}](e *wirejson.Encoder, name string, values []T) {
	e.FieldStart(name)
	e.ArrStart()
	for i := range values {
		P(&values[i]).Encode(e)
	}
	e.ArrEnd()
}

// list writes a field of strings.
func list(e *wirejson.Encoder, name string, values []string) {
	e.FieldStart(name)
	e.ArrStart()
	for _, v := range values {
		e.Str(v)
	}
	e.ArrEnd()
}

func number(e *wirejson.Encoder, name string, value int64) {
	e.FieldStart(name)
	e.Int64(value)
}

// integer reads a whole number; null is 0.
func integer(to *int64) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) (err error) {
		if d.Next() == wirejson.Null {
			*to = 0
			return d.Null()
		}
		if err := want(d, wirejson.Number, "a whole number"); err != nil {
			return err
		}
		*to, err = d.Int64()
		return err
	}
}

// names reads an object of strings.
func names(to *map[string]string) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) error {
		*to = map[string]string{}
		if err := want(d, wirejson.Object, "an object of strings"); err != nil {
			return err
		}
		return d.Obj(func(d *wirejson.Decoder, key string) error {
			var value string
			err := text(&value)(d)
			(*to)[key] = value
			return err
		})
	}
}

// texts reads a list of strings; null is the empty one.
func texts(to *[]string) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) error {
		*to = nil
		if d.Next() == wirejson.Null {
			return d.Null()
		}
		if err := want(d, wirejson.Array, "an array of strings"); err != nil {
			return err
		}
		return d.Arr(func(d *wirejson.Decoder) error {
			var one string
			err := text(&one)(d)
			*to = append(*to, one)
			return err
		})
	}
}
