package mem0_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/recorded"
)

// exchange is one recorded request with the real server's answer.
type exchange struct {
	Name    string
	Note    string
	Request struct {
		Method, Path, Query string
		Headers             map[string]string
		Body                json.RawMessage
	}
	Response struct {
		Status int
		Body   any
	}
}

// leftOut has the exchanges with parts of the server that the fake does not have, or that the recording does not carry.
var leftOut = map[string]string{
	"err_auth_register_closed":          "accounts are not faked",
	"auth_login":                        "accounts are not faked",
	"err_auth_login_wrong_password":     "accounts are not faked",
	"err_auth_refresh_token_as_access":  "accounts are not faked",
	"err_auth_refresh_reused":           "accounts are not faked",
	"err_auth_rate_limited":             "accounts are not faked",
	"search_small_scope_in_large_table": "its 15000 rows are not in the recording",
	"reset_list_before":                 "cut in the recording",
	"list_scope_capped_1000":            "cut in the recording",
	"write_long_id":                     "cut in the recording",
	"configure_collection":              "one collection only",
	"reset_global_inventory":            "one collection only",
	"old_collection_survived_reset":     "one collection only",
	"configure_reported_after_bad":      "its values are the recording's own installation",
	"setup_get_configure":               "its values are the recording's own installation",
	"setup_openapi": "only the paths and fields that tell the surface are faked; " +
		"TestOpenAPINamesWhatTheModuleLooksFor",
}

// faultsOf is what the server was made to do wrong in an exchange.
func faultsOf(name string) mem0.Faults {
	everything := func(string) bool { return true }
	switch name {
	case "ghost_wrong_dimension", "err_wrong_dimension_verbatim":
		return mem0.Faults{Ghosts: everything}
	case "err_wrong_dimension_infer", "err_wrong_dimension_search":
		return mem0.Faults{Embedder: "unknown"}
	case "ghost_db_down_during_extraction":
		return mem0.Faults{Ghosts: everything}
	case "llm_not_json", "llm_truncated_json", "llm_bare_list":
		return mem0.Faults{LLMAnswer: "not_json"}
	case "llm_empty_text":
		return mem0.Faults{LLMAnswer: "empty_text"}
	case "err_llm_string_items":
		return mem0.Faults{LLMAnswer: "string_items"}
	case "llm_fenced_json":
		return mem0.Faults{LLMAnswer: "fenced:I play the viola."}
	case "err_llm_500", "err_llm_drop":
		return mem0.Faults{LLM: "provider_unavailable"}
	case "err_llm_429", "err_llm_429_retry_after":
		return mem0.Faults{LLM: "provider_rate_limited"}
	case "err_llm_401", "err_llm_403":
		return mem0.Faults{LLM: "provider_auth_failed"}
	case "err_llm_400":
		return mem0.Faults{LLM: "provider_bad_request"}
	case "err_embed_500_add", "err_llm_process_down_add", "err_llm_process_down_search":
		return mem0.Faults{Embedder: "provider_unavailable"}
	case "err_embed_429_search":
		return mem0.Faults{Embedder: "provider_rate_limited"}
	case "embed_500_after_extraction":
		return mem0.Faults{EmbedderAfterExtraction: true}
	case "err_db_down_search_pool_empty":
		return mem0.Faults{Database: "empty"}
	case "err_first_use_race":
		return mem0.Faults{FirstUseRace: true}
	}
	if strings.HasPrefix(name, "err_db_down") || name == "db_down_providers" {
		return mem0.Faults{Database: "dead"}
	}
	return mem0.Faults{}
}

// before are the writes that an exchange relies on and that are not in the recording.
func before(name string) (bodies []string) {
	add := func(user, run, text, more string) {
		bodies = append(bodies, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"user_id":%q,"run_id":%q%s}`,
			text, user, run, more))
	}
	switch name {
	case "concurrency_list_after_20":
		for i := range 20 {
			add("u-par-1", "u-par-1", fmt.Sprintf("Parallel note number %d: locker %d holds item%d.", i, i, i),
				fmt.Sprintf(`,"metadata":{"event_id":"p-%d"}`, i))
		}
	case "write_in_doubt_later":
		add("u-doubt-1", "r-doubt-1", "I renewed my passport.", `,"metadata":{"event_id":"e-doubt"}`)
	case "concurrency_duplicate_race":
		for range 8 {
			add("u-par-3", "r-par-3", "My lucky number is forty two.", "")
		}
	case "err_llm_process_down_add":
		add("u-maria-5f0c9d1e7a3b42c8", "r-maria_c1-5f0c9d1e7a3b42c8", "I ride a blue bicycle to work.", "")
	case "get_reserved_metadata":
		add("u-meta-1", "r-meta-1", "I once had a red bicycle.",
			`,"infer":false,"metadata":{"created_at":"long ago","updated_at":"x","hash":"mine","data":"mine","role":"wizard","attributed_to":"x"}`)
		add("u-meta-1", "r-meta-1", "I play tennis.", `,"infer":false,"metadata":{"expiration_date":"2025-01-01"}`)
	}
	return bodies
}

const (
	adminKey = "admin-key"
	userJWT  = "user-jwt"
)

// TestFakeAnswersAsTheRecordedServer replays every recorded request against the fake, in order, and compares status,
// shape and meaning.
func TestFakeAnswersAsTheRecordedServer(t *testing.T) {
	today := time.Date(2026, 11, 21, 4, 25, 0, 0, time.UTC)
	s := mem0.New(mem0.Options{AdminKey: adminKey, Bearer: map[string]string{userJWT: "user", "admin-jwt": "admin"},
		Keys: []string{"m0sk_1"},
		Now:  func() time.Time { today = today.Add(time.Millisecond); return today }})
	ids := map[string]string{} // recorded id to the fake's
	replayed := 0
	for _, e := range recorded.Read[exchange](t, "testdata/exchanges.jsonl") {
		if leftOut[e.Name] != "" {
			continue
		}
		replayed++
		t.Run(e.Name, func(t *testing.T) {
			s.Set(mem0.Faults{Doubles: e.Name == "concurrency_duplicate_race"})
			for _, body := range before(e.Name) {
				_, status := ask(t, s, "POST", "/memories", body, map[string]string{"X-API-Key": adminKey})
				require.Equal(t, 200, status)
			}
			if e.Name == "get_reserved_metadata" {
				ids[idIn(e.Request.Path)] = lastID(s, "I once had a red bicycle.")
			}
			if e.Name == "history_after_global_reset" {
				ids[idIn(e.Request.Path)] = "00000000-0000-4000-8000-000000000000"
			}
			if e.Name == "err_first_use_race" {
				s = mem0.New(mem0.Options{AdminKey: adminKey})
			}
			s.Set(faultsOf(e.Name))
			path := e.Request.Path
			if id := idIn(path); ids[id] != "" {
				path = strings.Replace(path, id, ids[id], 1)
			}
			if e.Request.Query != "" {
				path += "?" + e.Request.Query
			}
			answer, status := ask(t, s, e.Request.Method, path, bodyOf(e), headersOf(e))
			assert.Equal(t, e.Response.Status, status, "status; the fake answered %v", answer)
			if note, cut := e.Response.Body.(string); cut && strings.Contains(note, "cut in") {
				return
			}
			same(t, e, answer)
			learn(ids, e.Response.Body, answer)
		})
	}
	assert.Greater(t, replayed, 230)
}

func idIn(path string) string {
	if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "memories" {
		return parts[2]
	}
	return ""
}

func lastID(s *mem0.OSS, text string) string {
	rows := s.Rows()
	for _, r := range slices.Backward(rows) {
		if r["memory"] == text {
			return r["id"].(string)
		}
	}
	return ""
}

// bodyOf is the body as it was sent: texts cut in the recording are long again, texts that are no JSON value stand as
// strings.
func bodyOf(e exchange) string {
	body := string(e.Request.Body)
	if text := ""; json.Unmarshal(e.Request.Body, &text) == nil && e.Name != "err_write_text_plain" {
		return text
	}
	return strings.ReplaceAll(body, " ...(cut in this recording)", strings.Repeat(" tea and milk", 4000))
}

func headersOf(e exchange) map[string]string {
	headers := map[string]string{}
	for name, value := range e.Request.Headers {
		switch {
		case name == "x-api-key" && (e.Name == "err_auth_wrong_key" || strings.HasSuffix(e.Name, "bad_key")):
			value = "wrong"
		case name == "x-api-key" && strings.HasPrefix(e.Name, "auth_m0sk"):
			value = "m0sk_1"
		case name == "x-api-key":
			value = adminKey
		case strings.HasPrefix(value, "Bearer") && strings.Contains(e.Name, "bad_bearer"):
			value = "Bearer wrong"
		case strings.HasPrefix(value, "Bearer") && e.Name == "auth_bearer_ok":
			value = "Bearer admin-jwt"
		case strings.HasPrefix(value, "Bearer"):
			value = "Bearer " + userJWT
		}
		headers[name] = value
	}
	return headers
}

func ask(t *testing.T, h http.Handler, method, path, body string, headers map[string]string) (any, int) {
	t.Helper()
	r := httptest.NewRequest(method, "http://mem0"+path, strings.NewReader(body))
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer any
	if json.Unmarshal(w.Body.Bytes(), &answer) != nil {
		answer = w.Body.String()
	}
	return answer, w.Code
}

// learn keeps which of the fake's ids replaces which recorded one.
func learn(ids map[string]string, recorded, answer any) {
	r, a := resultsOf(recorded), resultsOf(answer)
	for i := range min(len(r), len(a)) {
		if from, ok := r[i]["id"].(string); ok && r[i]["memory"] == a[i]["memory"] && ids[from] == "" {
			ids[from], _ = a[i]["id"].(string)
		}
	}
}

func resultsOf(answer any) (list []map[string]any) {
	object, _ := answer.(map[string]any)
	results, _ := object["results"].([]any)
	for _, r := range results {
		if item, ok := r.(map[string]any); ok {
			list = append(list, item)
		}
	}
	return list
}

// same compares shape and meaning. Scores, ids and times are the server's own and compared by type only.
func same(t *testing.T, e exchange, answer any) {
	t.Helper()
	want := resultsOf(e.Response.Body)
	got := resultsOf(answer)
	switch {
	case strings.HasPrefix(e.Name, "entities"):
		assert.Equal(t, len(e.Response.Body.([]any)) > 0, len(answer.([]any)) > 0)
		return
	case e.Request.Path == "/search" && len(want) > 0:
		assert.Equal(t, meaning(t, e, want), meaning(t, e, got))
	case cut(e.Response.Body):
		assert.Subset(t, texts(got), texts(want))
	case strings.HasPrefix(e.Request.Path, "/memories") && want != nil:
		assert.Equal(t, texts(want), texts(got))
	default:
		assert.Equal(t, masked(e.Response.Body), masked(answer))
		return
	}
	for i := range min(len(want), len(got)) {
		if want[i]["memory"] == got[i]["memory"] {
			assert.Equal(t, shape(want[i]), shape(got[i]), "item %d: %v", i, want[i]["memory"])
		}
	}
}

// cut reports whether the recording shows only a part of a list, with a note in the place of the rest.
func cut(answer any) bool {
	object, _ := answer.(map[string]any)
	results, _ := object["results"].([]any)
	return slices.ContainsFunc(results, func(r any) bool { _, note := r.(string); return note })
}

// meaning of a search: with threshold 0 the rows that fit the filter, otherwise the best one.
func meaning(t *testing.T, e exchange, items []map[string]any) []string {
	t.Helper()
	var q struct {
		Threshold *float64
		TopK      *int `json:"top_k"`
	}
	require.NoError(t, json.Unmarshal(e.Request.Body, &q))
	all := texts(items)
	if q.Threshold != nil && *q.Threshold == 0 && q.TopK == nil {
		sort.Strings(all)
		return all
	}
	return all[:min(len(all), 1)]
}

func texts(items []map[string]any) []string {
	list := []string{}
	for _, i := range items {
		list = append(list, fmt.Sprint(i["memory"]))
	}
	return list
}

// shape is a value with its texts and numbers blanked.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = shape(value)
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, shape(value))
		}
		return out
	case string:
		return "text"
	case float64:
		return 0
	}
	return v
}

var anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// masked is an answer without what differs in every run.
func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			switch key {
			case "id", "memory_id", "request_id", "created_at", "updated_at", "hash", "ctx":
				out[key] = shape(value)
			case "loc":
				out[key] = fmt.Sprint(value)[:3]
			case "input":
			default:
				if key == "detail" && strings.Contains(fmt.Sprint(value), "not bundled") {
					value = "not bundled"
				}
				if text, ok := value.(string); ok {
					value = anID.ReplaceAllString(text, "ID")
				}
				out[key] = masked(value)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, masked(value))
		}
		return out
	}
	return v
}

func TestOpenAPINamesWhatTheModuleLooksFor(t *testing.T) {
	for _, e := range recorded.Read[exchange](t, "testdata/exchanges.jsonl") {
		if e.Name != "setup_openapi" {
			continue
		}
		answer, status := ask(t, mem0.New(mem0.Options{AdminKey: adminKey}), "GET", "/openapi.json", "", nil)
		require.Equal(t, e.Response.Status, status)
		recorded, faked := e.Response.Body.(map[string]any), answer.(map[string]any)
		for path := range faked["paths"].(map[string]any) {
			assert.Contains(t, recorded["paths"], path)
		}
		search := func(doc map[string]any) map[string]any {
			schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
			return schemas["SearchRequest"].(map[string]any)["properties"].(map[string]any)
		}
		for field := range search(recorded) {
			assert.Contains(t, search(faked), field)
		}
		assert.NotContains(t, search(faked), "rerank")
	}
}
