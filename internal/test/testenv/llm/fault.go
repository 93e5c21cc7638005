package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Mode is a way to fail.
type Mode string

// The ways to fail. Those of the first group spoil the exchange, those of the second the answer of the model inside an
// ordinary 200.
const (
	// Down closes the connection without an answer. Slow answers never: it waits until the client gives up. Hold waits
	// until the fault is removed (or the client gives up) and then answers as usual: work is visibly under way without
	// a sleep.
	Down Mode = "down"
	Slow Mode = "slow"
	Hold Mode = "hold"
	// Status answers the fault's Status (500 if none), with its Content as the message, and with Retry-After when RetryAfter is set. 429 and 401 are such.
	Status Mode = "status"
	// CutBody ends the HTTP body in the middle of the JSON.
	CutBody Mode = "cut_body"
	// NoForcedTool answers 400 to a forced tool_choice and nothing else.
	NoForcedTool Mode = "no_forced_tool"

	// CutAnswer cuts the model's text (or the tool's arguments) in the middle; finish_reason stays as it was. Length
	// also says finish_reason length.
	CutAnswer Mode = "cut_answer"
	Length    Mode = "length"
	// FinishError and ContentFilter end with these finish reasons and no text. NoChoice has an empty list of choices.
	FinishError   Mode = "finish_error"
	ContentFilter Mode = "content_filter"
	NoChoice      Mode = "no_choice"
	// WrongTool calls a tool that was not offered. NoTool answers in prose although a tool call was requested.
	// ToolAnswer calls a tool although a text was requested.
	WrongTool  Mode = "wrong_tool"
	NoTool     Mode = "no_tool"
	ToolAnswer Mode = "tool_answer"
	// Empty answers "". Thinking answers a thinking block and nothing else, ThinkingFirst one before the right answer,
	// ThinkingOpen one that never closes.
	Empty         Mode = "empty"
	Thinking      Mode = "thinking"
	ThinkingFirst Mode = "thinking_first"
	ThinkingOpen  Mode = "thinking_open"
	// Prose answers a sentence instead of JSON. Fenced wraps the right answer in a code fence, BareList answers a JSON
	// list of strings.
	Prose    Mode = "prose"
	Fenced   Mode = "fenced"
	BareList Mode = "bare_list"
	// Say answers with the fault's Content, as text or, if tools are offered, as the arguments of the first one.
	Say Mode = "say"
	// Dimension gives embeddings of the fault's Dimension.
	Dimension Mode = "dimension"
)

var modes = map[Mode]bool{Down: true, Slow: true, Hold: true, Status: true, CutBody: true, NoForcedTool: true,
	CutAnswer: true, Length: true, FinishError: true,
	ContentFilter: true, NoChoice: true, WrongTool: true, NoTool: true, ToolAnswer: true, Empty: true, Thinking: true,
	ThinkingFirst: true, ThinkingOpen: true,
	Prose: true, Fenced: true, BareList: true, Say: true, Dimension: true}

// Fault makes requests fail. Purpose names which: a purpose of the log ("mem0.extract"), a beginning of one ("mem0",
// "chat", "embeddings"), or "" for all.
type Fault struct {
	Purpose string `json:"purpose,omitempty"`
	Mode    Mode   `json:"mode"`
	// After leaves so many matching requests alone first. Times ends the fault after so many; 0 means until it is
	// removed.
	After int `json:"after,omitempty"`
	Times int `json:"times,omitempty"`
	// Status and RetryAfter (seconds) for mode status, Content for say, and for status as its message, Dimension for
	// dimension.
	Status     int    `json:"status,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"`
	Content    string `json:"content,omitempty"`
	Dimension  int    `json:"dimension,omitempty"`
}

// faults are those set at present, with their counts.
type faults struct {
	mu   sync.Mutex
	list []*activeFault
}

type activeFault struct {
	Fault
	seen, done int
	removed    chan struct{}
}

func (f *faults) add(list ...Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range list {
		if !modes[fault.Mode] {
			return fmt.Errorf("mode: %q is not a way to fail", fault.Mode)
		}
		f.list = append(f.list, &activeFault{Fault: fault, removed: make(chan struct{})})
	}
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		close(a.removed)
	}
	f.list = nil
}

func (f *faults) all() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.list))
	for _, a := range f.list {
		out = append(out, a.Fault)
	}
	return out
}

// take gives the first fault that applies to a request of this kind and purpose, and counts it. nil: none.
func (f *faults) take(kind, purpose string, forced bool) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if !matches(a.Purpose, kind, purpose) || a.Times > 0 && a.done >= a.Times || a.Mode == NoForcedTool && !forced {
			continue
		}
		a.seen++
		if a.seen <= a.After {
			continue
		}
		a.done++
		return a
	}
	return nil
}

// matches: "" matches all, a kind its requests, and "mem0" also "mem0.extract".
func matches(wanted, kind, purpose string) bool {
	return wanted == "" || wanted == kind || wanted == purpose || strings.HasPrefix(purpose, wanted+".")
}

// spoilExchange does what a fault of the first group does. It reports whether the request is answered by that.
func (a *activeFault) spoilExchange(ctx context.Context, w http.ResponseWriter) bool {
	switch a.Mode {
	case Down:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
			return true
		}
		panic(http.ErrAbortHandler)
	case Slow:
		<-ctx.Done()
		return true
	case Hold:
		select {
		case <-ctx.Done():
			return true
		case <-a.removed:
			return false
		}
	case Status, NoForcedTool:
		status, text := a.Status, "the stub was told to fail"
		if a.Mode == NoForcedTool {
			status, text = http.StatusBadRequest, "tool_choice is unsupported by this model: only auto"
		}
		if a.Content != "" {
			text = a.Content
		}
		if status == 0 {
			status = http.StatusInternalServerError
		}
		if a.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(a.RetryAfter))
		}
		writeError(w, status, text)
		return true
	}
	return false
}

// spoilAnswer changes the model's answer and the finish reason. The last answer is false when there is no choice at
// all.
func (a *activeFault) spoilAnswer(p *Prompt, right Answer) (answer Answer, finish string, choice bool) {
	finish = "stop"
	if len(right.Calls) > 0 {
		finish = "tool_calls"
	}
	answer = right
	cut := func() {
		if len(answer.Calls) > 0 {
			calls := append([]Call(nil), answer.Calls...)
			calls[0].Arguments = half(calls[0].Arguments)
			answer.Calls = calls
			return
		}
		answer.Text = half(answer.Text)
	}
	switch a.Mode {
	case CutAnswer:
		cut()
	case Length:
		cut()
		finish = "length"
	case FinishError:
		return Answer{}, "error", true
	case ContentFilter:
		return Answer{}, "content_filter", true
	case NoChoice:
		return Answer{}, "", false
	case WrongTool:
		return Answer{Calls: []Call{{Name: "launch_rocket", Arguments: `{"to":"moon"}`}}}, "tool_calls", true
	case ToolAnswer:
		return Answer{Calls: []Call{{Name: "read_file", Arguments: `{"path":"SOUL.md"}`}}}, "tool_calls", true
	case NoTool, Prose:
		return Answer{Text: "I had a look and think that everything is in order."}, "stop", true
	case Empty:
		return Answer{}, "stop", true
	case Thinking:
		return Answer{Text: "<think>They want something, but what?</think>"}, "stop", true
	case ThinkingOpen:
		return Answer{Text: "<think>They want something, but what?"}, "stop", true
	case ThinkingFirst:
		answer.Text = "<think>That is easy.</think>\n" + answer.Text
	case Fenced:
		answer.Text = "```json\n" + answer.Text + "\n```"
	case BareList:
		return Answer{Text: `["a","b"]`}, "stop", true
	case Say:
		if len(p.Tools) > 0 {
			return Answer{Calls: []Call{{Name: p.Tools[0], Arguments: a.Content}}}, "tool_calls", true
		}
		return Answer{Text: a.Content}, "stop", true
	}
	return answer, finish, true
}

// half cuts a text in the middle, between two characters.
func half(text string) string {
	runes := []rune(text)
	return string(runes[:len(runes)/2])
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeError(w http.ResponseWriter, status int, text string) {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
		429: "rate_limit_exceeded"}[status]
	if kind == "" {
		kind = "server_error"
	}
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": text, "type": kind, "code": kind,
		"param": nil}})
}
