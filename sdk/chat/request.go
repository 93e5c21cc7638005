package chat

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Message is one message of a conversation with a model.
type Message struct {
	Role, Content string
	// ToolCallID is the id of the call that a tool's message answers.
	ToolCallID string
	// Calls are the tool calls of an assistant's message.
	Calls []ToolCall
}

// ToolCall is a model's call of a tool.
type ToolCall struct {
	ID, Name string
	// Arguments is the JSON value as received. By the API's rules it is a string that contains JSON, but not every
	// server follows them.
	Arguments abi.Raw
}

// Request is one request to an endpoint.
type Request struct {
	Model    string
	Messages []Message
	// MaxTokens bounds the answer. It is always sent.
	MaxTokens int64
	// Temperature is a JSON number. Empty: not sent.
	Temperature abi.Raw
	// Seed is sent unless it is nil.
	Seed *int64
	// Tools are the tool declarations, each a JSON object.
	Tools []string
	// Force names the tool that the model must call. Empty: the model chooses.
	Force string
}

// Encode returns the request's JSON, with the parameters that the endpoint accepts.
func (r *Request) Encode(p Params) []byte {
	var e wirejson.Encoder
	field := func(name string) *wirejson.Encoder {
		e.FieldStart(name)
		return &e
	}
	e.ObjStart()
	field("model").Str(r.Model)
	field("messages").ArrStart()
	for i := range r.Messages {
		r.Messages[i].encode(&e)
	}
	e.ArrEnd()
	if r.sendsTemperature(p) {
		field("temperature").Raw(r.Temperature)
	}
	field(p.Limit()).Int64(r.MaxTokens)
	if r.sendsSeed(p) {
		field("seed").Int64(*r.Seed)
	}
	if len(r.Tools) > 0 {
		field("tools").Raw(abi.Raw("[" + strings.Join(r.Tools, ",") + "]"))
		field("tool_choice")
		if r.forces(p) {
			e.ObjStart()
			field("type").Str("function")
			field("function").ObjStart()
			field("name").Str(r.Force)
			e.ObjEnd()
			e.ObjEnd()
		} else {
			e.Str("auto")
		}
	}
	e.ObjEnd()
	return e.Bytes()
}

func (m *Message) encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("role")
	e.Str(m.Role)
	e.FieldStart("content")
	if m.Content == "" && len(m.Calls) > 0 {
		e.Null()
	} else {
		e.Str(m.Content)
	}
	if m.ToolCallID != "" {
		e.FieldStart("tool_call_id")
		e.Str(m.ToolCallID)
	}
	if len(m.Calls) > 0 {
		e.FieldStart("tool_calls")
		e.ArrStart()
		for i := range m.Calls {
			m.Calls[i].encode(e)
		}
		e.ArrEnd()
	}
	e.ObjEnd()
}

func (x *ToolCall) encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("id")
	e.Str(x.ID)
	e.FieldStart("type")
	e.Str("function")
	e.FieldStart("function")
	e.ObjStart()
	e.FieldStart("name")
	e.Str(x.Name)
	e.FieldStart("arguments")
	if wirejson.Raw(x.Arguments).Type() == wirejson.String {
		e.Raw(x.Arguments)
	} else {
		e.Str(string(x.Arguments))
	}
	e.ObjEnd()
	e.ObjEnd()
}

func (r *Request) sendsTemperature(p Params) bool { return len(r.Temperature) > 0 && !p.NoTemperature }
func (r *Request) sendsSeed(p Params) bool        { return r.Seed != nil && !p.NoSeed }
func (r *Request) forces(p Params) bool           { return r.Force != "" && !p.NoForce }

// Params records which optional parameters an endpoint rejects. The zero value, which sends them all, is tried first.
type Params struct {
	// OldLimit sends the token limit as max_tokens, its name before 2024, instead of max_completion_tokens.
	OldLimit bool
	// NoTemperature, NoSeed and NoForce leave out a parameter, or the choice of a tool, because the endpoint rejects
	// it.
	NoTemperature bool
	NoSeed        bool
	NoForce       bool
}

// Limit returns the name of the parameter that bounds an answer. A limit is always sent, because it bounds the cost.
func (p Params) Limit() string {
	if p.OldLimit {
		return "max_tokens"
	}
	return "max_completion_tokens"
}

// Sent lists the optional parameters that a request contains, for the record of a run: "max_completion_tokens,
// temperature, seed".
func (r *Request) Sent(p Params) string {
	names := p.Limit()
	if r.sendsTemperature(p) {
		names += ", temperature"
	}
	if r.sendsSeed(p) {
		names += ", seed"
	}
	if r.forces(p) {
		names += ", tool_choice"
	}
	return names
}

// After returns the parameters to try after an endpoint rejected the request with this status and body. ok is false if
// the rejection names no parameter that can be left out or renamed.
func (r *Request) After(p Params, status int64, body []byte) (next Params, ok bool) {
	if status < 400 || status > 499 || Retryable(status) {
		return p, false
	}
	message, next := strings.ToLower(string(body)), p
	names := func(parts ...string) bool {
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return false
			}
		}
		return true
	}
	switch {
	case !p.OldLimit && names(p.Limit()):
		next.OldLimit = true
	case r.sendsTemperature(p) && names("temperature"):
		next.NoTemperature = true
	case r.sendsSeed(p) && names("seed"):
		next.NoSeed = true
	case r.forces(p) && (names("tool_choice") || names("unsupported", "tool")):
		next.NoForce = true
	default:
		return p, false
	}
	return next, true
}

// AfterAnswer returns the parameters for the next request, after an answer of this many tokens: an endpoint that does
// not know the newer name of the limit may ignore it instead of rejecting it.
func (r *Request) AfterAnswer(p Params, completionTokens int64) Params {
	if completionTokens > r.MaxTokens {
		p.OldLimit = true
	}
	return p
}

// String formats the parameters for ParseParams: "max_tokens no_temperature", or "" for the zero value.
func (p Params) String() string {
	var words []string
	for i, set := range p.switches() {
		if *set {
			words = append(words, switchNames[i])
		}
	}
	return strings.Join(words, " ")
}

// ParseParams reads the output of String and skips other words.
func ParseParams(text string) (p Params) {
	for _, word := range strings.Fields(text) {
		for i, set := range p.switches() {
			*set = *set || word == switchNames[i]
		}
	}
	return p
}

var switchNames = [4]string{"max_tokens", "no_temperature", "no_seed", "no_tool_choice"}

func (p *Params) switches() [4]*bool {
	return [4]*bool{&p.OldLimit, &p.NoTemperature, &p.NoSeed, &p.NoForce}
}
