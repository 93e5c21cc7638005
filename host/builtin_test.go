package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// builtinSlot opens a slot with a built-in provider.
func builtinSlot(t *testing.T, name, block string) *host.Slot {
	t.Helper()
	return builtinWith(t, name, block)
}

func builtinWith(t *testing.T, name, block string, changes ...func(*host.Options, *host.ProviderConfig)) *host.Slot {
	t.Helper()
	m, ok := plugins.Find(name)
	require.True(t, ok)
	o, p := host.Options{}, host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin", Block: abi.Raw(block)}
	for _, change := range changes {
		change(&o, &p)
	}
	return host.OpenSlot(t, host.Open(t, o), p)
}

func eventAt(id, at, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: "r", UserID: "p", SessionID: "s", TurnID: id, Timestamp: at,
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func TestASessionThatIsLeftOutNeedsNoMoreMemoryThanAPage(t *testing.T) {
	// Twice as much text as memory. Recording one needs some 7 MiB in the guest: it is decoded, encoded and copied.
	const turns, size, memory = 96, 1 << 18, 12 << 20
	m, ok := plugins.Find("full_history")
	require.True(t, ok)
	s := host.OpenSlot(t, host.Open(t, host.Options{Limits: host.Limits{MemoryBytes: memory}}), host.ProviderConfig{Name: "full_history",
		Module: m.Wasm, Source: "builtin",
		Block: abi.Raw(`{"current_session":"exclude"}`)})
	old := eventAt("old", "2026-01-01T00:00:00Z", "I drink tea.")
	old.SessionID = "yesterday"
	_, err := s.RecordEvent(t.Context(), old)
	require.NoError(t, err)
	for i := range turns {
		_, err := s.RecordEvent(t.Context(), eventAt("e"+strconv.Itoa(i), "2026-01-02T00:"+strconv.Itoa(10+i/2)+":00Z",
			strings.Repeat("x", size)))
		require.NoError(t, err)
	}
	result, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "q", SessionID: "s",
		Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"}})
	require.NoError(t, err)
	assert.Contains(t, result.FormattedContext, "I drink tea.")
	assert.Equal(t, abi.Raw(strconv.Itoa(turns)), result.Trace.Details["turns_of_this_session"])
}

func TestFiveMegabytesOfTextAreKeptExactly(t *testing.T) {
	brief.Leave(t)
	s := builtinSlot(t, "full_history", `{}`)
	text := strings.Repeat("Grüße, 世界 🙂 \"quoted\" \\ back\tslash\n", 5<<20/42)
	e := eventAt("big", "2026-01-02T03:04:05Z", text)
	_, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	r, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	assert.True(t, r.Duplicate)
	// A retrieval reads at most 4 MiB of history, and says so; a smaller turn after it is returned completely.
	whole := strings.Repeat("Grüße, 世界 🙂\n", 1<<20/20)
	_, err = s.RecordEvent(context.Background(), eventAt("large", "2026-01-03T03:04:05Z", whole))
	require.NoError(t, err)
	q, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "q", SessionID: "new",
		Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"}})
	require.NoError(t, err)
	assert.True(t, *q.Trace.Truncated)
	require.NotEmpty(t, q.Trace.Warnings)
	var turns []abi.MemoryEvent
	require.NoError(t, json.Unmarshal(q.Raw.Calls[0].Body, &turns))
	require.Len(t, turns, 1)
	assert.Equal(t, whole, *turns[0].Messages[0].Content)
}

func TestOutOfOrderTurnsComeBackByTheirTime(t *testing.T) {
	s := builtinSlot(t, "full_history", `{}`)
	for _, e := range []*abi.MemoryEvent{
		eventAt("c", "2026-01-03T00:00:00Z", "third"), eventAt("a", "2026-01-01T00:00:00+14:00", "first"),
		eventAt("d", "2026-01-03T00:00:00Z", "fourth, same time, later"),
		eventAt("b", "2026-01-02T12:00:00.5-11:00", "second"),
	} {
		_, err := s.RecordEvent(context.Background(), e)
		require.NoError(t, err)
	}
	request := &abi.RetrieveRequest{Query: "q", SessionID: "new", Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"}}
	order := func() string {
		q, err := s.Retrieve(context.Background(), request)
		require.NoError(t, err)
		ids := ""
		for _, e := range q.Evidence {
			ids += e.SourceEventIDs[0]
		}
		again, err := s.FormatContext(context.Background(), &abi.FormatRequest{Result: *q, Scope: request.Scope,
			Budget: request.Budget})
		require.NoError(t, err)
		assert.Equal(t, q.FormattedContext, again.FormattedContext, "format_context gives the same string")
		return ids
	}
	assert.Equal(t, "abcd", order())
	request.AsOf = "2026-01-02T23:30:00.5Z"
	assert.Equal(t, "ab", order())
	request.AsOf = ""
	for budget, want := range map[int64]string{200: "abcd", 47: "cd", 42: "d", 1: ""} {
		request.Budget.MaxTokens = &budget
		assert.Equal(t, want, order(), "max_tokens %d", budget)
	}
	two := int64(2)
	request.Budget = abi.ContextBudget{MaxItems: &two}
	assert.Equal(t, "cd", order())
}

func TestControlsThatRetainNothingSaySo(t *testing.T) {
	for name, block := range map[string]string{"no_memory": `{}`, "static_profile": `{"profiles":[{"persona_id":"p","text":"likes tea"}]}`,
		"oracle_ipas": `{"entries":[{"persona_id":"p","attribute":"drink","value":"tea"}]}`} {
		t.Run(name, func(t *testing.T) {
			s := builtinSlot(t, name, block)
			r, err := s.RecordEvent(context.Background(), eventAt("a", "2026-01-01T00:00:00Z", "I like coffee"))
			require.NoError(t, err)
			assert.Equal(t, abi.StatusNotRetained, r.Status)
			assert.Equal(t, abi.KindControl, r.Trace.ConditionKind)
			q, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "q", SessionID: "new",
				Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"}})
			require.NoError(t, err)
			assert.NotContains(t, q.FormattedContext, "coffee")
			assert.Equal(t, name == "no_memory", q.FormattedContext == "")
			other, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "q", SessionID: "new",
				Scope: abi.MemoryScope{RunID: "r", PersonaID: "P"}})
			require.NoError(t, err)
			assert.Empty(t, other.FormattedContext, "a look-alike persona has nothing")
			assert.Equal(t, name != "no_memory", len(other.Trace.Warnings) > 0)
		})
	}
}

// TestARefusedConnectionIsUnavailable, and never uncertain, because nothing was sent.
func TestARefusedConnectionIsUnavailable(t *testing.T) {
	for name, backend := range map[string]http.Handler{"honcho": honcho.New(honcho.Options{}),
		"mem0": mem0.New(mem0.Options{}), "memos": memos.New(memos.Options{})} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(backend)
			// On a connection that is kept the next request may be sent before its end is seen, and is uncertain.
			server.Config.SetKeepAlivesEnabled(false)
			server.Start()
			s := builtinSlot(t, name, `{"url":"`+server.URL+`"}`)
			_, err := s.RecordEvent(t.Context(), eventAt("e-1", "2026-01-02T00:00:00Z", "My tea is at nine."))
			require.NoError(t, err)
			server.Close()
			_, err = s.RecordEvent(t.Context(), eventAt("e-2", "2026-01-02T00:00:00Z", "My tea is at ten."))
			e := host.RequireCode(t, err, abi.CodeUnavailable)
			assert.NotEqual(t, "uncertain", e.Reason)
		})
	}
}

func TestWhatNamesNoEventsFollowsTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		provider, block, about string // part of it
	}{
		{"honcho", `{"url":"http://127.0.0.1:1"}`, "conclusions name no messages"},
		{"honcho", `{"url":"http://127.0.0.1:1","read":"chat"}`, "in its words"},
		{"honcho", `{"url":"http://127.0.0.1:1","read":"search"}`, ""},
		{"honcho", `{"url":"http://127.0.0.1:1","supplements":["search"]}`, ""},
		{"layered_memory", `{"llm":{"base_url":"http://127.0.0.1:1/v1","model":"m"}}`, "without items"},
		{"rolling_summary", `{"llm":{"base_url":"http://127.0.0.1:1/v1","model":"m"}}`, "without items"},
		{"mem0", `{"url":"http://127.0.0.1:1"}`, ""},
		{"bm25", `{}`, ""},
	} {
		wasm, ok := plugins.Find(c.provider)
		require.True(t, ok, c.provider)
		m, err := host.Inspect(wasm.Wasm, host.Limits{})
		require.NoError(t, err)
		about, err := m.Unsourced(c.provider, "", abi.Raw(c.block))
		require.NoError(t, err, c.provider)
		if c.about == "" {
			assert.Empty(t, about, "%s %s", c.provider, c.block)
		} else {
			assert.Contains(t, about, c.about, "%s %s", c.provider, c.block)
		}
	}
}

func TestModelCallsFollowTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		provider, block string
		least           []int64 // minimum of record_event's calls to a language model
	}{
		{"mem0", `{"url":"http://127.0.0.1:1"}`, []int64{1}},
		{"mem0", `{"url":"http://127.0.0.1:1","infer":false}`, nil},
		{"simple_rag", `{"url":"http://127.0.0.1:1"}`, nil},
		{"simple_rag", `{"url":"http://127.0.0.1:1","infer":true}`, []int64{1}},
		{"graphiti", `{"url":"http://127.0.0.1:1","surface":"rest"}`, []int64{2}},
		{"memos", `{"url":"http://127.0.0.1:1"}`, []int64{1}},
		{"memos", `{"url":"http://127.0.0.1:1","add_mode":"sync/fast"}`, nil},
		{"honcho", `{"url":"http://127.0.0.1:1"}`, []int64{0}},
	} {
		module := c.provider
		if module == "simple_rag" {
			module = "mem0"
		}
		wasm, ok := plugins.Find(module)
		require.True(t, ok, c.provider)
		m, err := host.Inspect(wasm.Wasm, host.Limits{})
		require.NoError(t, err)
		list, declared, err := m.ModelCalls(c.provider, "", abi.Raw(c.block))
		require.NoError(t, err, c.provider)
		require.True(t, declared)
		var least []int64
		for _, call := range list {
			if call.Operation == abi.OpRecordEvent && call.Model == abi.ModelLanguage {
				least = append(least, call.Least)
			}
		}
		assert.Equal(t, c.least, least, "%s %s", c.provider, c.block)
	}
}
