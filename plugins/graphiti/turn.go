package main

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// turn is an event in Graphiti's form: one episode, named after the event. One episode per message would multiply the
// extractions, and a turn could arrive in part.
type turn struct {
	// name is the event id: unique in the scope, and the only way to find the episode.
	name string
	// roleType is user, assistant or system; role is the speaker, which extraction makes into an entity.
	roleType, role string
	// content is the first message, followed by the others on lines "speaker(role): text".
	content string
	// at is the event's time, UTC; atMS the same in Unix ms.
	at   string
	atMS int64
	// about is stored as source_description. Extraction and fact search ignore it.
	about string
	// whole is the messages as JSON, for episodes of type json.
	whole []byte
	// session is the event's session, for sagas.
	session string
}

// turnOf converts an event to a turn; nil if none of its messages is to be ingested. It checks everything, because the
// servers answer "queued" to what they cannot process, and on REST one such turn stops ingestion for all scopes.
//
// Errors: invalid_argument.
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
		if t != nil {
			t.content += "\n" + role + "(" + roleType + "): " + messageText(m)
			continue
		}
		t = &turn{name: e.EventID, roleType: roleType, role: role, at: at, atMS: atMS, about: about(e),
			content: messageText(m), session: e.SessionID}
		if s.labelSentence {
			t.content = sentence(e) + t.content
		}
	}
	if t != nil && s.source == "json" {
		t.whole = abi.Marshal(&abi.MemoryEvent{EventID: e.EventID, RunID: e.RunID, UserID: e.UserID,
			SessionID: e.SessionID, TurnID: e.TurnID,
			Timestamp: at, Messages: kept})
	}
	return t, nil
}

// body returns the episode's text on MCP and core: the text that the REST service would build, or the event for type
// json.
func (t *turn) body(source string) string {
	if source == "json" {
		return string(t.whole)
	}
	return t.role + "(" + t.roleType + "): " + t.content
}

// labelMax is the maximum length of a speaker's label, in bytes: it becomes an entity's name, which is indexed, and a
// name of 9 kB aborts the commit.
const labelMax = 256

// speaker returns the label of a message's speaker. A person's label must not change, because each label is an entity.
// Graphiti has no role for tools.
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

// messageText returns a message's text with its tool calls, or with the call that it answers.
func messageText(m *abi.Message) string {
	text := ""
	if m.ToolCallID != "" {
		text = "[" + sdk.OneLine(m.ToolCallID) + "] "
	}
	if m.Content != nil {
		text += *m.Content
	}
	for _, call := range m.ToolCalls {
		if text != "" {
			text += "\n"
		}
		text += "calls " + sdk.OneLine(call.Name) + " [" + sdk.OneLine(call.ID) + "]: " + call.Arguments
	}
	return text
}

// about returns an event's ids and labels as compact JSON.
func about(e *abi.MemoryEvent) string {
	var metadata []field
	for _, name := range abi.SortedKeys(e.Metadata) {
		value := e.Metadata[name]
		if len(value) == 0 {
			value = abi.Raw("null")
		}
		metadata = append(metadata, field{name, value})
	}
	labels := []field{{"mh_event", optional(e.EventID)}, {"mh_session", optional(e.SessionID)},
		{"mh_turn", optional(e.TurnID)},
		{"mh_agent", optional(e.AgentID)}, {"mh_scenario", optional(e.Scenario)}, {"mh_context", optional(e.Context)},
		{"mh_attribute", optional(e.Attribute)}}
	if metadata != nil {
		labels = append(labels, field{"mh_metadata", object(metadata...)})
	}
	return string(object(labels...))
}

// sentence describes an event's labels in words, so that extraction can put them into facts.
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

// first returns the first text that is not blank.
func first(candidates ...string) string {
	for _, c := range candidates {
		if strings.TrimSpace(c) != "" {
			return c
		}
	}
	return ""
}

// cutText returns the beginning of s, at most n bytes, without splitting a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
