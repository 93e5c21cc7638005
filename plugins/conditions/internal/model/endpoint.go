package model

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// The manifest's routes: POST /chat/completions and GET /models.
const (
	Route       = "chat"
	modelsRoute = "models"
)

// Endpoint is the block llm of the configuration.
type Endpoint struct {
	Model string
	// Authorized is true when the key has a value.
	Authorized bool
	// Temperature is a JSON number, as it was configured.
	Temperature     abi.Raw
	MaxOutputTokens int64
	TimeoutMS       int64
	// Retries is how often a call is tried again at once, before it counts as failed.
	Retries int64
}

// ParseEndpoint reads the block llm. secrets are those that have a value.
func ParseEndpoint(d *wirejson.Decoder, secrets []string) (Endpoint, error) {
	p := Endpoint{Temperature: abi.Raw("0.1"), MaxOutputTokens: 8192, Retries: 2,
		Authorized: slices.Contains(secrets, "api_key")}
	seconds := int64(60)
	err := object.Read(d, nil, object.Optional("model", &p.Model), object.Optional("temperature", &p.Temperature),
		object.Optional("max_output_tokens", &p.MaxOutputTokens), object.Optional("timeout_s",
			&seconds), object.Optional("retries", &p.Retries))
	p.TimeoutMS = seconds * 1000
	return p, err
}

// Call is one tool call of a model.
type Call struct {
	ID, Name string
	// Arguments is the JSON value as it came: by the API's rules a string with JSON in it, which not every server keeps
	// to.
	Arguments abi.Raw
}

// Turn is one message of a chat.
type Turn struct {
	Role, Content string
	// ToolCallID names the call that a tool's message answers.
	ToolCallID string
	Calls      []Call
}

// Request is one request.
type Request struct {
	// Model, where it is set, takes the place of the configured one.
	Model string
	Turns []Turn
	// Tools are tool declarations, each a JSON object.
	Tools []string
	// Force names the tool that must be called.
	Force string
}

// Prompt is a request of an instruction and what it is about.
func Prompt(instruction, about string) Request {
	return Request{Turns: []Turn{{Role: "system", Content: instruction}, {Role: "user", Content: about}}}
}

// Answer is what a model said.
type Answer struct {
	// Text has no thinking blocks.
	Text  string
	Calls []Call
}

// Chat asks the model, unless the state has failed. Where the server refuses a forced tool it is asked once more,
// free to choose.
//
// Errors: what the way there answers; by the server's status; backend with reason llm_bad_output where it answered
// without a usable choice, or the model ended with an error, at its limit of tokens, or at a content filter.
// Retryable says whether asking again at once may help.
func (p *Endpoint) Chat(s *state.State, r Request, u *Usage) (*Answer, error) {
	if !s.OK() {
		return nil, s.Err()
	}
	answer, err := p.ask(s, r, u)
	if r.Force != "" && refusesChoice(err) {
		r.Force = ""
		answer, err = p.ask(s, r, u)
	}
	return answer, err
}

// refusesChoice reports whether a server says that it does not take tool_choice.
func refusesChoice(err error) bool {
	if err == nil {
		return false
	}
	native := abi.AsError(err).Native
	if native == nil || native.Status == nil || *native.Status < 400 || *native.Status >= 500 {
		return false
	}
	said := strings.ToLower(native.Body)
	return strings.Contains(said, "tool_choice") || strings.Contains(said, "unsupported") &&
		strings.Contains(said, "tool")
}

func (p *Endpoint) ask(s *state.State, r Request, u *Usage) (*Answer, error) {
	u.Calls++
	before := s.Remaining()
	answer, err := p.exchange(s, r, u)
	u.MS += max(0, before-s.Remaining())
	if err != nil {
		u.Failures++
	}
	return answer, err
}

func (p *Endpoint) exchange(s *state.State, r Request, u *Usage) (*Answer, error) {
	head, body, err := p.send(s.Call, Route, p.body(r))
	if err != nil {
		e := *abi.AsError(err)
		e.Route = Route
		e.Retryable = e.Code == abi.CodeTimeout || e.Code == abi.CodeUnavailable
		if e.Retryable && e.Reason == "" {
			e.Reason = ReasonUnavailable
		}
		return nil, &e
	}
	if head.Status < 200 || head.Status > 299 {
		return nil, refused(head, body)
	}
	return parseAnswer(body, head.Status, u)
}

// send sends a request to the endpoint; it ends half a second before the call's own time does.
func (p *Endpoint) send(c *sdk.Call, route string, body []byte) (*abi.HTTPResponse, []byte, error) {
	r := abi.HTTPRequest{Route: route, TimeoutMS: max(1, min(p.TimeoutMS, c.Remaining()-500))}
	if body != nil {
		sdk.Put(&r.Headers, "content-type", "application/json")
	}
	sdk.Put(&r.Headers, "accept", "application/json")
	if p.Authorized {
		sdk.Put(&r.Headers, "authorization", "Bearer {{secret:api_key}}")
	}
	return c.HTTP(r, body)
}

func (p *Endpoint) body(r Request) []byte {
	name, choice := r.Model, abi.Raw(`"auto"`)
	if name == "" {
		name = p.Model
	}
	if r.Force != "" {
		choice = abi.Raw(`{"type":"function","function":{"name":"` + r.Force + `"}}`)
	}
	var messages wirejson.Encoder
	messages.ArrStart()
	for i := range r.Turns {
		r.Turns[i].write(&messages)
	}
	messages.ArrEnd()
	list := abi.Raw(messages.Bytes())
	members := []object.Member{object.Always("model", &name), object.Always("messages", &list),
		object.Always("temperature", &p.Temperature),
		object.Always("max_tokens", &p.MaxOutputTokens)}
	if len(r.Tools) > 0 {
		tools := abi.Raw("[" + strings.Join(r.Tools, ",") + "]")
		members = append(members, object.Always("tools", &tools), object.Always("tool_choice", &choice))
	}
	return object.Encode(members...)
}

func (t *Turn) write(e *wirejson.Encoder) {
	content := object.Always("content", &t.Content)
	var calls abi.Raw
	if len(t.Calls) > 0 {
		content = object.OrNull("content", &t.Content)
		var list wirejson.Encoder
		list.ArrStart()
		for i := range t.Calls {
			t.Calls[i].write(&list)
		}
		list.ArrEnd()
		calls = list.Bytes()
	}
	object.Write(e, object.Always("role", &t.Role), content, object.Optional("tool_call_id", &t.ToolCallID),
		object.Optional("tool_calls", &calls))
}

func (x *Call) write(e *wirejson.Encoder) {
	arguments := x.Arguments
	if wirejson.Raw(arguments).Type() != wirejson.String {
		arguments = sdk.Text(string(arguments))
	}
	function := abi.Raw(object.Encode(object.Always("name", &x.Name), object.Always("arguments", &arguments)))
	object.Write(e, object.Always("id", &x.ID), object.Constant("type", `"function"`),
		object.Always("function", &function))
}

// parseAnswer reads a 200.
func parseAnswer(body []byte, status int64, u *Usage) (*Answer, error) {
	var choices []Answer
	var failure, usage, list abi.Raw
	finish := ""
	err := object.Decode(body, object.Optional("usage", &usage), object.Optional("error", &failure),
		object.Optional("choices", &list))
	if err == nil && wirejson.Raw(usage).Type() == wirejson.Object {
		err = u.read(usage)
	}
	if err == nil && wirejson.Raw(list).Type() == wirejson.Array {
		err = wirejson.DecodeBytes(list).Arr(func(d *wirejson.Decoder) error {
			choices = append(choices, Answer{})
			if len(choices) > 1 {
				return d.Skip()
			}
			return choices[0].read(d, &finish)
		})
	}
	switch {
	case err != nil:
		return nil, BadOutput("the endpoint's answer is not JSON of chat completions: "+err.Error(), status, body)
	case len(choices) == 0 || failure != nil:
		return nil, BadOutput("the endpoint answered without a choice", status, body)
	case finish == "error" || finish == "length" || finish == "content_filter":
		return nil, BadOutput("the model ended with finish_reason "+finish, status, body)
	}
	answer := &choices[0]
	answer.Text = StripThinking(answer.Text)
	return answer, nil
}

func (a *Answer) read(d *wirejson.Decoder, finish *string) error {
	return object.Read(d, func(d *wirejson.Decoder, key string) error {
		if key != "message" || d.Next() != wirejson.Object {
			return d.Skip()
		}
		return object.Read(d, func(d *wirejson.Decoder, key string) (err error) {
			switch {
			case key == "content":
				a.Text, err = object.Text(d)
			case key == "tool_calls" && d.Next() == wirejson.Array:
				err = d.Arr(a.readCall)
			default:
				err = d.Skip()
			}
			return err
		})
	}, object.Optional("finish_reason", finish))
}

func (a *Answer) readCall(d *wirejson.Decoder) error {
	var x Call
	err := object.Read(d, func(d *wirejson.Decoder, key string) error {
		if key != "function" || d.Next() != wirejson.Object {
			return d.Skip()
		}
		return object.Read(d, nil, object.Optional("name", &x.Name), object.Optional("arguments", &x.Arguments))
	}, object.Optional("id", &x.ID))
	a.Calls = append(a.Calls, x)
	return err
}

// Health looks at the endpoint's list of models. A scope's own failures stand in its readiness: health has no scope.
func (p *Endpoint) Health(c *sdk.Call, config *abi.GuestConfig, types []string) *abi.BackendHealth {
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: types,
		NativeIngestModes: []string{"llm"}, NativeQueryModes: []string{"whole"}, Isolation: "hard",
		PetObservability: "strong"}
	head, body, err := p.send(c, modelsRoute, nil)
	said := ""
	switch {
	case err != nil:
		said = abi.AsError(err).Message
	case head.Status < 200 || head.Status > 299:
		said = "GET /models answered " + sdk.Itoa(head.Status)
	case !isModels(body):
		said = "GET /models answered what is no list of models"
	}
	if said != "" {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings,
			ReasonUnavailable+": "+said+"; turns are stored, and worked off when the model is back")
	}
	return h
}

func isModels(body []byte) bool {
	found := false
	err := wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		// Ollama without a model answers null
		found = found || key == "data" && (d.Next() == wirejson.Array || d.Next() == wirejson.Null)
		return d.Skip()
	})
	return err == nil && found
}
