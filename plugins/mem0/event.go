package main

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// prefix begins every metadata key that is memhost's. mem0 keeps metadata and its own payload in one object: data, hash, role, user_id, expiration_date and
// others mean something there, so the event's own metadata stays nested under one key.
const prefix = "mh_"

// The keys of an event's labels: flat texts, because only those can be filtered.
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

// part is one message as mem0 gets it.
type part struct {
	role, name, text string
}

// digestOf recognises a part among the stored rows, which keep its text but not its place in the event.
func digestOf(text string) string { return sdk.Digest256(text)[:12] }

// outgoing is an event as mem0 gets it.
type outgoing struct {
	event    *abi.MemoryEvent
	parts    []part
	digests  string // of all parts, where they are stored verbatim
	warnings []string
}

// translate makes an event's messages what mem0 can take: tool messages, tool calls and names are folded into the text, because the extractor sees the roles
// user, assistant and system only, and the self-hosted server drops every other field.
func (b *backend) translate(e *abi.MemoryEvent) *outgoing {
	s, o := b.settings, &outgoing{event: e}
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Role == abi.RoleSystem && !s.infer {
			o.warn("system_not_stored: without extraction mem0 stores no system messages")
			continue
		}
		p := part{role: string(m.Role), text: spoken(m)}
		if text := withoutZero(p.text); len(text) < len(p.text) {
			p.text = text
			o.warn("nul_removed: mem0 cannot store U+0000; it was left out")
		}
		if sdk.TrimSpace(p.text) == "" {
			continue
		}
		switch {
		case m.Role == abi.RoleTool:
			p.text = "[tool" + word(m.Name) + word(m.ToolCallID) + "] " + p.text
			if s.infer || b.platform() {
				p.role = string(abi.RoleAssistant)
			}
		case m.Name != "" && b.platform():
			p.name = clean(m.Name)
		case m.Name != "" && s.namePrefix:
			p.text = clean(m.Name) + ": " + p.text
		}
		if s.infer {
			o.parts = append(o.parts, p)
		} else {
			o.split(p, int(s.maxChars))
		}
	}
	if s.infer && s.observationDate == "inline" && len(o.parts) > 0 {
		o.parts[0].text = "[" + e.Timestamp[:10] + "] " + o.parts[0].text
	}
	if !s.infer {
		digests := make([]string, len(o.parts))
		for i, p := range o.parts {
			digests[i] = digestOf(p.text)
		}
		o.digests = strings.Join(digests, " ")
	}
	return o
}

func (o *outgoing) warn(warning string) {
	for _, w := range o.warnings {
		if w == warning {
			return
		}
	}
	o.warnings = append(o.warnings, warning)
}

// spoken is a message's text with the calls that it makes.
func spoken(m *abi.Message) string {
	text := ""
	if m.Content != nil {
		text = *m.Content
	}
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if text != "" {
			text += "\n"
		}
		text += "[calls" + word(call.Name) + word(call.ID) + "] " + call.Arguments
	}
	return text
}

// word is a name or an id as it stands in brackets: " search_web", or nothing.
func word(text string) string {
	if text == "" {
		return ""
	}
	return " " + clean(text)
}

// withoutZero leaves out U+0000, which mem0 cannot store.
func withoutZero(text string) string {
	if words.Plain(text) {
		return text
	}
	return strings.ReplaceAll(text, "\x00", "")
}

// clean keeps a name on its line and without U+0000.
func clean(text string) string {
	if words.Plain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0:
			return -1
		case r < ' ':
			return ' '
		}
		return r
	}, text)
}

// split adds a part in pieces of at most limit characters, cut behind a blank where there is one in the second half; 0 is no limit.
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
		if piece := p.text[:end]; sdk.TrimSpace(piece) != "" {
			o.parts = append(o.parts, part{p.role, p.name, piece})
			o.warn("message_split: a message longer than max_chars_per_message was stored in parts")
		}
		p.text = p.text[end:]
	}
	if sdk.TrimSpace(p.text) != "" {
		o.parts = append(o.parts, p)
	}
}

// writeMetadata writes the event's labels and metadata. created_at is mem0's own key: it becomes the memory's created_at.
func (b *backend) writeMetadata(j *jsontext.Encoder, o *outgoing, backdate bool) {
	e := o.event
	field := func(key, value string) {
		if value != "" {
			j.FieldStart(key)
			j.Str(withoutZero(value))
		}
	}
	j.ObjStart()
	field(keyScenario, e.Scenario)
	field(keyContext, e.Context)
	field(keyAttribute, e.Attribute)
	field(keySession, e.SessionID)
	field(keyTurn, e.TurnID)
	field(keyEvent, e.EventID)
	field(keyTime, e.Timestamp)
	if backdate {
		field("created_at", utc(e.Timestamp))
	}
	field("mh_run", e.RunID)
	field("mh_persona", e.UserID)
	field("mh_agent_id", e.AgentID)
	field(keyParts, o.digests)
	if len(e.Metadata) > 0 {
		nested := jsontext.Encoder{}
		nested.ObjStart()
		for _, key := range abi.SortedKeys(e.Metadata) {
			nested.FieldStart(key)
			nested.Raw(jsontext.Raw(e.Metadata[key]))
		}
		nested.ObjEnd()
		text := withoutNUL(nested.Bytes())
		j.FieldStart("mh_event_metadata")
		if b.settings.nestedMetadata {
			j.Raw(text)
		} else {
			j.Str(string(text))
		}
	}
	j.ObjEnd()
}

// withoutNUL removes every \u0000 from JSON text. In a row it makes PostgreSQL refuse the row, and mem0 answers 200 all the same.
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

// utc is a time as mem0 writes its own: RFC 3339 in UTC. The contract has checked that it is one.
func utc(timestamp string) string {
	at, err := abi.ParseTime(timestamp)
	if err != nil {
		return ""
	}
	const plain = len("2026-03-01T09:30:00Z")
	if len(timestamp) == plain && timestamp[plain-1] == 'Z' && timestamp[len("2026-03-01")] == 'T' && timestamp[plain-3] != '6' { // not the leap second
		return timestamp[:plain-1] + "+00:00"
	}
	at = at.UTC()
	year, month, day := at.Date()
	hour, minute, second := at.Clock()
	text := digits(year, 4) + "-" + digits(int(month), 2) + "-" + digits(day, 2) + "T" + digits(hour, 2) + ":" + digits(minute, 2) + ":" + digits(second, 2)
	if nanos := at.Nanosecond(); nanos > 0 {
		text += "." + strings.TrimRight(digits(nanos, 9), "0")
	}
	return text + "+00:00"
}

// digits is n with at least width digits. time.Format would cost the module 6 KB.
func digits(n, width int) string {
	text := sdk.Itoa(n)
	return strings.Repeat("0", max(0, width-len(text))) + text
}

// unixSeconds is a time as the platform takes it.
func unixSeconds(timestamp string) int64 {
	at, err := abi.ParseTime(timestamp)
	if err != nil {
		return 0
	}
	return at.Unix()
}

// writeMessages writes the list of messages.
func writeMessages(j *jsontext.Encoder, parts []part) {
	j.FieldStart("messages")
	j.ArrStart()
	for _, p := range parts {
		j.ObjStart()
		for _, field := range [][2]string{{"role", p.role}, {"name", p.name}, {"content", p.text}} {
			if field[1] != "" {
				j.FieldStart(field[0])
				j.Str(field[1])
			}
		}
		j.ObjEnd()
	}
	j.ArrEnd()
}

// addBody is the request of an add.
func (b *backend) addBody(o *outgoing, parts []part, infer bool) []byte {
	s, e := b.settings, o.event
	var j jsontext.Encoder
	room := 1024 // for what stands beside the texts
	for i := range parts {
		room += len(parts[i].text) + 64
	}
	j.SetBytes(make([]byte, 0, room))
	text := func(key, value string) {
		if value != "" {
			j.FieldStart(key)
			j.Str(value)
		}
	}
	j.ObjStart()
	writeMessages(&j, parts)
	text("user_id", b.ids.user)
	text("run_id", b.ids.run)
	j.FieldStart("infer")
	j.Bool(infer)
	day := e.Timestamp[:10]
	if b.platform() {
		if s.backdate {
			j.FieldStart("timestamp")
			j.Raw(jsontext.AppendInt(nil, unixSeconds(e.Timestamp)))
		}
		if infer {
			text("custom_instructions", s.instructions)
			if s.observationDate == "prompt" || s.observationDate == "native" {
				text("observation_date", day)
			}
		}
	} else {
		switch {
		case infer && s.procedural:
			// Without a native agent mem0 makes an ordinary add of it. The prompt of such an add is the LLM's whole system prompt: a line about the day would displace it.
			text("memory_type", "procedural_memory")
			text("agent_id", b.actor(e))
			text("prompt", s.instructions)
		case infer:
			text("prompt", s.prompt(day))
			if s.observationDate == "native" {
				text("observation_date", day)
			}
			fallthrough
		default:
			if s.sendAgentID && e.AgentID != "" {
				text("agent_id", agentID(e.AgentID))
			}
		}
	}
	j.FieldStart("metadata")
	b.writeMetadata(&j, o, s.backdate && !b.platform())
	j.ObjEnd()
	return j.Bytes()
}

// actor is the native agent of an event, the scope's own where the event names none.
func (b *backend) actor(e *abi.MemoryEvent) string {
	if e.AgentID != "" {
		return agentID(e.AgentID)
	}
	return "a-" + b.ids.run[2:]
}

// prompt is the self-hosted server's field for instructions of one add. They take the place of its own. mem0 has no observation date: without this line it
// resolves "yesterday" against its own day (upstream issue 4963).
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
