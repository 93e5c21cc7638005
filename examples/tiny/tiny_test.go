package tiny_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/examples/tiny"
)

// ask sends a request and gives status and body.
func ask(t *testing.T, b *tiny.Backend, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	require.True(t, json.Valid(text), "%s", text)
	return w.Code, strings.TrimSpace(string(text))
}

func TestScopesAreKeptApartAndSearched(t *testing.T) {
	b := &tiny.Backend{}
	for _, scope := range []string{"a", "b"} {
		status, said := ask(t, b, http.MethodPut, "/scopes/"+scope, "")
		assert.Equal(t, 200, status)
		assert.JSONEq(t, `{"existed":false}`, said)
	}
	_, said := ask(t, b, http.MethodPut, "/scopes/a", "")
	assert.JSONEq(t, `{"existed":true}`, said)
	status, said := ask(t, b, http.MethodPost, "/scopes/a/events",
		`{"event_id":"e1","text":"My cat is called Zorvex.","labels":{"context":"home"},"session":"s1"}`)
	assert.Equal(t, 201, status)
	assert.JSONEq(t, `{"id":"m1","status":"stored"}`, said)
	ask(t, b, http.MethodPost, "/scopes/a/events", `{"event_id":"e2","text":"I have a cat.","session":"s2"}`)
	ask(t, b, http.MethodPost, "/scopes/b/events", `{"event_id":"e3","text":"My cat is called Quilbri."}`)

	_, said = ask(t, b, http.MethodPost, "/scopes/a/search", `{"query":"what is my CAT called"}`)
	assert.JSONEq(t, `{"items":[
		{"id":"m1","event_id":"e1","text":"My cat is called Zorvex.","type":"note","labels":{"context":"home"},"session":"s1","score":0.8},
		{"id":"m2","event_id":"e2","text":"I have a cat.","type":"note","session":"s2","score":0.2}],"total":2}`, said)
	for query, want := range map[string]string{
		`{"query":"cat","limit":1}`:                     `"total":2`,
		`{"query":"cat","labels":{"context":"home"}}`:   `"id":"m1"`,
		`{"query":"cat","session":"s2"}`:                `"id":"m2"`,
		`{"query":"nothing of that"}`:                   `{"items":[],"total":0}`,
		`{"query":"cat","labels":{"context":"office"}}`: `{"items":[],"total":0}`,
	} {
		_, said = ask(t, b, http.MethodPost, "/scopes/a/search", query)
		assert.Contains(t, said, want, query)
		assert.LessOrEqual(t, strings.Count(said, `"event_id"`), 1, query)
	}
	_, said = ask(t, b, http.MethodGet, "/scopes/a/events?event_id=e2", "")
	assert.Contains(t, said, `"id":"m2"`)
	assert.NotContains(t, said, "Zorvex")
	assert.NotContains(t, said, "score")
}

func TestScopesAreRemoved(t *testing.T) {
	b := &tiny.Backend{}
	for _, scope := range []string{"run-a", "run-b", "other"} {
		ask(t, b, http.MethodPut, "/scopes/"+scope, "")
		ask(t, b, http.MethodPost, "/scopes/"+scope+"/events", `{"event_id":"e","text":"x"}`)
	}
	_, said := ask(t, b, http.MethodDelete, "/scopes/run-a", "")
	assert.JSONEq(t, `{"removed":1}`, said)
	assert.Equal(t, []string{"other", "run-b"}, b.Scopes())
	_, said = ask(t, b, http.MethodDelete, "/scopes?prefix=run-", "")
	assert.JSONEq(t, `{"removed":1}`, said)
	assert.Len(t, b.Items("other"), 1)
	assert.Equal(t, "DELETE /scopes?prefix=run-", b.Requests()[len(b.Requests())-1])
}

func TestAQueueStoresWhenItsStatusWasAskedOftenEnough(t *testing.T) {
	b := &tiny.Backend{QueueLooks: 2}
	ask(t, b, http.MethodPut, "/scopes/a", "")
	status, said := ask(t, b, http.MethodPost, "/scopes/a/events", `{"event_id":"e","text":"x"}`)
	assert.Equal(t, 202, status)
	assert.JSONEq(t, `{"id":"m1","status":"queued"}`, said)
	for _, pending := range []string{`{"pending":1}`, `{"pending":0}`} {
		assert.Empty(t, b.Items("a"))
		_, said = ask(t, b, http.MethodGet, "/scopes/a/status", "")
		assert.JSONEq(t, pending, said)
	}
	assert.Len(t, b.Items("a"), 1)
}

func TestWhatCannotBeDoneIsAnError(t *testing.T) {
	b := &tiny.Backend{}
	ask(t, b, http.MethodPut, "/scopes/a", "")
	for _, tt := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/scopes/none/events", `{}`, 404, "no such scope"},
		{"POST", "/scopes/none/search", `{}`, 404, "no such scope"},
		{"GET", "/scopes/none/events", "", 404, "no such scope"},
		{"GET", "/scopes/none/status", "", 404, "no such scope"},
		{"DELETE", "/scopes/none", "", 404, "no such scope"},
		{"POST", "/scopes/a/events", `{`, 400, "unexpected EOF"},
		{"POST", "/scopes/a/search", `[]`, 400, "cannot unmarshal"},
		{"GET", "/elsewhere", "", 404, "no such path"},
	} {
		status, said := ask(t, b, tt.method, tt.path, tt.body)
		assert.Equal(t, tt.status, status, "%s %s", tt.method, tt.path)
		assert.Contains(t, said, tt.says)
	}
}
