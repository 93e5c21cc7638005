package nanobot

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// recorder stores the messages of events. Its cost does not depend on the amount of stored messages.
type recorder struct {
	*Base
	memory   Memory
	scope    scopeState
	sessions []*Session
	// sessionOf maps each receipt of a stored event to its session.
	sessionOf map[*abi.WriteReceipt]string
}

// scopeState is the value of the key scope.
type scopeState struct {
	last     string
	arrivals int64
	version  int64
}

func (s *scopeState) members() []object.Member {
	return []object.Member{object.Optional("last_session_id", &s.last), object.Optional("arrivals", &s.arrivals)}
}

// lastSession is the session of the latest event, "" before the first.
func lastSession(st *state.State) string {
	var s scopeState
	st.Load("scope", s.members()...)
	return s.last
}

func newRecorder(m Memory) *recorder {
	r := &recorder{Base: m.Common(), memory: m, sessionOf: map[*abi.WriteReceipt]string{}}
	r.scope.version = r.Load("scope", r.scope.members()...)
	return r
}

// index is the value of the key event/<id>: the event's messages, counted from 1.
type index struct {
	session, digest string
	first, last     int64
	// empty: the model, as far as it has read, found nothing in the event worth keeping.
	empty bool
}

func (x *index) members() []object.Member {
	return []object.Member{object.Optional("session", &x.session), object.Optional("digest", &x.digest),
		object.Optional("first", &x.first), object.Optional("last", &x.last),
		object.Optional("empty", &x.empty)}
}

// RecordYield records whether the model kept anything from an archive's messages, which start at from. An event that
// was split between two archives is empty only if neither kept anything.
func (b *Base) RecordYield(messages []Message, from int64, kept bool) {
	for _, id := range EventsOf(messages) {
		var at index
		version := b.Load(eventKey(id), at.members()...)
		empty := !kept && (at.first > from || at.empty)
		if version != 0 && empty != at.empty {
			at.empty = empty
			b.Store(eventKey(id), version, at.members()...)
		}
	}
}

// nativeIDs returns the native ids of an event's messages: the session, and the first message's number.
func (x *index) nativeIDs() []string { return []string{x.session[2:] + "#" + sdk.Itoa(x.first-1)} }

func eventKey(id string) string {
	if len(id) > 400 {
		return "event#" + sdk.Digest256(id)
	}
	return "event/" + id
}

func (r *recorder) session(id string) *Session {
	for _, s := range r.sessions {
		if s.ID == id {
			return s
		}
	}
	s := FindSession(r.State, id)
	s.ID = id
	r.sessions = append(r.sessions, s)
	return s
}

// add appends the event's messages to those of its session. The receipt has no status yet, unless the scope holds
// the event already.
//
// Errors: conflict when it holds the event with other content.
func (r *recorder) add(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt := &abi.WriteReceipt{EventID: e.EventID, NativeIDsKind: abi.NativeIDsFinal, StoredCount: new(int64),
		Trace: r.Trace("state_append")}
	at, digest := index{}, sdk.DigestBytes(abi.Marshal(e))
	if r.Load(eventKey(e.EventID), at.members()...) != 0 {
		if at.digest != digest && at.digest != "" { // an imported event has none
			return nil, abi.NewError(abi.CodeConflict, "event_id: the scope holds this id with other content")
		}
		receipt.Status, receipt.Duplicate, receipt.NativeIDs = abi.StatusCommitted, true, at.nativeIDs()
		receipt.Warnings = []string{"duplicate_event: the scope holds this turn already; nothing was stored"}
		return receipt, nil
	}
	if r.BySession() && r.scope.last != "" && r.scope.last != e.SessionID {
		ended := r.session(r.scope.last)
		ended.EndedAt = ended.Messages
	}
	s := r.session(e.SessionID)
	at = index{session: s.key, digest: digest, first: s.Messages + 1, last: s.Messages + int64(len(e.Messages))}
	for i := range e.Messages {
		m := messageOf(e, &e.Messages[i])
		r.Append(s.log(), m.Encode())
		if r.Policy == model.PolicyTokens {
			s.Head.Tokens += m.tokens(r.Call)
		}
	}
	r.Store(eventKey(e.EventID), 0, at.members()...)
	r.scope.arrivals++
	r.scope.last = e.SessionID
	s.Messages, s.Order, s.Updated, s.Arrived = at.last, r.scope.arrivals, e.Timestamp, r.NowMS()
	s.Created = or(s.Created, e.Timestamp)
	*receipt.StoredCount, receipt.NativeIDs = int64(len(e.Messages)), at.nativeIDs()
	receipt.Trace.NativeIDs = receipt.NativeIDs
	r.sessionOf[receipt] = e.SessionID
	return receipt, nil
}

// messageOf converts one message of an event to its stored form. Its time is the event's.
func messageOf(e *abi.MemoryEvent, m *abi.Message) *Message {
	stored := &Message{Role: string(m.Role), Timestamp: e.Timestamp, Name: m.Name, ToolCallID: m.ToolCallID,
		ToolCalls: m.ToolCalls, EventID: e.EventID, TurnID: e.TurnID}
	if m.Content != nil {
		stored.Content = *m.Content
	}
	return stored
}

// tokens counts the tokens of a message: its content, calls and names by the host's tokenizer, and 4 for its frame.
func (m *Message) tokens(c *sdk.Call) int64 {
	text := m.Content + m.Name + m.ToolCallID
	for _, call := range m.ToolCalls {
		text += call.ID + call.Name + call.Arguments
	}
	return c.CountTokens(text) + 4
}

// close requests due work and writes what was recorded. A receipt becomes pending if its messages wait for processing,
// otherwise committed.
func (r *recorder) close(receipts ...*abi.WriteReceipt) {
	if len(r.sessions) == 0 {
		return
	}
	for _, s := range r.sessions {
		if due(r.memory, s) {
			s.Want = s.Messages
		}
		r.Store("head/"+s.key, sdk.AnyVersion, s.Head.members()...)
	}
	r.Store("scope", r.scope.version, r.scope.members()...)
	for _, receipt := range receipts {
		if receipt == nil || receipt.Duplicate {
			continue
		}
		receipt.Status, receipt.Trace.Consistency = abi.StatusCommitted, "committed"
		if r.session(r.sessionOf[receipt]).outstanding(r.BySession()) {
			receipt.Status, receipt.Trace.Consistency = abi.StatusPending, "pending"
			receipt.Markers = []string{receipt.EventID}
		}
	}
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
