package main

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// prefix begins every metadata key that memhost sets. mem0 keeps metadata and its own payload in one object, in which
// data, hash, role, user_id, expiration_date and others have a meaning, so the event's own metadata is nested under one
// key.
const prefix = "mh_"

// The keys of an event's labels: flat texts, because mem0 can filter only by those.
const (
	keyScenario  = "mh_scenario"
	keyContext   = "mh_context"
	keyAttribute = "mh_attribute"
	keySession   = "mh_session_id"
	keyTurn      = "mh_turn_id"
	keyEvent     = "mh_event_id"
	keyTime      = "mh_event_timestamp"
	keyParts     = "mh_parts"
)

// part is one message as sent to mem0.
type part struct {
	role, name, text string
}

// digestOf identifies a part among the stored rows, which keep its text but not its position in the event.
func digestOf(text string) string { return sdk.Digest256(text)[:12] }

// outgoing is an event as sent to mem0.
type outgoing struct {
	event    *abi.MemoryEvent
	parts    []part
	digests  string // of all parts, if they are stored verbatim
	expires  string // the day after which mem0 hides what it derived from the event, or ""
	warnings []string
}

// translate converts an event's messages to what mem0 accepts: tool messages, tool calls and names are folded into the
// text, because the extractor sees only the roles user, assistant and system, and the self-hosted server drops every
// other field.
func (b *backend) translate(e *abi.MemoryEvent) *outgoing {
	o := &outgoing{event: e}
	b.expire(o)
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Role == abi.RoleSystem && !b.infer {
			o.warn("system_not_stored: without extraction mem0 stores no system messages")
			continue
		}
		p := part{role: string(m.Role), text: messageText(m)}
		if text := withoutZero(p.text); len(text) < len(p.text) {
			p.text = text
			o.warn("nul_removed: mem0 cannot store U+0000; it was left out")
		}
		if strings.TrimSpace(p.text) == "" {
			continue
		}
		switch {
		case m.Role == abi.RoleTool:
			p.text = "[tool" + word(m.Name) + word(m.ToolCallID) + "] " + p.text
			if b.infer || b.platform() {
				p.role = string(abi.RoleAssistant)
			}
		case sdk.Named(m) && b.namePrefix:
			p.text = clean(m.Name) + ": " + p.text
		case sdk.Named(m):
			if b.platform() {
				p.name = clean(m.Name)
			}
			o.warn(abi.WarnSpeakerLost + ": name_prefix is off, and mem0's memories do not say who spoke")
		}
		if b.infer {
			o.parts = append(o.parts, p)
		} else {
			o.split(p, int(b.maxChars))
		}
	}
	if b.infer && b.observationDate == "inline" && len(o.parts) > 0 {
		o.parts[0].text = "[" + e.Timestamp[:10] + "] " + o.parts[0].text
	}
	if !b.infer {
		digests := make([]string, len(o.parts))
		for i, p := range o.parts {
			digests[i] = digestOf(p.text)
		}
		o.digests = strings.Join(digests, " ")
	}
	return o
}

// expire reads the expiry day of an event's memories from its metadata, if expiration_from names a key.
func (b *backend) expire(o *outgoing) {
	value, given := o.event.Metadata[b.expirationFrom]
	if b.expirationFrom == "" || !given {
		return
	}
	day := wire.Text(value)
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		o.warn("expiration_ignored: metadata." + b.expirationFrom + " is no day such as 2026-12-31")
		return
	}
	o.expires = day
}

func (o *outgoing) warn(warning string) {
	for _, w := range o.warnings {
		if w == warning {
			return
		}
	}
	o.warnings = append(o.warnings, warning)
}

// messageText returns a message's text with its tool calls.
func messageText(m *abi.Message) string {
	var lines []string
	if m.Content != nil && *m.Content != "" {
		lines = append(lines, *m.Content)
	}
	for _, call := range m.ToolCalls {
		lines = append(lines, "[calls"+word(call.Name)+word(call.ID)+"] "+call.Arguments)
	}
	return strings.Join(lines, "\n")
}

// word formats a name or an id for use in brackets: " search_web", or "".
func word(text string) string {
	if text == "" {
		return ""
	}
	return " " + clean(text)
}

// withoutZero removes U+0000, which mem0 cannot store.
func withoutZero(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// clean removes line ends and U+0000 from a name.
func clean(text string) string { return sdk.OneLine(withoutZero(text)) }

// split adds a part in pieces of at most limit characters, split after a blank if there is one in the second half; 0
// means no limit.
func (o *outgoing) split(p part, limit int) {
	for limit > 0 && utf8.RuneCountInString(p.text) > limit {
		end := 0
		for range limit {
			_, size := utf8.DecodeRuneInString(p.text[end:])
			end += size
		}
		if blank := strings.LastIndexAny(p.text[:end], " \n"); blank > end/2 {
			end = blank + 1
		}
		if piece := p.text[:end]; strings.TrimSpace(piece) != "" {
			o.parts = append(o.parts, part{p.role, p.name, piece})
			o.warn("message_split: a message longer than max_chars_per_message was stored in parts")
		}
		p.text = p.text[end:]
	}
	if strings.TrimSpace(p.text) != "" {
		o.parts = append(o.parts, p)
	}
}

// metadata returns the event's labels and metadata. created_at is a key of mem0 itself: it becomes the memory's
// created_at.
func (b *backend) metadata(o *outgoing) wire.Object {
	e := o.event
	text := func(value string) any { return wire.Some(withoutZero(value)) }
	var nested any
	if len(e.Metadata) > 0 {
		object := withoutNUL(wire.FromMap(e.Metadata).JSON())
		if nested = string(object); b.nestedMetadata {
			nested = abi.Raw(object)
		}
	}
	return wire.Object{keyScenario, text(e.Scenario), keyContext, text(e.Context), keyAttribute, text(e.Attribute),
		keySession, text(e.SessionID), keyTurn, text(e.TurnID), keyEvent, text(e.EventID), keyTime, text(e.Timestamp),
		"created_at", wire.If(b.backdate && !b.platform(), wire.Some(utc(e.Timestamp))),
		"mh_run", text(e.RunID), "mh_persona", text(e.UserID),
		"mh_agent_id", text(e.AgentID), keyParts, text(o.digests),
		"mh_event_metadata", nested}
}

// withoutNUL removes every \u0000 from JSON text. PostgreSQL rejects a row that contains one, but mem0 still answers
// 200.
func withoutNUL(text []byte) []byte {
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			kept = append(kept, text[i])
		case strings.HasPrefix(string(text[i+1:min(len(text), i+6)]), "u0000"):
			i += 5
		default:
			kept = append(kept, text[i], text[i+1])
			i++
		}
	}
	return kept
}

// utc formats a time as mem0 does: RFC 3339 in UTC, as in 2026-03-01T09:30:00.25+00:00. The host has checked that it is
// a time.
func utc(timestamp string) string {
	at, err := abi.ParseTime(timestamp)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.999999999+00:00")
}

// unixSeconds formats a time for the platform.
func unixSeconds(timestamp string) int64 {
	at, err := abi.ParseTime(timestamp)
	if err != nil {
		return 0
	}
	return at.Unix()
}

// addBody returns the request of an add.
func (b *backend) addBody(o *outgoing, parts []part, infer bool) []byte {
	e, day := o.event, o.event.Timestamp[:10]
	messages := make([]wire.Object, len(parts))
	for i, p := range parts {
		messages[i] = wire.Object{"role", wire.Some(p.role), "name", wire.Some(p.name), "content", wire.Some(p.text)}
	}
	body := wire.Object{"messages", messages, "user_id", b.ids.user, "run_id", b.ids.run, "infer", infer}
	native := b.observationDate == "native"
	switch {
	case b.platform():
		body = append(body, "timestamp", wire.If(b.backdate, unixSeconds(e.Timestamp)),
			"custom_instructions", wire.If(infer, wire.Some(b.instructions)),
			"custom_categories", wire.If(infer && len(b.categories) > 0, b.categories),
			"structured_data_schema", wire.If(infer && len(b.dataSchema) > 0, b.dataSchema),
			"observation_date", wire.If(infer && (native || b.observationDate == "prompt"), day))
	case infer && b.procedural:
		// Without a native agent mem0 makes an ordinary add of it. The prompt of such an add replaces the LLM's whole
		// system prompt, so a line about the day must not be sent.
		body = append(body, "memory_type", "procedural_memory", "agent_id", b.actor(e),
			"prompt", wire.Some(b.instructions))
	default:
		body = append(body, "prompt", wire.If(infer, wire.Some(b.prompt(day))),
			"observation_date", wire.If(infer && native, day),
			"agent_id", wire.Some(b.nativeAgent(e.AgentID)))
	}
	return append(body, "expiration_date", wire.Some(o.expires), "metadata", b.metadata(o)).JSON()
}

// nativeAgent returns the native agent_id of an add or, without an event's agent, of a search; "" if none is sent.
// Under source-design it is the scope's, as in the design.
func (b *backend) nativeAgent(agent string) string {
	if b.scopeAgent {
		agent = b.Scope.AgentID
	} else if !b.sendAgentID {
		agent = ""
	}
	if agent == "" || b.platform() {
		return ""
	}
	return agentID(agent)
}

// actor returns the native agent of an event, or the scope's if the event has none.
func (b *backend) actor(e *abi.MemoryEvent) string {
	if e.AgentID != "" {
		return agentID(e.AgentID)
	}
	return "a-" + b.ids.run[2:]
}

// prompt is the self-hosted server's field for instructions of one add, which replace its own. mem0 has no observation
// date: without this line it resolves "yesterday" relative to the current day (upstream issue 4963).
func (s *settings) prompt(day string) string {
	lines := s.instructions
	if s.observationDate == "prompt" {
		if lines != "" {
			lines += "\n"
		}
		lines += "Observation Date for these messages is " + day + "; resolve relative dates against it."
	}
	return lines
}
