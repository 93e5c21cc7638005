package model

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// The manifest's routes: POST /chat/completions and GET /models.
const (
	Route       = "chat"
	modelsRoute = "models"
)

// Endpoint is the config block llm.
type Endpoint struct {
	Model string
	// Authorized is true when the key has a value.
	Authorized bool
	// Temperature is a JSON number, as configured.
	Temperature     abi.Raw
	MaxOutputTokens int64
	TimeoutMS       int64
	// Retries is how often a failed call is retried at once before it counts as failed.
	Retries int64
}

// ParseEndpoint reads the block llm. secrets are the secrets that have a value.
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

// Prompt is a request that consists of an instruction and its subject.
func Prompt(instruction, about string) chat.Request {
	return chat.Request{Messages: []chat.Message{{Role: "system", Content: instruction}, {Role: "user", Content: about}}}
}

// Chat asks the model, unless the state has failed. Model, MaxTokens and Temperature of the request are set to the
// configured ones; a request that names a model keeps its own. The first request to a model finds out which parameters
// the endpoint accepts, and the scope's state keeps them. A request that is refused because of a parameter is not
// counted as a call.
//
// Errors: those of the host call; by the server's status (chat.Refusal), with reason llm_unavailable, or llm_refused if
// the same request will be refused again; backend with reason llm_bad_output if the answer has no usable choice, or the
// model ended with an error, at its token limit, or at a content filter. Retryable says whether asking again at once
// may help.
func (p *Endpoint) Chat(s *state.State, r chat.Request, u *Usage) (*chat.Answer, error) {
	if r.Model == "" {
		r.Model = p.Model
	}
	r.MaxTokens, r.Temperature = p.MaxOutputTokens, p.Temperature
	key := paramsPrefix + r.Model
	stored, _ := s.Get(key)
	if !s.OK() {
		return nil, s.Err()
	}
	known := chat.ParseParams(string(stored))
	answer, params, err := p.settle(s, r, known, u)
	if known != (chat.Params{}) && chat.IsFinal(err) { // the configuration may name another endpoint now
		answer, params, err = p.settle(s, r, chat.Params{}, u)
	}
	u.Params = r.Sent(params)
	if err != nil {
		return nil, err
	}
	if next := r.AfterAnswer(params, answer.CompletionTokens); next != params {
		s.Log(abi.LogWarn, "the model's answer has more tokens than "+params.Limit()+
			" allows; from now on the limit is sent as "+next.Limit())
		params = next
	}
	if params != known {
		s.Put(key, []byte(params.String()), sdk.AnyVersion)
	}
	return answer, nil
}

// paramsPrefix is the prefix of the state keys that hold the parameters which a model's endpoint accepts, as
// chat.Params formats them.
const paramsPrefix = "llm_params/"

// settle sends the request, again with other parameters if the endpoint rejects one.
func (p *Endpoint) settle(s *state.State, r chat.Request, params chat.Params, u *Usage) (*chat.Answer, chat.Params, error) {
	for {
		before := s.Remaining()
		answer, err := p.exchange(s, &r, params, u)
		u.MS += max(0, before-s.Remaining())
		if err == nil {
			u.Calls++
			return answer, params, nil
		}
		if native := abi.AsError(err).Native; native != nil && native.Status != nil {
			if next, ok := r.After(params, *native.Status, []byte(native.Body)); ok {
				params = next
				continue
			}
		}
		u.Calls++
		u.Failures++
		return nil, params, err
	}
}

func (p *Endpoint) exchange(s *state.State, r *chat.Request, params chat.Params, u *Usage) (*chat.Answer, error) {
	head, body, err := p.send(s.Call, Route, r.Encode(params))
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
		return nil, statusError(s, head, body)
	}
	answer, err := chat.ParseAnswer(body)
	if err != nil {
		return nil, BadOutput(abi.AsError(err).Message, head.Status, body)
	}
	u.PromptTokens += answer.PromptTokens
	u.CompletionTokens += answer.CompletionTokens
	switch answer.FinishReason {
	case "length":
		return nil, BadOutput("the model's answer was cut off (finish_reason length): raise llm.max_output_tokens, which is "+
			sdk.Itoa(p.MaxOutputTokens), head.Status, body)
	case "error", "content_filter":
		return nil, BadOutput("the model ended with finish_reason "+answer.FinishReason, head.Status, body)
	}
	return answer, nil
}

// send sends a request to the endpoint with a timeout half a second before the call's deadline.
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

// Health requests the endpoint's list of models. The failures of a scope are in its readiness, because health has no
// scope.
func (p *Endpoint) Health(c *sdk.Call, config *abi.GuestConfig, types []string) *abi.BackendHealth {
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: types,
		NativeIngestModes: []string{"llm"}, NativeQueryModes: []string{"whole"}, Isolation: "hard",
		PetObservability: "strong"}
	head, body, err := p.send(c, modelsRoute, nil)
	problem := ""
	switch {
	case err != nil:
		problem = abi.AsError(err).Message
	case head.Status < 200 || head.Status > 299:
		problem = "GET /models answered " + sdk.Itoa(head.Status)
	case !isModels(body):
		problem = "GET /models answered what is no list of models"
	}
	if problem != "" {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings,
			ReasonUnavailable+": "+problem+"; turns are stored, and worked off when the model is back")
	}
	return h
}

func isModels(body []byte) bool {
	found := false
	err := wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		// Ollama without a model returns null
		found = found || key == "data" && (d.Next() == wirejson.Array || d.Next() == wirejson.Null)
		return d.Skip()
	})
	return err == nil && found
}
