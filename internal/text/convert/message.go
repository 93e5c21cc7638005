package convert

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/whose"
)

// conversation is the content of one line, before it is split into turns.
type conversation struct {
	runID, userID, agentID, sessionID string
	start                             time.Time
	scenario, context, attribute      string
	metadata                          map[string]abi.Raw
	messages                          []message
}

// message is one message, with the fields that a MemoryEvent stores elsewhere.
type message struct {
	abi.Message
	at          string // RFC 3339; empty if it has no time
	attachments int
	joins       bool // belongs to the previous turn, although it is a user's message
}

// ignoredOfRequest are keys of OpenAI's requests and fine-tuning files that come along with messages but say nothing
// about the conversation.
func ignoredOfRequest() []string {
	return []string{"id", "object", "model", "tools", "tool_choice", "functions", "function_call",
		"parallel_tool_calls", "temperature", "top_p", "n", "seed", "stream",
		"stop", "max_tokens", "max_completion_tokens", "response_format", "presence_penalty", "frequency_penalty",
		"reasoning_effort", "store", "user", "usage"}
}

// ignoredOfMessage are keys of a message that are not part of what was said.
func ignoredOfMessage() []string {
	return []string{"id", "object", "status", "type", "annotations", "audio", "logprobs", "weight", "reasoning",
		"reasoning_content", "thinking_blocks",
		"provider_specific_fields", "cache_control", "metadata", "function_call"}
}

// parseConversation parses a list of messages, or an object with such a list and optional ids, labels and start time.
// Together with an error it returns a conversation with those ids that could be read.
func (r *Reader) parseConversation(v any) (*conversation, error) {
	c := &conversation{runID: r.options.RunID, userID: r.options.UserID, agentID: r.options.AgentID,
		sessionID: r.options.SessionID, start: r.options.Start}
	switch v := v.(type) {
	case []any:
		return c, c.readMessages(v, r.options)
	case map[string]any:
		return c, c.readObject(v, r.options)
	}
	return c, invalid("", "want a list of messages or an object with messages, got %s", schema.Show(nil, v))
}

func (c *conversation) readObject(object map[string]any, o Options) error {
	if _, both := object[whose.User]; !both && object[whose.Persona] != nil {
		object[whose.User] = object[whose.Persona]
		delete(object, whose.Persona)
	}
	texts := map[string]*string{"run_id": &c.runID, "user_id": &c.userID, "agent_id": &c.agentID,
		"session_id": &c.sessionID,
		"scenario":   &c.scenario, "context": &c.context, "attribute": &c.attribute}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if err := readText(object, key, "", texts[key]); err != nil {
			return err
		}
	}
	own := append(slices.Sorted(maps.Keys(texts)), "messages", "start", "metadata")
	if err := onlyKnown(object, "", own, ignoredOfRequest()); err != nil {
		return err
	}
	start, err := timeOf(object["start"], "start")
	if err != nil {
		return err
	}
	if start != "" {
		if c.start, err = abi.ParseTime(start); err != nil {
			return err
		}
	}
	switch m := object["metadata"].(type) {
	case nil:
	case map[string]any:
		c.metadata = map[string]abi.Raw{}
		for key, value := range m {
			c.metadata[key] = schema.Canonical(value)
		}
	default:
		return invalid("metadata", "want an object, got %s", schema.Show(nil, m))
	}
	list, ok := object["messages"].([]any)
	if !ok {
		return invalid("messages", "want a list, got %s", schema.Show(nil, object["messages"]))
	}
	return c.readMessages(list, o)
}

func (c *conversation) readMessages(list []any, o Options) error {
	if len(list) == 0 {
		return invalid("messages", "want at least one message")
	}
	for i, v := range list {
		m, err := parseMessage(v, "messages["+strconv.Itoa(i)+"]", o)
		if err != nil {
			return err
		}
		c.messages = append(c.messages, m)
	}
	return nil
}

func parseMessage(v any, path string, o Options) (m message, err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return m, invalid(path, "want a message, got %s", schema.Show(nil, v))
	}
	if _, ok := object["event_id"]; ok {
		return m, invalid(path, "is an event, not a message").WithHint("write one event on a line, without a list " +
			"around them")
	}
	own := []string{"role", "content", "name", "tool_call_id", "tool_calls", "timestamp", "created_at", "refusal"}
	if err := onlyKnown(object, path, own, ignoredOfMessage()); err != nil {
		return m, err
	}
	if object["function_call"] != nil {
		return m, invalid(path+".function_call", "the form before tool_calls is not read").WithHint(`write tool_calls: [{"id": ..., "function": {"name": ..., "arguments": ...}}]`)
	}
	var role, refusal string
	for key, to := range map[string]*string{"role": &role, "name": &m.Name, "tool_call_id": &m.ToolCallID,
		"refusal": &refusal} {
		if err := readText(object, key, path, to); err != nil {
			return m, err
		}
	}
	if m.Role, err = roleOf(role, path); err != nil {
		return m, err
	}
	if m.Content, m.attachments, err = contentOf(object["content"], path+".content", o); err != nil {
		return m, err
	}
	if m.Content == nil && refusal != "" {
		m.Content = &refusal
	}
	if m.ToolCalls, err = toolCallsOf(object["tool_calls"], path+".tool_calls"); err != nil {
		return m, err
	}
	if m.Content == nil && len(m.ToolCalls) == 0 {
		if m.attachments == 0 {
			return m, invalid(path+".content", "missing, and there are no tool_calls")
		}
		m.Content = new("") // the message was only an attachment
	}
	for _, key := range []string{"created_at", "timestamp"} {
		at, err := timeOf(object[key], path+"."+key)
		if err != nil {
			return m, err
		}
		if at != "" {
			m.at = at
		}
	}
	return m, nil
}

// roleOf converts OpenAI's roles to the contract's.
func roleOf(role, path string) (abi.Role, error) {
	switch r := abi.Role(role); r {
	case abi.RoleUser, abi.RoleAssistant, abi.RoleSystem, abi.RoleTool:
		return r, nil
	case "developer":
		return abi.RoleSystem, nil
	case "function":
		return abi.RoleTool, nil
	case "":
		return "", invalid(path+".role", "missing, want one of user, assistant, system, tool")
	}
	return "", invalid(path+".role", "%s is not one of user, assistant, system, tool", schema.Show(nil, role))
}

// contentOf reads a text, or a list of parts, whose texts it joins with newlines.
func contentOf(v any, path string, o Options) (content *string, attachments int, err error) {
	switch v := v.(type) {
	case nil:
		return nil, 0, nil
	case string:
		return &v, 0, nil
	case []any:
		var texts []string
		for i, part := range v {
			at := path + "[" + strconv.Itoa(i) + "]"
			object, ok := part.(map[string]any)
			if !ok {
				return nil, 0, invalid(at, "want a part of a message, got %s", schema.Show(nil, part))
			}
			kind, _ := object["type"].(string)
			key := map[string]string{"text": "text", "input_text": "text", "output_text": "text",
				"refusal": "refusal"}[kind]
			if key == "" {
				if kind == "" {
					return nil, 0, invalid(at+".type", "missing")
				}
				if !o.SkipAttachments {
					return nil, 0, invalid(at, "a part of type %s; only text can be recorded", schema.Show(nil, kind)).
						WithHint("leave such parts out with --skip-attachments")
				}
				attachments++
				continue
			}
			text, ok := object[key].(string)
			if !ok {
				return nil, 0, invalid(at+"."+key, "want a string, got %s", schema.Show(nil, object[key]))
			}
			texts = append(texts, text)
		}
		if len(texts) == 0 {
			return nil, attachments, nil
		}
		joined := strings.Join(texts, "\n")
		return &joined, attachments, nil
	}
	return nil, 0, invalid(path, "want a string, a list of parts or null, got %s", schema.Show(nil, v))
}

// toolCallsOf reads OpenAI's nested form, or the contract's own flat one.
func toolCallsOf(v any, path string) ([]abi.ToolCall, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, invalid(path, "want a list, got %s", schema.Show(nil, v))
	}
	var calls []abi.ToolCall
	for i, v := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		object, ok := v.(map[string]any)
		if !ok {
			return nil, invalid(at, "want a tool call, got %s", schema.Show(nil, v))
		}
		var call abi.ToolCall
		if err := readText(object, "id", at, &call.ID); err != nil {
			return nil, err
		}
		if nested, ok := object["function"].(map[string]any); ok {
			object, at = nested, at+".function"
		}
		for key, to := range map[string]*string{"name": &call.Name, "arguments": &call.Arguments} {
			if err := readText(object, key, at, to); err != nil {
				return nil, err
			}
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// timeOf reads a time: RFC 3339 with a zone, which is kept as given, or seconds since 1970 (milliseconds from 1e11 on).
func timeOf(v any, path string) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		if _, err := abi.ParseTime(v); err != nil {
			return "", invalid(path, "%s", abi.AsError(err).Message)
		}
		return v, nil
	case json.Number:
		n, err := v.Float64()
		const latest = 1e14 // ms, some three thousand years from now
		if err != nil || n < 0 || n > latest {
			return "", invalid(path, "%s is no time", v)
		}
		if n < 1e11 {
			n *= 1000
		}
		return time.UnixMilli(int64(n)).UTC().Format(time.RFC3339Nano), nil
	}
	return "", invalid(path, "want a time, got %s", schema.Show(nil, v))
}

func readText(object map[string]any, key, path string, to *string) error {
	switch v := object[key].(type) {
	case nil:
		return nil
	case string:
		*to = v
		return nil
	default:
		return invalid(join(path, key), "want a string, got %s", schema.Show(nil, v))
	}
}

// onlyKnown rejects a key that is neither read nor known to be irrelevant, and names the nearest key that is read, or
// all of them.
func onlyKnown(object map[string]any, path string, own, ignored []string) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(own, key) || slices.Contains(ignored, key) {
			continue
		}
		return invalid(join(path, schema.Path([]string{key}, nil)), "unknown field%s", abi.Suggest(key, own))
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
