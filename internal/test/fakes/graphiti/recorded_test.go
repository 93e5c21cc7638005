package graphiti_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/recorded"
)

// exchange is one line of testdata/recorded.jsonl: what release 0.29.3 answered on Neo4j 5.26.2, with language model
// and embeddings answered by rules.
type exchange struct {
	Name    string
	Request struct {
		Method, Path string
		Query        map[string]any
		Headers      map[string]string
		Body         json.RawMessage
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    any
	}
}

// idPairs has ids of the recording, and the ids of this fake that replace them.
type idPairs map[string]string

func (o idPairs) in(text string) string {
	for theirs, ours := range o {
		text = strings.ReplaceAll(text, theirs, ours)
	}
	return text
}

// TestRecordedExchanges plays the recorded requests and compares status and answer: errors word for word, answers by
// their shape, facts and episodes by what does not differ between two runs. What a search finds depends on the
// embeddings; its first fact must be found here too.
func TestRecordedExchanges(t *testing.T) {
	fake := graphiti.New(graphiti.Options{Now: func() time.Time {
		return time.Date(2026, 11, 21, 4, 20, 0, 0, time.UTC)
	}})
	rest, mcp := fake.REST(), fake.MCP()
	ids := idPairs{}
	list := recorded.Read[exchange](t, "testdata/recorded.jsonl")
	for _, x := range list {
		t.Run(x.Name, func(t *testing.T) {
			fake.Hold(strings.HasSuffix(x.Name, ".pending") || x.Name == "write.one_turn" ||
				x.Name == "mcp.add_memory.message")
			if strings.HasSuffix(x.Name, "add_400_once") {
				fake.FailExtraction(1)
			}
			handler := rest
			if strings.HasPrefix(x.Name, "mcp.") {
				handler = mcp
			}
			w := play(t, handler, &x, ids)
			require.Equal(t, x.Response.Status, w.Code, w.Body.String())
			if id := w.Header().Get("Mcp-Session-Id"); id != "" && x.Name == "mcp.initialize" {
				ids[x.Response.Headers["mcp-session-id"]] = id
			}
			kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
			if want := x.Response.Headers["content-type"]; want != "" && x.Response.Body != "" {
				assert.Equal(t, strings.Split(want, ";")[0], kind)
			}
			recorded, err := json.Marshal(x.Response.Body)
			require.NoError(t, err)
			theirs, ours := value(ids.in(string(recorded))), value(w.Body.String())
			if x.Response.Status >= 400 {
				if !strings.Contains(fmt.Sprint(theirs), "JSON decode error") &&
					!strings.Contains(fmt.Sprint(theirs), "Validation error") &&
					!strings.Contains(fmt.Sprint(theirs), "Parse error") {
					assert.Equal(t, theirs, ours)
				}
				return
			}
			learn(ids, theirs, ours)
			sameShape(t, "", theirs, ours)
			if x.Name != "mcp.add_triplet" { // whose only date is the time of the call
				sameItems(t, theirs, ours)
			}
		})
	}
	require.Greater(t, len(list), 120)
}

func play(t *testing.T, h http.Handler, x *exchange, ids idPairs) *httptest.ResponseRecorder {
	t.Helper()
	body := string(x.Request.Body)
	var text string
	if json.Unmarshal(x.Request.Body, &text) == nil { // a body that is no JSON is recorded as text
		body = text
	}
	query := url.Values{}
	for k, v := range x.Request.Query {
		query.Set(k, fmt.Sprint(v))
	}
	request := httptest.NewRequest(x.Request.Method, ids.in(x.Request.Path)+"?"+query.Encode(),
		strings.NewReader(ids.in(body)))
	request.Host = "127.0.0.1:8113"
	for name, v := range x.Request.Headers {
		if name == "host" {
			request.Host = v
		} else {
			request.Header.Set(name, ids.in(v))
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w
}

// value is an answer as JSON: that of a server-sent event is its data, that of a tool the JSON in its text.
func value(text string) any {
	var v any
	for _, line := range strings.Split(text, "\r\n") {
		if data, found := strings.CutPrefix(line, "data: "); found {
			text = data
		}
	}
	if json.NewDecoder(strings.NewReader(text)).Decode(&v) != nil {
		return text
	}
	if inner, ok := v.(string); ok && inner != text {
		return value(inner)
	}
	if message, ok := v.(map[string]any); ok && message["jsonrpc"] != nil {
		delete(message, "id")
		if result, ok := message["result"].(map[string]any); ok && result["content"] != nil {
			content, _ := result["content"].([]any)
			first, _ := content[0].(map[string]any)
			if said, ok := first["text"].(string); ok && result["isError"] == false {
				return value(said)
			}
		}
	}
	return v
}

// lists are the items of an answer, by kind.
func lists(v any) map[string][]any {
	found := map[string][]any{}
	switch v := v.(type) {
	case []any:
		found["episodes"] = v
	case map[string]any:
		for _, kind := range []string{"facts", "nodes", "episodes", "edges"} {
			if list, ok := v[kind].([]any); ok {
				found[kind] = list
			}
		}
		if v["fact"] != nil && v["uuid"] != nil {
			found["facts"] = []any{v}
		}
	}
	return found
}

// handle is what an item is known by in both runs: a fact's text, an episode's or an entity's name.
func handle(kind string, item any) string {
	o, _ := item.(map[string]any)
	if kind == "facts" || kind == "edges" {
		return fmt.Sprint(o["fact"])
	}
	return fmt.Sprint(o["name"], o["group_id"])
}

// learn keeps which of our ids replace recorded ones.
func learn(ids idPairs, theirs, ours any) {
	mine := lists(ours)
	for kind, list := range lists(theirs) {
		for _, a := range list {
			for _, b := range mine[kind] {
				if x, y := a.(map[string]any), b.(map[string]any); handle(kind, a) == handle(kind, b) {
					ids[fmt.Sprint(x["uuid"])] = fmt.Sprint(y["uuid"])
				}
			}
		}
	}
}

// sameShape: objects with the same keys, values of the same types. A list is compared by its first item; null may stand
// for a string.
func sameShape(t *testing.T, at string, theirs, ours any) {
	t.Helper()
	switch a := theirs.(type) {
	case map[string]any:
		b, ok := ours.(map[string]any)
		if !assert.True(t, ok, "%s: want an object, got %v", at, ours) {
			return
		}
		if strings.HasSuffix(at, "/capabilities") || strings.HasSuffix(at, "/attributes") {
			return
		}
		for key := range a {
			if assert.Contains(t, b, key, at) {
				sameShape(t, at+"/"+key, a[key], b[key])
			}
		}
		for key := range b {
			assert.Contains(t, a, key, at+": not in the recording")
		}
	case []any:
		b, ok := ours.([]any)
		if assert.True(t, ok, "%s: want a list, got %v", at, ours) && len(a) > 0 && len(b) > 0 {
			sameShape(t, at+"/0", a[0], b[0])
		}
	case nil:
	default:
		if ours != nil {
			assert.IsType(t, theirs, ours, at)
		}
	}
}

// sameItems: the first recorded item is found here too, and what both found says the same of its times.
func sameItems(t *testing.T, theirs, ours any) {
	t.Helper()
	mine := lists(ours)
	for kind, list := range lists(theirs) {
		for i, a := range list {
			x := a.(map[string]any)
			var y map[string]any
			for _, b := range mine[kind] {
				if handle(kind, a) == handle(kind, b) {
					y = b.(map[string]any)
				}
			}
			if y == nil {
				assert.NotZero(t, i, "%s: the first of the recorded items is not found: %v", kind, x)
				continue
			}
			for _, field := range []string{"fact", "valid_at", "invalid_at", "content", "source", "source_description",
				"group_id"} {
				assert.Equal(t, x[field], y[field], "%s of %s", field, handle(kind, a))
			}
			assert.Equal(t, x["expired_at"] == nil, y["expired_at"] == nil, "expired_at of %s", handle(kind, a))
		}
		if len(list) == 0 {
			assert.Empty(t, mine[kind], "the recording found nothing")
		}
	}
}
