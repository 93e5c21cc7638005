package nanobot

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Route is the manifest's route to POST /chat/completions.
const Route = "chat"

// ModelsRoute is the manifest's route to GET /models.
const ModelsRoute = "models"

// LLM is the block llm of the configuration.
type LLM struct {
	Model string
	// Authorized is true when the key has a value.
	Authorized bool
	// Temperature is a JSON number, as it was configured.
	Temperature     string
	MaxOutputTokens int64
	TimeoutMS       int64
	// Retries is how often a call is tried again at once, before it counts as failed.
	Retries int64
}

// ParseLLM reads the block llm. secrets are those that have a value.
func ParseLLM(d *jsontext.Decoder, secrets []string) (LLM, error) {
	l := LLM{Temperature: "0.1", MaxOutputTokens: 8192, TimeoutMS: 60000, Retries: 2}
	for _, name := range secrets {
		l.Authorized = l.Authorized || name == "api_key"
	}
	seconds := int64(60)
	err := DecodeFrom(d, []Field{Word("model", &l.Model), Number("max_output_tokens", &l.MaxOutputTokens), Number("timeout_s", &seconds), Number("retries", &l.Retries)},
		func(d *jsontext.Decoder, key string) error {
			raw, err := d.Raw()
			if key == "temperature" {
				l.Temperature = string(raw)
			}
			return err
		})
	l.TimeoutMS = seconds * 1000
	return l, err
}

// Call is one tool call of a model.
type Call struct {
	ID, Name string
	// Arguments is the JSON value as it came: by the API's rules a string with JSON in it, which not every server keeps to.
	Arguments jsontext.Raw
}

// Turn is one message of a chat.
type Turn struct {
	Role, Content string
	// ToolCallID names the call that a tool's message answers.
	ToolCallID string
	Calls      []Call
}

// Chat is one request.
type Chat struct {
	// Model, where it is set, takes the place of the configured one.
	Model string
	Turns []Turn
	// Tools are tool declarations, each a JSON object.
	Tools []string
	// Force names the tool that must be called.
	Force string
}

// Answer is what a model said.
type Answer struct {
	// Text has no thinking blocks.
	Text  string
	Calls []Call
}

// Usage counts calls to the model.
type Usage struct {
	Calls, Failures, PromptTokens, CompletionTokens, MS int64
}

// Reasons of an error of a model.
const (
	ReasonUnavailable = "llm_unavailable"
	ReasonBadOutput   = "llm_bad_output"
)

// Chat asks the model. Where the server refuses a forced tool it is asked once more, free to choose.
//
// Errors: what the way there answers; by the server's status; backend with reason llm_bad_output where it answered without a usable choice, or the
// model ended with an error, at its limit of tokens, or at a content filter. Retryable says whether asking again at once may help.
func (l LLM) Chat(c *sdk.Call, r Chat, u *Usage) (*Answer, error) {
	answer, err := l.ask(c, r, r.Force, u)
	if e := abi.AsError(err); err != nil && r.Force != "" && refusesChoice(e) {
		answer, err = l.ask(c, r, "", u)
	}
	return answer, err
}

// refusesChoice tells whether a server says that it does not take tool_choice.
func refusesChoice(e *abi.Error) bool {
	if e.Native == nil || e.Native.Status == nil || *e.Native.Status < 400 || *e.Native.Status >= 500 {
		return false
	}
	said := strings.ToLower(e.Native.Body)
	return strings.Contains(said, "tool_choice") || strings.Contains(said, "unsupported") && strings.Contains(said, "tool")
}

func (l LLM) ask(c *sdk.Call, r Chat, force string, u *Usage) (*Answer, error) {
	u.Calls++
	before := c.Remaining()
	answer, err := l.exchange(c, r, force, u)
	u.MS += max(0, before-c.Remaining())
	if err != nil {
		u.Failures++
	}
	return answer, err
}

func (l LLM) exchange(c *sdk.Call, r Chat, force string, u *Usage) (*Answer, error) {
	headers := l.authorize(abi.Members[string]{{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"}})
	head, body, err := c.HTTP(abi.HTTPRequest{Route: Route, Headers: headers, TimeoutMS: max(1, min(l.TimeoutMS, c.Remaining()-500))}, l.body(r, force))
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

// authorize adds the key's header.
func (l LLM) authorize(headers abi.Members[string]) abi.Members[string] {
	if l.Authorized {
		headers.Set("authorization", "Bearer {{secret:api_key}}")
	}
	return headers
}

func (l LLM) body(r Chat, force string) []byte {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("model")
	e.Str(or(r.Model, l.Model))
	e.FieldStart("messages")
	e.ArrStart()
	for i := range r.Turns {
		r.Turns[i].encode(&e)
	}
	e.ArrEnd()
	e.FieldStart("temperature")
	e.Raw([]byte(l.Temperature))
	e.FieldStart("max_tokens")
	e.Int64(l.MaxOutputTokens)
	if len(r.Tools) > 0 {
		e.FieldStart("tools")
		e.Raw([]byte("[" + strings.Join(r.Tools, ",") + "]"))
		e.FieldStart("tool_choice")
		if force == "" {
			e.Str("auto")
		} else {
			e.Raw([]byte(`{"type":"function","function":{"name":"` + force + `"}}`))
		}
	}
	e.ObjEnd()
	return e.Bytes()
}

func (t *Turn) encode(e *jsontext.Encoder) {
	e.ObjStart()
	e.FieldStart("role")
	e.Str(t.Role)
	e.FieldStart("content")
	if t.Content == "" && len(t.Calls) > 0 {
		e.Null()
	} else {
		e.Str(t.Content)
	}
	if t.ToolCallID != "" {
		e.FieldStart("tool_call_id")
		e.Str(t.ToolCallID)
	}
	if len(t.Calls) > 0 {
		e.FieldStart("tool_calls")
		e.ArrStart()
		for _, call := range t.Calls {
			arguments := call.Arguments
			if arguments.Type() != jsontext.String {
				arguments = jsontext.Raw(sdk.Text(string(arguments)))
			}
			e.Raw([]byte(`{"id":` + string(sdk.Text(call.ID)) + `,"type":"function","function":{"name":` + string(sdk.Text(call.Name)) + `,"arguments":` + string(arguments) + "}}"))
		}
		e.ArrEnd()
	}
	e.ObjEnd()
}

// parseAnswer reads a 200.
func parseAnswer(body []byte, status int64, u *Usage) (*Answer, error) {
	answer, finish, choices, said := new(Answer), "", 0, false
	err := jsontext.DecodeBytes(body).Obj(func(d *jsontext.Decoder, key string) error {
		switch {
		case key == "usage" && d.Next() == jsontext.Object:
			return u.read(d)
		case key == "error" && d.Next() != jsontext.Null:
			said = true
			return d.Skip()
		case key == "choices" && d.Next() == jsontext.Array:
			return d.Arr(func(d *jsontext.Decoder) error {
				if choices++; choices > 1 {
					return d.Skip()
				}
				return answer.readChoice(d, &finish)
			})
		}
		return d.Skip()
	})
	switch {
	case err != nil:
		return nil, BadOutput("the endpoint's answer is not JSON of chat completions: "+err.Error(), status, body)
	case choices == 0 || said:
		return nil, BadOutput("the endpoint answered without a choice", status, body)
	case finish == "error" || finish == "length" || finish == "content_filter":
		return nil, BadOutput("the model ended with finish_reason "+finish, status, body)
	}
	answer.Text = StripThinking(answer.Text)
	return answer, nil
}

func (u *Usage) read(d *jsontext.Decoder) error {
	var in, out int64
	err := DecodeFrom(d, []Field{Number("prompt_tokens", &in), Number("completion_tokens", &out)}, nil)
	u.PromptTokens += in
	u.CompletionTokens += out
	return err
}

func (a *Answer) readChoice(d *jsontext.Decoder, finish *string) error {
	return DecodeFrom(d, []Field{Word("finish_reason", finish)}, func(d *jsontext.Decoder, key string) error {
		if key != "message" || d.Next() != jsontext.Object {
			return d.Skip()
		}
		return DecodeFrom(d, nil, func(d *jsontext.Decoder, key string) (err error) {
			switch {
			case key == "content":
				a.Text, err = FlatContent(d)
			case key == "tool_calls" && d.Next() == jsontext.Array:
				err = d.Arr(a.readCall)
			default:
				err = d.Skip()
			}
			return err
		})
	})
}

func (a *Answer) readCall(d *jsontext.Decoder) error {
	var call Call
	err := DecodeFrom(d, []Field{Word("id", &call.ID)}, func(d *jsontext.Decoder, key string) error {
		if key != "function" || d.Next() != jsontext.Object {
			return d.Skip()
		}
		return DecodeFrom(d, []Field{Word("name", &call.Name)}, func(d *jsontext.Decoder, key string) error {
			raw, err := d.RawAppend(nil)
			if key == "arguments" {
				call.Arguments = raw
			}
			return err
		})
	})
	a.Calls = append(a.Calls, call)
	return err
}

// BadOutput is the error of an answer that cannot be used. body is what was said; it may be nil.
func BadOutput(message string, status int64, body []byte) *abi.Error {
	e := abi.NewError(abi.CodeBackend, message).WithReason(ReasonBadOutput)
	e.Route = Route
	if body != nil {
		e.Native = &abi.NativeError{Status: &status, Body: clip(string(body), 4096)}
	}
	return e
}

// refused is the error of a status that is no success.
func refused(head *abi.HTTPResponse, body []byte) *abi.Error {
	status := head.Status
	e := abi.NewError(abi.CodeBackend, "the endpoint answered "+sdk.Itoa(status)).WithReason(ReasonUnavailable)
	switch {
	case status == 401 || status == 403:
		e.Code = abi.CodeUnauthenticated
		e.Hint = "is llm.api_key right?"
	case status == 429:
		e.Code = abi.CodeRateLimited
	case status == 408 || status == 425 || status >= 500:
		e.Code = abi.CodeUnavailable
	case status == 404:
		e.Code = abi.CodeNotFound
		e.Hint = "llm.base_url is the part before /chat/completions; is llm.model served there?"
	}
	e.Retryable = status == 408 || status == 425 || status == 429 || status >= 500
	e.Route, e.Native = Route, &abi.NativeError{Status: &status, Body: clip(string(body), 4096)}
	if seconds, err := strconv.ParseInt(strings.TrimSpace(head.Headers.Get("retry-after")), 10, 64); err == nil && seconds >= 0 {
		e.RetryAfterMS = sdk.Ptr(min(seconds, 86400) * 1000)
	}
	return e
}

// clip cuts a text between characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
