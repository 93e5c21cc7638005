package nanobot

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
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
	// Hidden: the agent put it there for itself, in files that Nanobot wrote. It is never shown.
	Hidden bool
}

// Encode is the message as a line of a session file, without the line end.
func (m *Message) Encode() []byte {
	var e jsontext.Encoder
	e.ObjStart()
	field := func(name, value string) {
		if value != "" {
			e.FieldStart(name)
			e.Str(value)
		}
	}
	field("role", m.Role)
	e.FieldStart("content")
	e.Str(m.Content)
	field("timestamp", m.Timestamp)
	field("name", m.Name)
	if len(m.ToolCalls) > 0 {
		e.FieldStart("tool_calls")
		e.ArrStart()
		for _, call := range m.ToolCalls {
			e.ObjStart()
			field("id", call.ID)
			field("type", "function")
			e.FieldStart("function")
			e.ObjStart()
			field("name", call.Name)
			e.FieldStart("arguments")
			e.Str(call.Arguments)
			e.ObjEnd()
			e.ObjEnd()
		}
		e.ArrEnd()
	}
	field("tool_call_id", m.ToolCallID)
	if len(m.ToolsUsed) > 0 {
		e.FieldStart("tools_used")
		e.ArrStart()
		for _, name := range m.ToolsUsed {
			e.Str(name)
		}
		e.ArrEnd()
	}
	field("event_id", m.EventID)
	field("turn_id", m.TurnID)
	e.ObjEnd()
	return e.Bytes()
}

// DecodeMessage reads a line of a session file. Content may be a text, a list of parts, of which the texts count, or another value, which becomes
// compact JSON.
func DecodeMessage(line []byte) (Message, error) {
	var m Message
	injected := ""
	err := DecodeFrom(jsontext.DecodeBytes(line), []Field{word("role", &m.Role), word("timestamp", &m.Timestamp), word("name", &m.Name), word("tool_call_id", &m.ToolCallID),
		List("tools_used", &m.ToolsUsed), word("event_id", &m.EventID), word("turn_id", &m.TurnID),
		Flag("_hidden_history", &m.Hidden)}, func(d *jsontext.Decoder, key string) (err error) {
		switch {
		case key == "content":
			m.Content, err = FlatContent(d)
		case key == "tool_calls" && d.Next() == jsontext.Array:
			err = d.Arr(m.decodeCall)
		case key == "_runtime_context" && d.Next() == jsontext.Object:
			err = DecodeFrom(d, []Field{word("suffix", &injected)}, nil)
		default:
			err = d.Skip()
		}
		return err
	})
	if injected != "" { // what Nanobot put behind the user's words for one turn (nanobot/runtime_context.py)
		m.Content = strings.TrimSuffix(strings.TrimSuffix(m.Content, injected), "\n\n")
	}
	if err == nil && m.Role == "" {
		err = abi.NewError(abi.CodeInvalidArgument, "a message without a role")
	}
	return m, err
}

func (m *Message) decodeCall(d *jsontext.Decoder) error {
	var call abi.ToolCall
	err := DecodeFrom(d, []Field{word("id", &call.ID)}, func(d *jsontext.Decoder, key string) error {
		if key != "function" || d.Next() != jsontext.Object {
			return d.Skip()
		}
		return DecodeFrom(d, []Field{word("name", &call.Name), word("arguments", &call.Arguments)}, nil)
	})
	m.ToolCalls = append(m.ToolCalls, call)
	return err
}

// FlatContent reads a message's content as text.
func FlatContent(d *jsontext.Decoder) (string, error) {
	switch d.Next() {
	case jsontext.String:
		return d.Str()
	case jsontext.Null:
		return "", d.Null()
	case jsontext.Array:
		raw, err := d.Raw()
		if err != nil {
			return "", err
		}
		if text, ok := partsText(raw); ok {
			return text, nil
		}
		return CompactJSON(raw)
	}
	raw, err := d.Raw()
	if err != nil {
		return "", err
	}
	return CompactJSON(raw)
}

// partsText joins the texts of a list of parts; false where it is no such list.
func partsText(raw []byte) (string, bool) {
	var texts []string
	ok := true
	err := jsontext.DecodeBytes(raw).Arr(func(d *jsontext.Decoder) error {
		switch d.Next() {
		case jsontext.String:
			text, err := d.Str()
			texts = append(texts, text)
			return err
		case jsontext.Object:
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "text" || d.Next() != jsontext.String {
					return d.Skip()
				}
				text, err := d.Str()
				texts = append(texts, text)
				return err
			})
		}
		ok = false
		return d.Skip()
	})
	return strings.Join(texts, "\n"), ok && err == nil && len(texts) > 0
}

// CompactJSON is a JSON value without blanks and with characters that are not ASCII as they are.
func CompactJSON(raw []byte) (string, error) {
	var e jsontext.Encoder
	if err := compact(jsontext.DecodeBytes(raw), &e); err != nil {
		return "", err
	}
	return string(e.Bytes()), nil
}

func compact(d *jsontext.Decoder, e *jsontext.Encoder) error {
	switch d.Next() {
	case jsontext.Object:
		e.ObjStart()
		err := d.Obj(func(d *jsontext.Decoder, key string) error {
			e.FieldStart(key)
			return compact(d, e)
		})
		e.ObjEnd()
		return err
	case jsontext.Array:
		e.ArrStart()
		err := d.Arr(func(d *jsontext.Decoder) error { return compact(d, e) })
		e.ArrEnd()
		return err
	case jsontext.String:
		text, err := d.Str()
		e.Str(text)
		return err
	}
	raw, err := d.Raw()
	if err == nil {
		e.Raw(raw)
	}
	return err
}

// Render is the message as a model reads it, "[2026-01-12T09:03] USER: text", with "Name: " before the text of a user who has one, or "" where it has no content. Memory blocks inside are left out. Lines
// after the first are indented: no text can look like the message of another, or like a heading.
func (m *Message) Render() string {
	content := strings.TrimSpace(StripBlocks(m.Content))
	if content == "" || m.Hidden {
		return ""
	}
	at := "?"
	if m.Timestamp != "" {
		at = Clip(m.Timestamp, 16)
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
	return "[" + sdk.OneLine(at) + "] " + strings.ToUpper(sdk.OneLine(m.Role)) + used + ": " + Indent(content)
}

// RenderAll joins the messages that have content, one or more lines each.
func RenderAll(messages []Message) string {
	var lines []string
	for i := range messages {
		if line := messages[i].Render(); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Indent puts two blanks before every line but the first.
func Indent(text string) string {
	if !strings.ContainsAny(text, "\n\r") {
		return text
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.ReplaceAll(text, "\n", "\n  ")
}

// Clip is the first n characters.
func Clip(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// StripBlocks removes memory-context elements: a memory never takes in what it gave out.
func StripBlocks(text string) string {
	const open, closer = "<" + abi.ContextTag, "</" + abi.ContextTag + ">"
	for {
		at := indexFold(text, open)
		if at < 0 {
			return text
		}
		end := indexFold(text[at:], closer)
		if end < 0 {
			return text // no block: a text that speaks of one
		}
		text = text[:at] + text[at+end+len(closer):]
	}
}

// Minute is a time to the minute, "2026-01-12 09:03".
func Minute(at string) string { return strings.Replace(Clip(at, 16), "T", " ", 1) }

// Plural counts things in English.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return sdk.Itoa(n) + " " + thing + "s"
}

// WriteList writes a list of texts.
func WriteList(e *jsontext.Encoder, list []string) {
	e.ArrStart()
	for _, text := range list {
		e.Str(text)
	}
	e.ArrEnd()
}

// EventsOf names the events of messages, each once, in order.
func EventsOf(messages []Message) []string {
	var ids []string
	for i := range messages {
		if id := messages[i].EventID; id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}
