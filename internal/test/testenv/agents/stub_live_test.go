//go:build live && linux

package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// stub is a model that says "Noted.", by the APIs of Anthropic (/v1/messages) and OpenAI (/v1/responses and
// /v1/chat/completions), and keeps what it was asked.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	paths  []string
	// What the model does with chat completions: it calls a tool before it answers (call with its arguments, or one
	// that reads a folder), fails, or waits until wait is closed, if it is not nil.
	tool, fails, waiting bool
	call, arguments      string
	wait                 chan struct{}
	// tokens is what the model says that the next request was long.
	tokens int
}

func newStub(t *testing.T) *stub {
	s := new(stub)
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/v1/chat/completions" {
		s.chat(w, string(body))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = append(s.paths, r.Method+" "+r.URL.Path)
	switch r.URL.Path {
	case "/v1/messages":
		s.bodies = append(s.bodies, string(body))
		events(w, messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Noted."}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`)
	case "/v1/responses":
		s.bodies = append(s.bodies, string(body))
		events(w, `{"type":"response.created","response":{"id":"r1"}}`,
			`{"type":"response.output_item.done","item":{"type":"message","role":"assistant","id":"m1",`+
				`"content":[{"type":"output_text","text":"Noted."}]}}`,
			`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,`+
				`"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	default:
		http.NotFound(w, r)
	}
}

// chat answers as a model of OpenAI's chat completions.
func (s *stub) chat(w http.ResponseWriter, body string) {
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	wait := s.wait
	s.waiting = wait != nil
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		http.Error(w, `{"error":{"message":"the model is down","type":"server_error"}}`, http.StatusBadRequest)
		return
	}
	delta, reason := `{"role":"assistant","content":"Noted."}`, "stop"
	if s.tool {
		name, arguments := s.call, s.arguments
		if name == "" {
			name, arguments = s.toolOf(body), `{"path":"."}`
		}
		delta = fmt.Sprintf(`{"role":"assistant","content":"Let me look.","tool_calls":[{"index":0,"id":"c1",`+
			`"type":"function","function":{"name":%q,"arguments":%q}}]}`, name, arguments)
		reason = "tool_calls"
	}
	tokens := max(s.tokens, 5)
	s.tool, s.call, s.tokens = false, "", 0
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []string{`"delta":` + delta, `"delta":{},"finish_reason":"` + reason + `"`} {
		fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","model":"stub","choices":[{"index":0,%s}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":2,"total_tokens":%d}}`+"\n\n", choice, tokens, tokens+2)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// toolOf is a tool of the request that reads a folder.
func (s *stub) toolOf(body string) string {
	for _, name := range []string{"ls", "list", "read"} {
		if strings.Contains(body, `"name":"`+name+`"`) {
			return name
		}
	}
	return "none"
}

func (s *stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// toolFirst lets the next answer be the call of a tool.
func (s *stub) toolFirst(call bool) { s.set(func() { s.tool = call }) }

// callFirst makes the next answer a call of this tool; long is the number of prompt tokens that the answer reports.
func (s *stub) callFirst(name, arguments string, long int) {
	s.set(func() { s.tool, s.call, s.arguments, s.tokens = true, name, arguments, long })
}

// fail lets all answers be errors.
func (s *stub) fail(fails bool) { s.set(func() { s.fails = fails }) }

// hold lets answers wait for release; held reports whether one does.
func (s *stub) hold()    { s.set(func() { s.wait = make(chan struct{}) }) }
func (s *stub) release() { s.set(func() { close(s.wait); s.wait, s.waiting = nil, false }) }
func (s *stub) held() (waits bool) {
	s.set(func() { waits = s.waiting })
	return waits
}

const messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",` +
	`"model":"stub","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`

// events writes server-sent events, each named by its type.
func events(w http.ResponseWriter, texts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, text := range texts {
		var event struct{ Type string }
		_ = json.Unmarshal([]byte(text), &event)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event.Type, text)
	}
}

// take gives the requests since the last take, as JSON.
func (s *stub) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	bodies := s.bodies
	s.bodies = nil
	return bodies
}

var contextElement = regexp.MustCompile(`(?s)<memory-context .*?</memory-context>`)

// contexts are all memory contexts in a request.
func contexts(t *testing.T, body string) string {
	var request any
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	return strings.Join(contextElement.FindAllString(texts(request), -1), "\n")
}

// texts are all texts in a JSON value.
func texts(value any) (all string) {
	switch v := value.(type) {
	case string:
		return v + "\n"
	case []any:
		for _, inner := range v {
			all += texts(inner)
		}
	case map[string]any:
		for _, inner := range v {
			all += texts(inner)
		}
	}
	return all
}
