package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fingerprint marks every chat completion, so that it is not taken for a model's.
const Fingerprint = "memhost-stub"

// Server answers as an OpenAI-compatible endpoint; it is an http.Handler. Use New.
type Server struct {
	options Options
	mux     *http.ServeMux
	faults  faults

	mu     sync.Mutex
	log    []Entry
	counts Counts
	number int
}

// Options of a server; the zero value serves.
type Options struct {
	// Dimensions of an embedding whose request names none. 0: what the model name says as OpenAI has it
	// (text-embedding-3-large 3072), else 1536.
	Dimensions int
	// Now gives the times of the log and of the answers. nil: time.Now.
	Now func() time.Time
	// Embed gives a vector for each text, of any length; they are cut or filled with zeros to the length that is asked
	// for. An error answers 503; a text whose vector is zero is hashed by the function Embed. nil: every text is hashed.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// Keep bounds the log; the counts go on. 0: 10000.
	Keep int
}

// Entry of the log: one request.
type Entry struct {
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Kind is chat, responses, embeddings, rerank or models; Purpose says what a rule took it for (mem0.extract,
	// graphiti.edges, unknown, ...).
	Kind    string `json:"kind"`
	Purpose string `json:"purpose"`
	Model   string `json:"model,omitempty"`
	// Inputs of an embedding request; Tokens are rough counts.
	Inputs           int    `json:"inputs,omitempty"`
	PromptTokens     int    `json:"prompt_tokens,omitempty"`
	CompletionTokens int    `json:"completion_tokens,omitempty"`
	Fault            Mode   `json:"fault,omitempty"`
	Prompt           string `json:"prompt,omitempty"`
	Answer           string `json:"answer,omitempty"`
}

// Counts are the numbers of requests since the start or the last ClearLog.
type Counts struct {
	LLM        int            `json:"llm"`
	Embeddings int            `json:"embeddings"`
	ByPurpose  map[string]int `json:"by_purpose"`
}

// New makes a server without faults.
func New(options Options) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Keep == 0 {
		options.Keep = 10000
	}
	s := &Server{options: options, mux: http.NewServeMux()}
	for _, prefix := range []string{"/v1", ""} {
		s.mux.HandleFunc("POST "+prefix+"/chat/completions", s.chat)
		s.mux.HandleFunc("POST "+prefix+"/responses", s.responses)
		s.mux.HandleFunc("POST "+prefix+"/embeddings", s.embeddings)
		s.mux.HandleFunc("POST "+prefix+"/rerank", s.rerank)
		s.mux.HandleFunc("GET "+prefix+"/models", s.models)
	}
	s.mux.HandleFunc("GET /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200,
			s.faults.all())
	})
	s.mux.HandleFunc("POST /admin/faults", s.postFaults)
	s.mux.HandleFunc("DELETE /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		w.WriteHeader(
			http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /admin/log", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, s.Log()) })
	s.mux.HandleFunc("DELETE /admin/log", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearLog()
		w.WriteHeader(
			http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /admin/counts", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, s.Counts()) })
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Fail sets faults beside those already there; the first that matches acts. The error names an unknown mode.
func (s *Server) Fail(list ...Fault) error { return s.faults.add(list...) }

// ClearFaults removes all faults and lets held requests go on.
func (s *Server) ClearFaults() { s.faults.clear() }

// Log of the newest requests (Options.Keep), oldest first.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Entry{}, s.log...)
}

// Counts since the start or the last ClearLog.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.ByPurpose = map[string]int{}
	for purpose, n := range s.counts.ByPurpose {
		c.ByPurpose[purpose] = n
	}
	return c
}

// ClearLog resets the counts.
func (s *Server) ClearLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.counts = nil, Counts{}
}

func (s *Server) record(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	e.Number, e.At = s.number, s.options.Now().UTC()
	s.log = append(s.log, e)
	if s.counts.ByPurpose == nil {
		s.counts.ByPurpose = map[string]int{}
	}
	s.counts.ByPurpose[e.Purpose]++
	switch e.Kind {
	case "chat", "responses":
		s.counts.LLM++
	case "embeddings":
		s.counts.Embeddings++
	}
	if over := len(s.log) - s.options.Keep; over > 0 {
		s.log = append(s.log[:0:0], s.log[over:]...)
	}
}

func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	var list []Fault
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err := json.Unmarshal(body, &list); err != nil {
		var one Fault
		if json.Unmarshal(body, &one) != nil {
			writeError(w, 400, "a fault, or a list of faults: "+err.Error())
			return
		}
		list = []Fault{one}
	}
	if err := s.Fail(list...); err != nil {
		writeError(w, 400, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func readBody[T any](w http.ResponseWriter, r *http.Request) (*T, bool) {
	var v T
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&v); err != nil {
		writeError(w, 400, "the body is not JSON of this route: "+err.Error())
		return nil, false
	}
	return &v, true
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	request, ok := readBody[chatRequest](w, r)
	if !ok {
		return
	}
	p := request.prompt()
	answer, finish, choice, fault, done := s.answer(w, r, "chat", p)
	if done {
		return
	}
	if p.Stream && choice {
		s.stream(w, p, answer, finish)
		return
	}
	message := map[string]any{"role": "assistant", "content": answer.Text, "refusal": nil}
	if len(answer.Calls) > 0 {
		message["tool_calls"] = wireCalls(answer.Calls, false)
		if answer.Text == "" {
			message["content"] = nil
		}
	}
	choices := []any{}
	if choice {
		choices = append(choices, map[string]any{"index": 0, "finish_reason": finish, "message": message,
			"logprobs": logprobs(p, answer)})
	}
	body := map[string]any{"id": s.id("chatcmpl"), "object": "chat.completion", "created": s.options.Now().Unix(),
		"model": p.Model, "choices": choices, "usage": usage(p, answer),
		"system_fingerprint": Fingerprint}
	s.send(w, body, fault)
}

// answer asks the rules, logs the request and applies a fault. done: the fault answered the request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, kind string, p *Prompt) (
	answer Answer, finish string, choice bool, fault *activeFault, done bool) {
	purpose, answer := Reply(p)
	fault = s.faults.take(kind, purpose, p.Forced)
	entry := Entry{Kind: kind, Purpose: purpose, Model: p.Model, PromptTokens: tokens(p.Text()), Prompt: p.Text()}
	finish, choice = "stop", true
	if len(answer.Calls) > 0 {
		finish = "tool_calls"
	}
	if fault != nil {
		entry.Fault = fault.Mode
		if fault.Mode == Down || fault.Mode == Slow || fault.Mode == Status || fault.Mode == NoForcedTool {
			s.record(entry)
			return answer, finish, choice, fault, fault.spoilExchange(r.Context(), w)
		}
		answer, finish, choice = fault.spoilAnswer(p, answer)
	}
	entry.Answer = answer.Text
	for _, c := range answer.Calls {
		entry.Answer += c.Name + " " + c.Arguments
	}
	entry.CompletionTokens = tokens(entry.Answer)
	s.record(entry)
	if fault != nil && fault.spoilExchange(r.Context(), w) {
		return answer, finish, choice, fault, true
	}
	return answer, finish, choice, fault, false
}

// send writes the whole answer at once: a header that is sent before the body costs a client 40 ms (Nagle's algorithm
// and delayed acknowledgement).
func (s *Server) send(w http.ResponseWriter, body any, fault *activeFault) {
	text, err := json.Marshal(body)
	if err != nil {
		writeError(w, 500, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if fault != nil && fault.Mode == CutBody {
		text = text[:len(text)/2]
	}
	_, _ = w.Write(text)
}

// stream sends the answer as server-sent events: a few words a chunk.
func (s *Server) stream(w http.ResponseWriter, p *Prompt, answer Answer, finish string) {
	w.Header().Set("Content-Type", "text/event-stream")
	id := s.id("chatcmpl")
	chunk := func(delta map[string]any, finish any, usage any) {
		body := map[string]any{"id": id, "object": "chat.completion.chunk", "created": s.options.Now().Unix(),
			"model":   p.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
		if usage != nil {
			body["usage"] = usage
		}
		text, _ := json.Marshal(body)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil, nil)
	for _, word := range strings.SplitAfter(answer.Text, " ") {
		if word != "" {
			chunk(map[string]any{"content": word}, nil, nil)
		}
	}
	if len(answer.Calls) > 0 {
		chunk(map[string]any{"tool_calls": wireCalls(answer.Calls, true)}, nil, nil)
	}
	chunk(map[string]any{}, finish, usage(p, answer))
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	request, ok := readBody[responsesRequest](w, r)
	if !ok {
		return
	}
	p, err := request.prompt()
	if err != nil {
		writeError(w, 400, "input: "+err.Error())
		return
	}
	answer, finish, choice, fault, done := s.answer(w, r, "responses", p)
	if done {
		return
	}
	output := []any{}
	if choice {
		output = append(output, map[string]any{"type": "message", "id": s.id("msg"), "role": "assistant",
			"status":  "completed",
			"content": []any{map[string]any{"type": "output_text", "text": answer.Text, "annotations": []any{}}}})
	}
	status := "completed"
	if finish == "length" {
		status = "incomplete"
	}
	in, out := tokens(p.Text()), tokens(answer.Text)
	s.send(w, map[string]any{"id": s.id("resp"), "object": "response", "created_at": s.options.Now().Unix(),
		"model": p.Model, "status": status,
		"parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{}, "output": output, "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": map[string]any{},
		"usage": map[string]any{"input_tokens": in, "output_tokens": out, "total_tokens": in +
			out, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens_details": map[string]any{"reasoning_tokens": 0}}}, fault)
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, 200, map[string]any{"object": "list", "data": []any{map[string]any{"id": "stub", "object": "model",
		"created": 0, "owned_by": "memhost"}}})
}

func (s *Server) id(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%s-%d", kind, s.number)
}

func usage(p *Prompt, a Answer) map[string]any {
	in, out := tokens(p.Text()), tokens(a.Text)
	for _, c := range a.Calls {
		out += tokens(c.Arguments)
	}
	return map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

// logprobs gives a one-token answer (a cross encoder's True or False) its probability.
func logprobs(p *Prompt, a Answer) any {
	if a.Text != "True" && a.Text != "False" {
		return nil
	}
	probability := math.Log(0.5 + 0.5*crossScore(p))
	if a.Text == "False" {
		probability = math.Log(1 - 0.5*crossScore(p))
	}
	return map[string]any{"content": []any{map[string]any{"token": a.Text, "logprob": probability, "bytes": nil,
		"top_logprobs": []any{map[string]any{"token": a.Text, "logprob": probability, "bytes": nil}}}}}
}

func wireCalls(calls []Call, indexed bool) []wireCall {
	out := make([]wireCall, 0, len(calls))
	for i, c := range calls {
		w := wireCall{ID: c.ID, Type: "function"}
		if w.ID == "" {
			w.ID = fmt.Sprintf("call_%d", i+1)
		}
		if indexed {
			w.Index = &i
		}
		w.Function.Name, w.Function.Arguments = c.Name, c.Arguments
		out = append(out, w)
	}
	return out
}
