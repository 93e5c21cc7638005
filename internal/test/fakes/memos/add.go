package memos

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// reserved are the keys of info that vanish (memories/textual/item.py: list_all_fields).
var reserved = strings.Fields(`id memory metadata background confidence covered_history created_at dialog_id embedding evolve_to file_ids history info internal_info
 is_fast key mem_cube_id memory_type original_text preference preference_type relativity score session_id source sources status tags type updated_at usage user_id version
 visibility working_binding`)

// turn is one message of a request.
type turn struct{ role, content, chatTime, messageID, toolCallID, kind string }

// batch is one add request for one cube.
type batch struct {
	cube, user, session string
	info                object
	labels              object // project_id and manager_user_id, which outlive async extraction
	turns               []turn
	tags                []string
}

func (s *Server) add(in object) (string, any, *problem) {
	const path = "/product/add"
	mode, given := in["mode"].(string)
	async := text(in, "async_mode") != "sync"
	switch user, isText := in["user_id"].(string); {
	case in["user_id"] == nil && has(in, "user_id"), in["user_id"] != nil && !isText:
		return "", nil, invalid(path, "user_id", "string_type", "Input should be a valid string")
	case !has(in, "user_id"):
		return "", nil, bad("user_id and session_id must be strings")
	case given && mode != "fast" && mode != "fine":
		return "", nil, invalid(path, "mode", "literal_error", "Input should be 'fast' or 'fine'")
	default:
		turns, p := readTurns(path, in["messages"])
		if p != nil {
			return "", nil, p
		}
		b := batch{user: user, session: text(in, "session_id"), turns: turns, tags: texts(in, "custom_tags"),
			info: object{}, labels: object{}}
		if b.session == "" {
			b.session = "default_session"
		}
		for key, value := range asObject(in["info"]) {
			if !slices.Contains(reserved, key) {
				b.info[key] = value
			}
		}
		for _, key := range []string{"project_id", "manager_user_id"} {
			if value := text(in, key); value != "" {
				b.labels[key] = value
			}
		}
		return s.addTo(in, b, async, mode)
	}
}

func has(in object, key string) bool { _, ok := in[key]; return ok }

func asObject(v any) object {
	o, _ := v.(object)
	return o
}

// addTo runs a request for each of its cubes. An empty id is refused after it was stored, in the bucket that everybody
// shares.
func (s *Server) addTo(in object, b batch, async bool, mode string) (string, any, *problem) {
	cubes := texts(in, "writable_cube_ids")
	if len(cubes) == 0 {
		cubes = []string{b.user}
	}
	data := []any{}
	refused := false
	for _, cube := range cubes {
		refused = refused || cube == ""
		b.cube = bucket(cube)
		var made []*node
		switch {
		case async:
			made = s.windows(b)
			s.store(b, made)
			s.queue(b, text(in, "task_id"), made)
		case mode == "fast":
			made = s.windows(b)
			s.store(b, made)
			s.logTask(b)
		default:
			made = s.extract(b)
			s.store(b, made)
			s.logTask(b)
		}
		for _, n := range made {
			data = append(data, object{"memory": n.memory, "memory_id": n.id, "memory_type": n.kind, "cube_id": n.cube})
		}
	}
	if refused {
		return "", nil, bad("1 validation error for RunningTaskItem\nmem_cube_id\n  String should have at least 1 " +
			"character")
	}
	return "Memory added successfully", data, nil
}

func readTurns(path string, messages any) ([]turn, *problem) {
	if messages == nil {
		return []turn{{kind: "text", content: "[None]"}}, nil
	}
	if one, ok := messages.(string); ok {
		return []turn{{kind: "text", content: one}}, nil
	}
	list, ok := messages.([]any)
	if !ok {
		return nil, invalid(path, "messages", "list_type", "Input should be a valid list")
	}
	var turns []turn
	for _, one := range list {
		m := asObject(one)
		t := turn{role: text(m, "role"), content: text(m, "content"), chatTime: text(m, "chat_time"),
			messageID:  text(m, "message_id"),
			toolCallID: text(m, "tool_call_id"), kind: "chat"}
		switch {
		case t.role == "" && text(m, "type") == "text":
			t = turn{kind: "text", content: text(m, "text")}
		case !slices.Contains([]string{"user", "assistant", "system", "tool"}, t.role):
			return nil, invalid(path, "messages", "literal_error",
				"Input should be 'user', 'assistant', 'system' or 'tool'")
		case t.role == "tool" && t.toolCallID == "":
			return nil, invalid(path, "messages", "missing", "tool_call_id: Field required")
		}
		turns = append(turns, t)
		if calls, ok := m["tool_calls"].([]any); ok && len(calls) > 0 {
			coded, _ := json.Marshal(calls)
			turns = append(turns, turn{role: "assistant", kind: "tool_calls", chatTime: t.chatTime,
				messageID: t.messageID, content: "[tool_calls]: " + string(coded)})
		}
	}
	return turns, nil
}

// windowSize is about 1024 tokens, in bytes.
const windowSize = 4000

// windows returns the raw nodes of a request. With async an extraction replaces them later; with sync/fast they stay.
func (s *Server) windows(b batch) []*node {
	var made []*node
	var lines strings.Builder
	var within []turn
	flush := func() {
		if len(within) == 0 {
			return
		}
		kind := "UserMemory"
		for _, t := range within {
			if t.role != "user" {
				kind = "LongTermMemory"
			}
		}
		n := s.node(b, lines.String(), kind, within)
		n.tags, n.fast = []string{"mode:fast"}, true
		made, within = append(made, n), nil
		lines.Reset()
	}
	for _, t := range b.turns {
		if t.role == "system" {
			continue
		}
		for first := true; first || t.content != ""; first = false {
			part := t
			if len(part.content) > windowSize {
				part.content = strings.ToValidUTF8(part.content[:windowSize], "")
			}
			t.content = t.content[len(part.content):]
			line := part.content
			if part.role != "" {
				at := part.chatTime
				if at == "" {
					at = s.options.Now().UTC().Format("03:04 PM on 02 January, 2006")
				}
				line = part.role + ": [" + at + "]: " + part.content + "\n"
			}
			if lines.Len()+len(line) > windowSize {
				flush()
			}
			lines.WriteString(line)
			within = append(within, part)
		}
	}
	flush()
	return made
}

func (s *Server) node(b batch, memory, kind string, from []turn) *node {
	n := &node{id: s.newID(), cube: b.cube, memory: memory, kind: kind, userID: b.user, sessionID: b.session,
		status: "activated", tags: []string{},
		created: s.stamp(), updated: s.stamp(), labels: object{}}
	for key, value := range b.info {
		n.labels[key] = value
	}
	for key, value := range b.labels {
		n.labels[key] = value
	}
	for _, t := range from {
		source := object{"type": t.kind, "content": t.content, "lang": "en"}
		for key, value := range map[string]string{"role": t.role, "chat_time": t.chatTime, "message_id": t.messageID,
			"tool_call_id": t.toolCallID} {
			if value != "" {
				source[key] = value
			}
		}
		n.sources = append(n.sources, source)
	}
	return n
}

// extract is the LLM of a request: facts from what the user says, preferences, a tool trajectory, and a skill from five
// tool messages on.
func (s *Server) extract(b batch) []*node {
	switch {
	case s.faults.LLMProse:
		return nil
	case s.faults.LLMDown:
		made := s.windows(b)
		for _, n := range made {
			n.tags, n.fast = []string{}, false
		}
		return made
	}
	var made, preferences []*node
	tools := 0
	for _, t := range b.turns {
		if t.role == "tool" {
			tools++
		}
		if t.role != "user" && t.kind != "text" {
			continue
		}
		for _, sentence := range sentences(t.content) {
			fact := s.node(b, thirdPerson(sentence), "UserMemory", b.said())
			fact.tags = append(slices.Clone(b.tags),
				embed.Words(sentence)...)[:min(3+len(b.tags), len(b.tags)+len(embed.Words(sentence)))]
			made = append(made, fact)
			if wish(sentence) {
				p := s.node(b, "In conversation the user stated a standing wish: "+fact.memory, "PreferenceMemory",
					[]turn{t})
				p.labels["preference_type"], p.labels["preference"], p.labels["reasoning"],
					p.labels["topic"] = "explicit_preference", fact.memory, "said so", "wish"
				preferences = append(preferences, p)
			}
		}
	}
	if tools > 0 {
		n := s.node(b, "task -> tool call -> result", "ToolTrajectoryMemory", b.said())
		n.labels["correctness"], n.labels["experience"] = "success", "calling the tool worked"
		n.labels["tool_used_status"] = []any{object{"used_tool": "tool", "success_rate": 1.0}}
		made = append(made, n)
	}
	if tools >= 5 {
		n := s.node(b, "A procedure of several tool calls", "SkillMemory", b.said())
		n.labels["name"], n.labels["scripts"] = "procedure", object{}
		made = append(made, n)
	}
	return append(made, preferences...)
}

// said are the turns that count as sources.
func (b batch) said() []turn {
	return slices.DeleteFunc(slices.Clone(b.turns), func(t turn) bool { return t.role == "system" })
}

// store puts nodes into the graph. On Neo4j a nested value in any of them loses them all, and no error is reported.
func (s *Server) store(b batch, made []*node) {
	if s.faults.DatabaseDown {
		return
	}
	for _, n := range made {
		for key, value := range n.labels {
			if !nested(value) {
				continue
			}
			if s.options.Flavour == Neo4j {
				return
			}
			n.labels[key] = flattened(value)
		}
	}
	for _, n := range made {
		if !s.faults.EmbedderDown {
			n.vector = embed.Text(n.memory)
		}
		s.nodes = append(s.nodes, n)
	}
}

// nested tells what Neo4j cannot keep as a property: an object, or a list of them.
func nested(value any) bool {
	switch v := value.(type) {
	case object:
		return true
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { _, plain := one.(string); return !plain })
	}
	return false
}

// flattened is a nested value as Community keeps it: as JSON text, a list item by item.
func flattened(value any) any {
	if list, ok := value.([]any); ok {
		texts := []any{}
		for _, one := range list {
			texts = append(texts, flattened(one))
		}
		return texts
	}
	coded, _ := json.Marshal(value)
	return string(coded)
}

func sentences(text string) []string {
	var list []string
	start := 0
	for i, r := range text {
		if r == '.' || r == '!' || r == '?' || r == '。' || r == '\n' {
			if one := strings.TrimSpace(text[start:i]); one != "" {
				list = append(list, one+strings.TrimSpace(string(r)))
			}
			start = i + len(string(r))
		}
	}
	if one := strings.TrimSpace(text[start:]); one != "" {
		list = append(list, one)
	}
	return list
}

func thirdPerson(sentence string) string {
	for from, to := range map[string]string{"I ": "The user ", "My ": "The user's "} {
		if rest, found := strings.CutPrefix(sentence, from); found {
			return to + rest
		}
	}
	return sentence
}

func wish(sentence string) bool {
	return strings.Contains(sentence, "prefer") || strings.Contains(sentence, "always") ||
		strings.Contains(sentence, "喜欢")
}
