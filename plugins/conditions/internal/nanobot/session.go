package nanobot

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Head is the part of a session's state that recording writes.
type Head struct {
	// ID is the session's.
	ID string
	// Messages counts all recorded messages, Forgotten the forgotten ones, Tokens the tokens of all texts.
	Messages, Forgotten, Tokens int64
	// Order is the arrival number, within the scope, of the session's latest event.
	Order int64
	// Created and Updated are the times of the first and the latest event; Arrived is the host's clock at the latest
	// one, in ms since 1970.
	Created, Updated string
	Arrived          int64
	// Want is the number of messages when the policy last requested work.
	Want int64
	// EndedAt: all messages before it are to be archived, because the session has ended.
	EndedAt int64
}

func (h *Head) members() []object.Member {
	return []object.Member{object.Optional("key", &h.ID), object.Optional("messages", &h.Messages),
		object.Optional("forgotten", &h.Forgotten),
		object.Optional("tokens", &h.Tokens),
		object.Optional("order", &h.Order), object.Optional("created_at", &h.Created), object.Optional("updated_at",
			&h.Updated),
		object.Optional("arrived_ms", &h.Arrived), object.Optional("want", &h.Want),
		object.Optional("archive", &h.EndedAt)}
}

// Mark is the part of a session's state that archiving writes. Messages are counted from 0; Pointer is the first that
// is not archived.
type Mark struct {
	Pointer int64
	// Base is the first message that the session still has: earlier ones were archived and cleared.
	Base int64
	// Tokens of the messages before Pointer.
	Tokens int64
	// Checked is the number of messages when the policy was last satisfied.
	Checked int64
	// IdleTo: the messages before it are to be archived, because the session is idle.
	IdleTo int64
	// Settled: the messages before it were said before a person last wrote the memory by hand.
	Settled int64
	model.Failure
	// Summary is the latest archive's summary, Summarised the session's time at that point.
	Summary, Summarised string
	version             int64
}

func (m *Mark) members() []object.Member {
	return append(m.Members(), object.Optional("last_consolidated", &m.Pointer), object.Optional("base", &m.Base),
		object.Optional("tokens", &m.Tokens),
		object.Optional("checked", &m.Checked), object.Optional("idle_to", &m.IdleTo), object.Optional("settled", &m.Settled),
		object.Optional("last_summary", &m.Summary),
		object.Optional("last_active", &m.Summarised))
}

// Session is one session of the scope.
type Session struct {
	Head
	Mark
	key string
}

// Open counts the messages that are not archived yet.
func (s *Session) Open() int64 { return s.Messages - s.Pointer }

// outstanding reports whether work waits. all: also count the work that the end of the session would bring.
func (s *Session) outstanding(all bool) bool {
	return s.EndedAt > s.Pointer || s.IdleTo > s.Pointer || s.Want > s.Checked || all && s.Messages > s.Pointer
}

// NativeID is the session's name in the state.
func (s *Session) NativeID() string { return s.key[2:] }

// log returns the name of the log with the session's messages.
func (s *Session) log() string { return "messages/" + s.key }

// keyOf maps an id to a key. Ids may be as long as keys, so long ids are hashed.
func keyOf(id string) string {
	if len(id) > 400 {
		return "h/" + sdk.Digest256(id)
	}
	return "s/" + id
}

// FindSession reads a session. One that was never recorded has no messages.
func FindSession(st *state.State, id string) *Session { return sessionAt(st, keyOf(id)) }

func sessionAt(st *state.State, key string) *Session {
	s := &Session{key: key}
	st.Load("head/"+key, s.Head.members()...)
	s.version = st.Load("mark/"+key, s.Mark.members()...)
	if s.Base < 0 || s.Base > s.Messages {
		s.Base = 0
	}
	if s.Pointer < s.Base || s.Pointer > s.Messages {
		s.Pointer = s.Base
	}
	return s
}

// Sessions returns all sessions of the scope, ordered by their last event, oldest first.
func Sessions(st *state.State) []*Session {
	var list []*Session
	for item := range st.Items(abi.StateListRequest{Prefix: "head/"}) {
		list = append(list, sessionAt(st, item.Key[len("head/"):]))
	}
	return ordered(list, func(s *Session) int64 { return s.Order })
}

// Save writes the mark, unless another operation has written it since.
func (s *Session) Save(st *state.State) {
	key := "mark/" + s.key
	st.Store(key, s.version, s.Mark.members()...)
	_, s.version = st.Get(key)
}

// Read returns the messages from one number up to but excluding another. For an unreadable line the message is empty,
// and bad counts it.
func (s *Session) Read(st *state.State, from, to int64) (messages []Message, bad int64) {
	for entry := range st.Entries(s.log(), from+1, to) {
		m, err := DecodeMessage(entry.Data)
		if err != nil {
			bad++
			m = Message{}
		}
		messages = append(messages, m)
	}
	return messages, bad
}

// Done records a success: everything before end is archived.
func (s *Session) Done(end int64, tokens int64) {
	if end > s.Pointer {
		s.Pointer = end
		s.Mark.Tokens += tokens
	}
	s.Failure = model.Failure{}
}

func (s *Session) writeStatus(e *wirejson.Encoder) {
	messages, pointer, failure := s.Messages-s.Base, s.Pointer-s.Base, ""
	if s.Code != "" {
		failure = s.Code + " " + s.Reason + ": " + s.Message
	}
	object.Write(e, object.Always("session_id", &s.ID), object.Always("messages", &messages),
		object.Always("last_consolidated", &pointer),
		object.Always("archived", &s.Base), object.Always("failures", &s.Failures), object.Always("retry_at_ms",
			&s.RetryAt), object.Optional("error", &failure))
}
