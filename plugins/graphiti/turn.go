package main

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// turn is an event as Graphiti takes it: one episode, named after the event. One episode for each message would cost as many extractions, and
// a turn could arrive in part.
type turn struct {
	// name is the event id: unique in the scope, and the only handle there is.
	name string
	// roleType is user, assistant or system; role is the speaker, which extraction makes an entity of.
	roleType, role string
	// content is the first message and, each on a line "speaker(role): text", the others.
	content string
	// at is the event's time, UTC; atMS the same in Unix ms.
	at   string
	atMS int64
	// about is stored as source_description: readable, and ignored by extraction and by fact search.
	about string
	// whole is the messages as JSON, for episodes of type json.
	whole []byte
}

// turnOf makes a turn of an event; nil when none of its messages is to be ingested.
//
// Errors: invalid_argument. All is checked here: the servers answer "queued" to what they cannot process, and on REST one such turn ends ingestion for all.
func (s *settings) turnOf(e *abi.MemoryEvent) (*turn, error) {
	at, atMS, err := utc("timestamp", e.Timestamp)
	if err != nil {
		return nil, err
	}
	var t *turn
	var kept []abi.Message
	for i := range e.Messages {
		m := &e.Messages[i]
		if !s.ingests(m.Role) {
			continue
		}
		kept = append(kept, *m)
		roleType, role := speaker(m, e)
		if t == nil {
			t = &turn{name: e.EventID, roleType: roleType, role: role, at: at, atMS: atMS, about: about(e)}
			if s.labelSentence {
				t.content = sentence(e)
			}
			t.content += spoken(m)
		} else {
			t.content += "\n" + role + "(" + roleType + "): " + spoken(m)
		}
	}
	if t != nil && s.source == "json" {
		t.whole = abi.Marshal(&abi.MemoryEvent{EventID: e.EventID, RunID: e.RunID, UserID: e.UserID, SessionID: e.SessionID, TurnID: e.TurnID, Timestamp: at, Messages: kept})
	}
	return t, nil
}

// body is the episode's text on MCP: what the REST service makes of a message itself, or the event for type json.
func (t *turn) body(source string) string {
	if source == "json" {
		return string(t.whole)
	}
	return t.role + "(" + t.roleType + "): " + t.content
}

// labelMax bounds a speaker's label, in bytes: it becomes an entity's name, which is indexed, and one of 9 kB aborts the commit.
const labelMax = 256

// speaker says who a message is by. A label must stay the same for a person: each one is an entity. Graphiti has no role for tools.
func speaker(m *abi.Message, e *abi.MemoryEvent) (roleType, label string) {
	switch m.Role {
	case abi.RoleUser:
		roleType, label = "user", first(m.Name, e.UserID)
	case abi.RoleAssistant:
		roleType, label = "assistant", first(m.Name, e.AgentID, "assistant")
	case abi.RoleTool:
		roleType, label = "system", "tool"
		if m.Name != "" {
			label += ":" + m.Name
		}
	default:
		roleType, label = "system", first(m.Name, "system")
	}
	return roleType, cutText(sdk.OneLine(label), labelMax)
}

// spoken is a message's text with what it calls, or what call it answers.
func spoken(m *abi.Message) string {
	var b strings.Builder
	if m.ToolCallID != "" {
		b.WriteString("[" + sdk.OneLine(m.ToolCallID) + "] ")
	}
	if m.Content != nil {
		b.WriteString(*m.Content)
	}
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("calls " + sdk.OneLine(call.Name) + " [" + sdk.OneLine(call.ID) + "]: " + call.Arguments)
	}
	return b.String()
}

// about is an event's ids and labels as compact JSON.
func about(e *abi.MemoryEvent) string {
	var j jsontext.Encoder
	j.ObjStart()
	for _, f := range [...]struct{ key, value string }{{"mh_event", e.EventID}, {"mh_session", e.SessionID}, {"mh_turn", e.TurnID}, {"mh_agent", e.AgentID},
		{"mh_scenario", e.Scenario}, {"mh_context", e.Context}, {"mh_attribute", e.Attribute}} {
		if f.value != "" {
			j.FieldStart(f.key)
			j.Str(f.value)
		}
	}
	if len(e.Metadata) > 0 {
		j.FieldStart("mh_metadata")
		j.ObjStart()
		for _, name := range abi.SortedKeys(e.Metadata) {
			j.FieldStart(name)
			if value := e.Metadata[name]; len(value) > 0 {
				j.Raw(jsontext.Raw(value))
			} else {
				j.Null()
			}
		}
		j.ObjEnd()
	}
	j.ObjEnd()
	return string(j.Bytes())
}

// sentence names an event's labels in words, so that extraction can put them into facts.
func sentence(e *abi.MemoryEvent) string {
	var parts []string
	for _, f := range [...]struct{ what, value string }{{"context", e.Context}, {"scenario", e.Scenario}} {
		if f.value != "" {
			parts = append(parts, f.what+" "+sdk.OneLine(f.value))
		}
	}
	if parts == nil {
		return ""
	}
	return "(This is said in the " + strings.Join(parts, ", ") + ".) "
}

func first(candidates ...string) string {
	for _, c := range candidates {
		if strings.TrimSpace(c) != "" {
			return c
		}
	}
	return ""
}

// cutText is the beginning of s, of at most n bytes, ending between characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
