package nanobot

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// Message is one message of a session.
type Message struct {
	Role       string
	Content    string
	Timestamp  string
	Name       string
	ToolCallID string
	ToolCalls  []abi.ToolCall
	// ToolsUsed names tools, in files that older versions of Nanobot wrote.
	ToolsUsed       []string
	EventID, TurnID string
	// Hidden: the agent wrote the message for itself, in files that Nanobot wrote. It is never shown.
	Hidden bool
}

// members are the message's fields, without its calls.
func (m *Message) members(calls *abi.Raw) []object.Member {
	return []object.Member{object.Optional("role", &m.Role), object.Always("content", &m.Content),
		object.Optional("timestamp", &m.Timestamp),
		object.Optional("name", &m.Name), object.Optional("tool_calls", calls), object.Optional("tool_call_id",
			&m.ToolCallID),
		object.Optional("tools_used", &m.ToolsUsed), object.Optional("event_id", &m.EventID), object.Optional("turn_id",
			&m.TurnID)}
}

// Encode returns the message as a line of a session file, without the line end.
func (m *Message) Encode() []byte {
	var calls abi.Raw
	if len(m.ToolCalls) > 0 {
		var list wirejson.Encoder
		list.ArrStart()
		for i := range m.ToolCalls {
			call := &m.ToolCalls[i]
			function := abi.Raw(object.Encode(object.Optional("name", &call.Name),
				object.Always("arguments", &call.Arguments)))
			object.Write(&list, object.Optional("id", &call.ID), object.Constant("type", `"function"`),
				object.Always("function", &function))
		}
		list.ArrEnd()
		calls = list.Bytes()
	}
	return object.Encode(m.members(&calls)...)
}

// DecodeMessage reads a line of a session file. Content may be a text, a list of parts, of which the texts are joined,
// or another value, which becomes compact JSON.
func DecodeMessage(line []byte) (Message, error) {
	var m Message
	var calls abi.Raw
	injected := ""
	// Read the content as any value first; the member of that name overrides it.
	members := append([]object.Member{object.Optional("content", (*lenientText)(&m.Content)),
		object.Optional("_hidden_history", &m.Hidden)}, m.members(&calls)...)
	err := object.Read(wirejson.DecodeBytes(line), func(d *wirejson.Decoder, key string) error {
		if key != "_runtime_context" || d.Next() != wirejson.Object {
			return d.Skip()
		}
		return object.Read(d, nil, object.Optional("suffix", &injected))
	}, members...)
	if err == nil && wirejson.Raw(calls).Type() == wirejson.Array {
		err = wirejson.DecodeBytes(calls).Arr(m.decodeCall)
	}
	if injected != "" { // what Nanobot appended to the user's words for one turn (nanobot/runtime_context.py)
		m.Content = strings.TrimSuffix(strings.TrimSuffix(m.Content, injected), "\n\n")
	}
	if err == nil && m.Role == "" {
		err = abi.NewError(abi.CodeInvalidArgument, "a message without a role")
	}
	return m, err
}

// lenientText is a text that can be read from any JSON value.
type lenientText string

// EncodeJSON writes a string.
func (x *lenientText) EncodeJSON(e *wirejson.Encoder) { e.Str(string(*x)) }

// DecodeJSON reads any value as a text.
func (x *lenientText) DecodeJSON(d *wirejson.Decoder) error {
	text, err := object.Text(d)
	*x = lenientText(text)
	return err
}

// IsZero reports whether the text is empty.
func (x *lenientText) IsZero() bool { return *x == "" }

func (m *Message) decodeCall(d *wirejson.Decoder) error {
	var call abi.ToolCall
	var function abi.Raw
	err := object.Read(d, nil, object.Optional("id", &call.ID), object.Optional("function", &function))
	if err == nil && wirejson.Raw(function).Type() == wirejson.Object {
		err = object.Decode(function, object.Optional("name", &call.Name),
			object.Optional("arguments", &call.Arguments))
	}
	m.ToolCalls = append(m.ToolCalls, call)
	return err
}

// Render formats the message for a model, "[2026-01-12T09:03] USER: text" in UTC. A user's name is written before the
// text ("Name: "). The result is "" for a message without content. Memory blocks are left out, and lines after the
// first are indented, so that no text can look like another message or a heading.
func (m *Message) Render() string {
	content := strings.TrimSpace(StripBlocks(m.Content))
	if content == "" || m.Hidden {
		return ""
	}
	at := "?"
	if m.Timestamp != "" {
		at = Clip(sdk.UTC(m.Timestamp), 16)
	}
	tools := append([]string(nil), m.ToolsUsed...)
	for _, call := range m.ToolCalls {
		tools = append(tools, call.Name)
	}
	used := ""
	if len(tools) > 0 {
		used = " [tools: " + sdk.OneLine(strings.Join(tools, ", ")) + "]"
	}
	if m.Role == "user" && m.Name != "" { // several people may speak in one session
		content = sdk.OneLine(m.Name) + ": " + content
	}
	return "[" + sdk.OneLine(at) + "] " + strings.ToUpper(sdk.OneLine(m.Role)) + used + ": " + sdk.Indent(content)
}

// RenderAll joins the messages that have content, each on one or more lines.
func RenderAll(messages []Message) string {
	var lines []string
	for i := range messages {
		if line := messages[i].Render(); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Clip returns the first n characters.
func Clip(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// StripBlocks removes memory-context elements, so that a memory never stores its own output.
func StripBlocks(text string) string {
	const open, closer = "<" + abi.ContextTag, "</" + abi.ContextTag + ">"
	for {
		at := chat.IndexFold(text, open)
		if at < 0 {
			return text
		}
		end := chat.IndexFold(text[at:], closer)
		if end < 0 {
			return text // a text that only mentions the tag
		}
		text = text[:at] + text[at+end+len(closer):]
	}
}

// Minute is a time to the minute, "2026-01-12 09:03".
func Minute(at string) string { return strings.Replace(Clip(at, 16), "T", " ", 1) }

// TimeOf returns the time of the newest message, in whole seconds and UTC, or the host's clock if no message has a
// time.
func (b *Base) TimeOf(messages []Message) string {
	newest := ""
	for i := range messages {
		newest = max(newest, state.InSeconds(messages[i].Timestamp))
	}
	if newest == "" {
		return b.Now
	}
	return newest
}

// Plural formats a count with its noun in English.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return sdk.Itoa(n) + " " + thing + "s"
}

// EventsOf returns the events of messages, each once, in order.
func EventsOf(messages []Message) []string {
	var ids []string
	for i := range messages {
		if id := messages[i].EventID; id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}
