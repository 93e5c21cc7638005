package llm

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Prompt is a chat or responses request, as the rules see it.
type Prompt struct {
	Model    string
	Messages []Message
	// Tools are the names of the offered tools, in order. Forced: one must be called (tool_choice required or a name).
	Tools  []string
	Forced bool
	// SchemaName and Schema are set when the answer must be JSON of a schema; JSON also for json_object.
	SchemaName string
	Schema     json.RawMessage
	JSON       bool
	Stream     bool
}

// Message of a prompt. Content holds the text parts, joined by line ends.
type Message struct {
	Role    string
	Content string
	Calls   []Call
	CallID  string
}

// Call of a tool. Arguments is JSON text, as OpenAI sends it.
type Call struct{ ID, Name, Arguments string }

// Answer of a rule: a text, or tool calls.
type Answer struct {
	Text  string
	Calls []Call
}

// Text of all messages, joined by line ends.
func (p *Prompt) Text() string {
	parts := make([]string, 0, len(p.Messages))
	for _, m := range p.Messages {
		parts = append(parts, m.Content)
	}
	return strings.Join(parts, "\n")
}

// Last is the content of the last message of a role, "" if there is none.
func (p *Prompt) Last(role string) string {
	for i := len(p.Messages) - 1; i >= 0; i-- {
		if p.Messages[i].Role == role {
			return p.Messages[i].Content
		}
	}
	return ""
}

// Has reports whether a tool is offered.
func (p *Prompt) Has(tool string) bool {
	for _, t := range p.Tools {
		if t == tool {
			return true
		}
	}
	return false
}

// chatRequest is POST /chat/completions.
type chatRequest struct {
	Model          string          `json:"model"`
	Messages       []wireMessage   `json:"messages"`
	Tools          []wireTool      `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Stream bool `json:"stream"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []wireCall      `json:"tool_calls"`
}

type wireCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireTool struct {
	Name     string `json:"name"` // the responses API has it here
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// responsesRequest is POST /responses.
type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        []wireTool      `json:"tools"`
	Text         *struct {
		Format *struct {
			Type   string          `json:"type"`
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

func (r *chatRequest) prompt() *Prompt {
	p := &Prompt{Model: r.Model, Stream: r.Stream}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, m.message())
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, t.Function.Name)
	}
	choice := strings.Trim(string(r.ToolChoice), `"`)
	p.Forced = len(r.Tools) > 0 && choice != "" && choice != "auto" && choice != "none" && choice != "null"
	if f := r.ResponseFormat; f != nil {
		p.JSON = f.Type == "json_object" || f.Type == "json_schema"
		if f.JSONSchema != nil {
			p.SchemaName, p.Schema = f.JSONSchema.Name, f.JSONSchema.Schema
		}
	}
	return p
}

func (r *responsesRequest) prompt() (*Prompt, error) {
	p := &Prompt{Model: r.Model}
	if r.Instructions != "" {
		p.Messages = append(p.Messages, Message{Role: "system", Content: r.Instructions})
	}
	var text string
	var list []wireMessage
	if json.Unmarshal(r.Input, &text) == nil {
		p.Messages = append(p.Messages, Message{Role: "user", Content: text})
	} else if err := json.Unmarshal(r.Input, &list); err != nil {
		return nil, err
	}
	for _, m := range list {
		p.Messages = append(p.Messages, m.message())
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, t.Name)
	}
	if r.Text != nil && r.Text.Format != nil {
		f := r.Text.Format
		p.JSON = f.Type == "json_object" || f.Type == "json_schema"
		p.SchemaName, p.Schema = f.Name, f.Schema
	}
	return p, nil
}

func (m wireMessage) message() Message {
	out := Message{Role: m.Role, Content: contentText(m.Content), CallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

// contentText reads a message's content: a string, null, or a list of parts of which the texts count.
func contentText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// embeddingRequest is POST /embeddings. Input is a string, or a list of strings (lists of token numbers are not
// served).
type embeddingRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	Dimensions     int             `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`
}

func (r *embeddingRequest) inputs() ([]string, bool) {
	var one string
	if bytes.HasPrefix(bytes.TrimSpace(r.Input), []byte(`"`)) && json.Unmarshal(r.Input, &one) == nil {
		return []string{one}, true
	}
	var many []string
	if err := json.Unmarshal(r.Input, &many); err != nil || len(many) == 0 {
		return nil, false
	}
	return many, true
}

// tokens is a rough count for the usage fields: four bytes a token, at least one.
func tokens(text string) int { return len(text)/4 + 1 }
