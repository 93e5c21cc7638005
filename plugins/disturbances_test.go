package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/timelapse"
	"github.com/memhost/memhost/plugins"
)

// disturbance is a way in which a backend's answer can be damaged. spoil returns the damaged body, and whether it
// applies to it.
type disturbance struct {
	name  string
	spoil func(body []byte) ([]byte, bool)
}

// disturbances are answers of proxies, of models whose output a backend passes on, and of future versions. None of them
// is a success of the backend.
func disturbances() []disturbance {
	always := func(text string) func([]byte) ([]byte, bool) {
		return func([]byte) ([]byte, bool) { return []byte(text), true }
	}
	each := func(change func(any) (any, bool)) func([]byte) ([]byte, bool) {
		return func(body []byte) ([]byte, bool) {
			var v any
			if json.Unmarshal(body, &v) != nil {
				return nil, false
			}
			hits := 0
			out, _ := json.Marshal(replaceMatches(v, change, &hits))
			return out, hits > 0
		}
	}
	return []disturbance{
		{"nothing", always("")},
		{"prose", always("I am sorry, I cannot help with that.")},
		{"a page", always("<!doctype html><html><body>Bad gateway</body></html>")},
		{"null", always("null")},
		{"a number", always("7")},
		{"a text", always(`"ok"`)},
		{"a list", always("[1,2]")},
		{"an empty object", always("{}")},
		{"an error", always(`{"error":{"code":503,"message":"upstream connect error"}}`)},
		{"half", func(body []byte) ([]byte, bool) { return body[:len(body)/2], len(body) > 3 }},
		{"all but the end", func(body []byte) ([]byte, bool) { return body[:max(0, len(body)-1)], len(body) > 1 }},
		{"twice", func(body []byte) ([]byte, bool) { return append(slices.Clone(body), body...), len(body) > 1 }},
		{"not UTF-8", func(body []byte) ([]byte, bool) {
			at := strings.IndexByte(string(body), '"')
			return []byte(string(body[:at+1]) + "\xff" + string(body[at+1:])), at >= 0
		}},
		{"null for each list", each(func(v any) (any, bool) { _, is := v.([]any); return nil, is })},
		{"an object for each list", each(func(v any) (any, bool) { _, is := v.([]any); return map[string]any{}, is })},
		{"a text for each object in a list", each(func(v any) (any, bool) {
			list, is := v.([]any)
			out := make([]any, len(list))
			for i := range list {
				out[i] = "text"
			}
			return out, is && len(list) > 0
		})},
		{"a number for each text", each(func(v any) (any, bool) { _, is := v.(string); return 7, is })},
	}
}

// replaceMatches applies change to a value wherever it matches, outermost first.
func replaceMatches(v any, change func(any) (any, bool), hits *int) any {
	if to, applies := change(v); applies {
		*hits++
		return to
	}
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = replaceMatches(v[key], change, hits)
		}
	case []any:
		for i := range v {
			v[i] = replaceMatches(v[i], change, hits)
		}
	}
	return v
}

// backend is a provider in front of its fake.
type backend struct {
	name, block string
	server      func(*timelapse.Clock) http.Handler
}

func backendsOfAll() []backend {
	flush := honcho.Mood{Flush: true, RowDelay: 300 * time.Millisecond, WorkDelay: time.Second, PurgeDelay: time.Second}
	return []backend{
		{"mem0", `"infer":true`, func(*timelapse.Clock) http.Handler { return mem0.New(mem0.Options{}) }},
		{"mem0", `"infer":false`, func(*timelapse.Clock) http.Handler { return mem0.New(mem0.Options{}) }},
		{"mem0", `"api":"platform"`, func(*timelapse.Clock) http.Handler { return &mem0.Platform{} }},
		{"memos", `"add_mode":"sync/fast","graph_store":"neo4j"`, func(*timelapse.Clock) http.Handler {
			return memos.New(memos.Options{Flavour: memos.Neo4j})
		}},
		{"memos", `"add_mode":"sync/fine"`, func(*timelapse.Clock) http.Handler {
			return memos.New(memos.Options{Flavour: memos.Community})
		}},
		{"memos", `"add_mode":"async"`, func(c *timelapse.Clock) http.Handler {
			return memos.New(memos.Options{Flavour: memos.Community, TaskDelay: time.Second, Now: c.Now})
		}},
		{"honcho", `"supplements":["representation","conclusions","search","summaries"]`, func(c *timelapse.Clock) http.Handler {
			return honcho.New(honcho.Options{Mood: flush, Now: c.Now})
		}},
		{"honcho", `"read":"search"`, func(c *timelapse.Clock) http.Handler {
			return honcho.New(honcho.Options{Mood: flush, Now: c.Now})
		}},
		{"graphiti", `"surface":"rest","stall_s":2`, func(*timelapse.Clock) http.Handler { return graphiti.New(graphiti.Options{}).REST() }},
		{"graphiti", `"surface":"mcp","stall_s":2`, func(*timelapse.Clock) http.Handler { return graphiti.New(graphiti.Options{}).MCP() }},
	}
}

// open opens a slot with a new fake. by is between them.
func (b *backend) open(t *testing.T, by host.Interceptor) *host.Slot {
	t.Helper()
	clock := new(timelapse.Clock)
	server := httptest.NewServer(b.server(clock))
	t.Cleanup(server.Close)
	m, found := plugins.Find(b.name)
	require.True(t, found)
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(), Durability: "process",
		Now: clock.Now, Pause: clock.Pause, Intercept: by, NoReadinessPolls: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	s, err := h.Open(t.Context(), host.ProviderConfig{Name: b.name, Module: m.Wasm, Source: "builtin",
		Block: abi.Raw(fmt.Sprintf(`{"url":%q,%s}`, server.URL, b.block))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// TestNoDamagedAnswerIsTakenForNothing damages each backend's answers in each way, one route at a time. Stored data
// must not be reported as gone or not found, and no fact may be invented: the operation returns an error, or its answer
// says that something is wrong.
func TestNoDamagedAnswerIsTakenForNothing(t *testing.T) {
	for _, b := range backendsOfAll() {
		t.Run(b.name+" "+b.block, func(t *testing.T) {
			t.Parallel()
			s := &badBackend{t: t}
			s.slot = b.open(t, s.intercept)
			s.record("e0")
			s.ready()
			asked := s.retrieve()
			require.Contains(t, asked.FormattedContext, "Zorvex")
			routes := []string{""}
			for _, io := range asked.Trace.IO {
				if !slices.Contains(routes, io.Route) {
					routes = append(routes, io.Route)
				}
			}
			for i, m := range disturbances() {
				for _, route := range routes {
					s.whileDisturbed(m, abi.OpRetrieve, route, func() {
						if r := s.retrieve(); r != nil && s.hits > 0 && (r.Trace.ResultState == abi.ResultEmpty ||
							r.Trace.ResultState == abi.ResultResults && len(r.Trace.Warnings) == 0) {
							t.Errorf("%s of %q: %s %q", m.name, route, r.Trace.ResultState, r.FormattedContext)
						}
					})
				}
				s.whileDisturbed(m, abi.OpRecordEvent, "", func() {
					if r := s.record(fmt.Sprint("e", i+1)); r != nil && r.Status == abi.StatusNotRetained {
						t.Errorf("record_event, %s: not_retained %v", m.name, r.Warnings)
					}
				})
				s.whileDisturbed(m, abi.OpReadiness, "", func() {
					if r := s.ready(); r != nil && len(r.EventIDs.Empty)+len(r.EventIDs.Lost)+len(r.EventIDs.Failed) > 0 {
						t.Errorf("readiness, %s: %+v %v", m.name, r.EventIDs, r.Warnings)
					}
				})
				before := s.inventory()
				s.whileDisturbed(m, abi.OpInventory, "", func() {
					if after := s.inventory(); after != nil && after.Complete && items(after) < items(before) {
						t.Errorf("inventory, %s: %v, and was %v", m.name, after.Kinds, before.Kinds)
					}
				})
			}
		})
	}
}

// TestSpeakersWithUnusualNamesAreKept: a name that looks like a separator, a role, a tag or another speaker is kept as it
// is, a line end in it does not start a line, and a blank name is ignored.
func TestSpeakersWithUnusualNamesAreKept(t *testing.T) {
	names := []string{"Ann: Bob", "Zoë\nuser", "user", "assistant", "*", "speaker-x", " \t", "Ann Bob", "ann bob",
		"Ann_20Bob", strings.Repeat("n", 100), "a/b=c", `"q"`, "مريم"}
	for _, b := range backendsOfAll() {
		t.Run(b.name+" "+b.block, func(t *testing.T) {
			t.Parallel()
			slot := b.open(t, nil)
			for i, name := range names {
				in := abi.MemoryScope{RunID: "r", PersonaID: fmt.Sprint("p", i)}
				next := names[(i+1)%len(names)]
				cat, dog := "I keep a cat called Zorvex.", "I keep a dog called Quilbri."
				_, err := slot.RecordEvent(t.Context(), &abi.MemoryEvent{EventID: "e", RunID: in.RunID, UserID: in.PersonaID,
					SessionID: "s", TurnID: "t", Timestamp: "2026-03-01T10:00:00Z", Messages: []abi.Message{
						{Role: abi.RoleUser, Name: name, Content: &cat}, {Role: abi.RoleUser, Name: next, Content: &dog}}})
				require.NoError(t, err, name)
				_, err = slot.Readiness(t.Context(), &abi.ReadinessRequest{Scope: in, TimeoutMS: 30_000})
				require.NoError(t, err, name)
				ask := &abi.RetrieveRequest{Scope: in, SessionID: "q", Query: "Which cat and which dog are kept?"}
				r, err := slot.Retrieve(t.Context(), ask)
				require.NoError(t, err, name)
				for _, n := range []string{name, next} {
					if n = strings.ReplaceAll(n, "\n", " "); strings.TrimSpace(n) != "" {
						assert.Contains(t, r.FormattedContext, n)
					}
				}
				assert.NotRegexp(t, `\d +: `, r.FormattedContext, "nobody is no name")
				for most := int64(1); i < 2 && most <= 50; most++ { // the host attributes the context to each of them
					ask.Budget.MaxTokens = &most
					_, err := slot.Retrieve(t.Context(), ask)
					require.NoError(t, err, "%q with %d tokens", name, most)
				}
			}
		})
	}
}

// badBackend is a slot whose backend is disturbed.
type badBackend struct {
	t           *testing.T
	slot        *host.Slot
	disturbance *disturbance
	op, route   string
	hits        int
}

// whileDisturbed runs do while the answers to an operation's calls, of one route or of all, are disturbed.
func (s *badBackend) whileDisturbed(m disturbance, op, route string, do func()) {
	s.disturbance, s.op, s.route, s.hits = &m, op, route, 0
	do()
	s.disturbance = nil
}

func (s *badBackend) intercept(ctx context.Context, call host.NativeCall, next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
	answer, err := next(ctx)
	if s.disturbance == nil || err != nil || answer.Status < 200 || answer.Status > 299 || call.Operation != s.op ||
		s.route != "" && call.Route != s.route {
		return answer, err
	}
	if body, applies := s.disturbance.spoil(bytes.TrimSpace(answer.Body)); applies {
		s.hits++
		answer.Body = body
	}
	return answer, nil
}

// fine accepts only errors that the disturbance explains, and none without it.
func (s *badBackend) fine(err error) bool {
	if err == nil {
		return true
	}
	if s.disturbance == nil {
		require.NoError(s.t, err)
	}
	assert.Contains(s.t, []abi.Code{abi.CodeBackend, abi.CodeUnavailable, abi.CodeIsolationBreach}, abi.CodeOf(err),
		"%s in %s: %v", s.disturbance.name, s.op, err)
	return false
}

func (s *badBackend) record(id string) *abi.WriteReceipt {
	text, reply := "My cat "+id+" is called Zorvex"+id+".", "Noted."
	r, err := s.slot.RecordEvent(s.t.Context(), &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID,
		SessionID: "s-" + id, TurnID: id, Timestamp: "2026-03-01T10:00:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: &reply}}})
	if !s.fine(err) {
		return nil
	}
	return r
}

func (s *badBackend) ready() *abi.BackendReadiness {
	r, err := s.slot.Readiness(s.t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 10_000})
	if !s.fine(err) {
		return nil
	}
	return r
}

func (s *badBackend) retrieve() *abi.RetrieveResult {
	r, err := s.slot.Retrieve(s.t.Context(), &abi.RetrieveRequest{Scope: scope, SessionID: "q", Query: "What is my cat called?"})
	if !s.fine(err) {
		return nil
	}
	return r
}

func (s *badBackend) inventory() *abi.Inventory {
	i, err := s.slot.Inventory(s.t.Context(), &abi.InventoryRequest{Scope: scope})
	if !s.fine(err) {
		return nil
	}
	return i
}

func items(i *abi.Inventory) (n int64) {
	for _, k := range i.Kinds {
		n += k.Count
	}
	return n
}
