package memos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/recorded"
)

// exchange is one recorded request with its answer.
type exchange struct {
	Name, Server string
	Request      struct {
		Method, Path string
		Query        map[string]any
		Headers      map[string]string
		Body         json.RawMessage
	}
	Response struct {
		Status int
		Body   json.RawMessage
	}
}

// unprepared are exchanges whose memories were written by requests that were not recorded, or by rules of an LLM that
// the fake does not have: for these the fake may return none although the recording has some. Their status, message and
// shape are still compared.
var unprepared = strings.Fields(`search_after_async_info_filter get_memory_after_failures inventory_before_feedback feedback_update inventory_after_feedback inventory_archived
 inventory_after_foreign_delete inventory_after_filter_delete inventory_after_recover exist_after_soft_reset search_mixture_after_reset duplicate_write_inventory
 db_back_search community_inventory_tool community_inventory_skill community_inventory_embed_500 iso_community_search_a iso_community_inventory
 community_inventory_after_delete_in inventory_llm_500 inventory_embed_500 status_after_garbage redis_back_status default_bucket
 iso_community_search_user_a_cube_b search_wrong_auth search_relativity_0_2 search_filter_or search_chinese search_emoji feedback_unrelated
 search_empty_cube_string search_filter_project_id search_filter_session search_memory_type_pref search_rerank_false_threshold`)

// wording are messages that the real server words by its own libraries; the fake says the beginning.
var wording = strings.Fields(`malformed_json not_an_object add_tool_without_id add_user_empty add_cube_empty db_down_exist db_down_get_memory db_down_reset`)

func TestTheFakeAnswersAsTheRecordedServerDid(t *testing.T) {
	servers := map[string]*memos.Server{}
	now := time.Date(2026, 11, 21, 4, 24, 0, 0, time.UTC)
	compared, items := 0, 0
	ids := map[string]string{} // recorded memory id to the fake's
	for _, x := range recorded.Read[exchange](t, "testdata/recorded.jsonl") {
		s := servers[x.Server]
		if s == nil {
			s = memos.New(memos.Options{Now: func() time.Time {
				return now
			}, TaskDelay: 3 * time.Second, NoRedis: strings.Contains(x.Server, "no Redis"),
				Unshared: strings.Contains(x.Server, "SHARED_DB=false"),
				Flavour:  map[bool]memos.Flavour{true: memos.Community}[strings.Contains(x.Server, "community")]})
			servers[x.Server] = s
		}
		s.Break(memos.Faults{DatabaseDown: strings.HasPrefix(x.Name, "db_down"),
			RedisDown:    strings.HasPrefix(x.Name, "redis_down"),
			LLMDown:      strings.HasSuffix(x.Name, "llm_500") || x.Name == "feedback_llm_down",
			LLMProse:     strings.HasSuffix(x.Name, "llm_garbage"),
			EmbedderDown: strings.HasSuffix(x.Name, "embed_500")})
		if x.Name == "wait_idle" {
			now = now.Add(5 * time.Second)
		}
		ok := t.Run(x.Name, func(t *testing.T) {
			status, body := send(t, s, &x, ids)
			require.Equal(t, x.Response.Status, status, "%s", body)
			if status == http.StatusTemporaryRedirect {
				return
			}
			want, got := decode(t, x.Response.Body), decode(t, body)
			learn(ids, want, got)
			if message, ok := want["message"].(string); ok && !slices.Contains(wording, x.Name) {
				assert.Equal(t, translate(ids, message), got["message"])
			}
			if slices.Contains(wording, x.Name) {
				assert.Equal(t, "code detail message data", keysIn(want, "code", "detail", "message", "data"),
					"the answer of another server")
				assert.NotEmpty(t, got["message"])
				return
			}
			a, b := shape(want), shape(got)
			for path, types := range a {
				if found, both := b[path]; both {
					assert.Equal(t, types, found, path)
				} else if !slices.Contains(unprepared, x.Name) && !optional(path) {
					assert.Fail(t, "the recorded answer has what the fake's has not", "%s %s", path, types)
				}
			}
			for path := range b {
				if _, both := a[path]; !both && !optional(path) && !emptyIn(want) {
					assert.Fail(t, "the fake's answer has what the recorded one has not", "%s", path)
				}
			}
			if emptyIn(want) {
				assert.True(t, emptyIn(got), "recorded empty: %s", body)
			} else if !slices.Contains(unprepared, x.Name) {
				assert.False(t, emptyIn(got), "recorded with memories: %s", body)
			}
			items += len(b)
		})
		if ok {
			compared++
		}
	}
	assert.GreaterOrEqual(t, compared, 160)
	assert.GreaterOrEqual(t, items, 1500, "paths compared")
}

// learn pairs the ids of two receipts of an add, as far as both list as many.
func learn(ids map[string]string, want, got map[string]any) {
	a, _ := want["data"].([]any)
	b, _ := got["data"].([]any)
	for i := range min(len(a), len(b)) {
		x, _ := a[i].(map[string]any)
		y, _ := b[i].(map[string]any)
		from, ok1 := x["memory_id"].(string)
		if to, ok2 := y["memory_id"].(string); ok1 && ok2 {
			ids[from] = to
		}
	}
}

func translate(ids map[string]string, text string) string {
	for from, to := range ids {
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

func send(t *testing.T, s *memos.Server, x *exchange, ids map[string]string) (int, []byte) {
	target := translate(ids, x.Request.Path)
	query := url.Values{}
	for key, value := range x.Request.Query {
		query.Set(key, fmt.Sprint(value))
	}
	body := []byte(translate(ids, string(x.Request.Body)))
	var quoted string
	if json.Unmarshal(body, &quoted) == nil && quoted != "" {
		body = []byte(quoted)
	}
	if x.Name == "invalid_utf8" {
		body = []byte("{\"user_id\":\"u\",\"query\":\"\xff\xfe\"}")
	}
	r := httptest.NewRequest(x.Request.Method, target+"?"+query.Encode(), bytes.NewReader(body))
	for name, value := range x.Request.Headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

func decode(t *testing.T, body []byte) map[string]any {
	var v map[string]any
	require.NoError(t, json.Unmarshal(body, &v), "%s", body)
	return v
}

func keysIn(v map[string]any, keys ...string) string {
	return strings.Join(slices.DeleteFunc(keys, func(k string) bool {
		_, ok := v[k]
		return !ok && k != "detail"
	}), " ")
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-`)

// shape is every path of a value with the types found there. Items of a list share a path, metadata goes by the
// memory's type, and keys that are ids are one.
func shape(v any) map[string]string {
	found := map[string]map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		kind := "null"
		switch v := v.(type) {
		case map[string]any:
			kind = "object"
			for key, value := range v {
				if uuid.MatchString(key) || strings.HasPrefix(key, "mh1-") {
					key = "ID"
				}
				at := path + "." + key
				if m, ok := value.(map[string]any); ok && key == "metadata" {
					at += fmt.Sprintf("(%v)", m["memory_type"])
				}
				walk(at, value)
			}
		case []any:
			kind = "list"
			for _, one := range v {
				walk(path+"[]", one)
			}
		case string:
			kind = "text"
		case float64:
			kind = "number"
		case bool:
			kind = "truth"
		}
		if found[path] == nil {
			found[path] = map[string]bool{}
		}
		found[path][kind] = true
	}
	walk("", v)
	flat := map[string]string{}
	for path, kinds := range found {
		// Null is ignored next to another kind: a member that is null in one item may be text in another.
		var list []string
		for kind := range kinds {
			if kind != "null" || len(kinds) == 1 {
				list = append(list, kind)
			}
		}
		slices.Sort(list)
		flat[path] = strings.Join(list, "|")
	}
	return flat
}

// optional are paths that depend on what an LLM or a caller wrote, or on a type that only one of the two has here.
func optional(path string) bool {
	for _, part := range []string{".nb_", ".mh_", ".project_id", ".manager_user_id", "pref_string", "pref_note",
		".detail", ".is_fast", ".covered_history", ".tags[]", ".sources[]", ".embedding",
		".preference", ".reasoning", ".topic", ".experience", ".correctness", ".tool_used_status", ".dialog_id",
		".original_text", "(PreferenceMemory)", "(ToolTrajectoryMemory)", "(SkillMemory)",
		"(WorkingMemory)", "(LongTermMemory)", "(UserMemory)", ".nodes", ".edges"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return strings.Contains(path, ".memories[]") || strings.Contains(path, ".data[]")
}

// emptyIn reports whether an answer's data lists nothing.
func emptyIn(v map[string]any) bool {
	groups, isGroups := v["data"].(map[string]any)
	if !isGroups {
		list, isList := v["data"].([]any)
		return v["data"] == nil || isList && len(list) == 0
	}
	for _, g := range groups {
		list, _ := g.([]any)
		for _, one := range list {
			group, _ := one.(map[string]any)
			if memories, _ := group["memories"].([]any); len(memories) > 0 {
				return false
			}
		}
	}
	_, search := groups["text_mem"]
	return search
}
