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

// stub is a model that says "Noted.", by the APIs of Anthropic (/v1/messages) and OpenAI (/v1/responses), and keeps
// what it was asked.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	paths  []string
}

func newStub(t *testing.T) *stub {
	s := new(stub)
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
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
			`{"type":"response.output_item.done","item":{"type":"message","role":"assistant","id":"m1","content":[{"type":"output_text","text":"Noted."}]}}`,
			`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	default:
		http.NotFound(w, r)
	}
}

const messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"stub","content":[],` +
	`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`

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
