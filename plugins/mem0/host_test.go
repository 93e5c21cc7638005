package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/pages"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

func TestMain(m *testing.M) { testcache.Run(m) }

const key = "admin-key-of-the-test"

// providerOf is the configuration of the built module with a server. more is added to the block: `,"infer":false`.
func providerOf(t testing.TB, name, url, more string) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("mem0")
	require.True(t, ok, "mem0.wasm is not built: make plugins")
	return host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin",
		Block:   abi.Raw(`{"url":"` + url + `","api_key":{"secret":"K"}` + more + `}`),
		Secrets: map[string]host.Secret{"K": {Value: func() (string, error) { return key, nil }, Origin: url}}}
}

// serve starts a server for a handler, on a free port.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// slotOf opens a slot with the built module.
func slotOf(t testing.TB, name, url, more string) *host.Slot {
	t.Helper()
	return slotWithin(t, name, url, more, host.Limits{})
}

func slotWithin(t testing.TB, name, url, more string, limits host.Limits) *host.Slot {
	t.Helper()
	h, err := host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Durability: "process", Limits: limits})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(context.Background(), providerOf(t, name, url, more))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// TestAnInventoryNeedsNoMoreMemoryThanAPage: the platform's pages have twice the size of the guest's memory.
func TestAnInventoryNeedsNoMoreMemoryThanAPage(t *testing.T) {
	const rows, memory = inventoryPages * pageMax, 12 << 20
	text := strings.Repeat("tea ", 2000)
	server := pages.Serve(t, &mem0.Platform{Token: key}, func(r *http.Request, body []byte) string {
		at, err := strconv.Atoi(r.URL.Query().Get("page"))
		if r.URL.Path != "/v3/memories/" || err != nil || r.URL.Query().Get("page_size") != strconv.Itoa(pageMax) {
			return ""
		}
		var asked struct {
			Filters struct {
				And []struct {
					User string `json:"user_id"`
					Run  string `json:"run_id"`
				} `json:"AND"`
			}
		}
		assert.NoError(t, json.Unmarshal(body, &asked))
		run := ""
		for _, condition := range asked.Filters.And {
			run += condition.Run
		}
		var items []string
		for i := range pageMax {
			items = append(items, fmt.Sprintf(`{"id":"%d","memory":%q,"run_id":%q}`, at*pageMax+i, text, run))
		}
		return fmt.Sprintf(`{"count":%d,"results":[%s]}`, rows, strings.Join(items, ","))
	})
	s := slotWithin(t, "mem0", server.URL, `,"api":"platform"`, host.Limits{MemoryBytes: memory})
	inventory, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: abi.MemoryScope{RunID: "r",
		PersonaID: "p"}})
	require.NoError(t, err)
	assert.True(t, inventory.Complete)
	assert.EqualValues(t, rows, inventory.Kinds[0].Count)
	server.MoreThan(t, memory)
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name, provider, more string
		long                 bool
		server               func() http.Handler
	}{
		{"mem0 on the self-hosted server", "mem0", `,"add_timeout_s":2`, false, func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key})
		}},
		{"mem0 on the gateway, reranked", "mem0", `,"add_timeout_s":2,"rerank":true,"rerank_pool":60`,
			false, func() http.Handler {
				o := allOptions()
				o.AdminKey = key
				return mem0.New(o)
			}},
		{"procedural memories on the gateway", "mem0", `,"add_timeout_s":2,"procedural":true`, true, func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key, Gateway: &mem0.Gateway{}})
		}},
		{"simple_rag on the self-hosted server", "simple_rag", `,"add_timeout_s":2`, false, func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key})
		}},
		{"mem0 on the platform", "mem0", `,"add_timeout_s":2,"settle_ms":0`, false, func() http.Handler {
			return &mem0.Platform{Token: key}
		}},
		{"simple_rag on the platform", "simple_rag", `,"add_timeout_s":2,"settle_ms":0`, true, func() http.Handler {
			return &mem0.Platform{Token: key}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.long {
				brief.Skip(t)
			}
			if c.name != "mem0 on the self-hosted server" {
				brief.Leave(t)
			}
			conformance.TestWith(t, conformance.Target{Provider: providerOf(t, c.provider, serve(t, c.server()),
				c.more)}, conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

func record(t testing.TB, s *host.Slot, e *abi.MemoryEvent) *abi.WriteReceipt {
	t.Helper()
	receipt, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	return receipt
}

func TestKindFollowsFromExtractionUnderEitherName(t *testing.T) {
	url := serve(t, mem0.New(mem0.Options{AdminKey: key}))
	for _, c := range []struct {
		name, more string
		kind       abi.ConditionKind
		note       string
	}{
		{"mem0", "", abi.KindArchitecture, ""},
		{"mem0", `,"infer":false`, abi.KindControl, "ablation of mem0 extraction"},
		{"simple_rag", "", abi.KindControl, "ablation of mem0 extraction"},
		{"simple_rag", `,"infer":true`, abi.KindArchitecture, "simple_rag with extraction switched on: this is mem0"},
	} {
		s := slotOf(t, c.name, url, c.more)
		m, err := s.Manifest(context.Background())
		require.NoError(t, err)
		assert.Equal(t, c.kind, m.ConditionKind, c.name+c.more)
		assert.Equal(t, c.note, m.Note, c.name+c.more)
		assert.Equal(t, c.kind, m.Capabilities.ConditionKind)
		receipt := record(t, s, turn("e1", "I drink oat milk."))
		assert.Equal(t, c.kind, receipt.Trace.ConditionKind, c.name+c.more)
		result, err := s.Retrieve(context.Background(),
			&abi.RetrieveRequest{Query: "milk", Scope: maria, SessionID: "s"})
		require.NoError(t, err)
		assert.Equal(t, c.kind == abi.KindControl,
			strings.Contains(result.FormattedContext, `condition_kind="control"`))
	}
}

func TestAWrongKeyNeverServes(t *testing.T) {
	h, err := host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close(context.Background())) }()
	_, err = h.Open(context.Background(), providerOf(t, "mem0", serve(t, mem0.New(mem0.Options{AdminKey: "another"})),
		""))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "Invalid API key")
	assert.NotContains(t, err.Error(), key)
}

func TestWhenTheLLMIsBackTheTurnIsSentAtOnce(t *testing.T) {
	for _, provider := range []string{"mem0", "simple_rag"} {
		server := mem0.New(mem0.Options{AdminKey: key})
		s := slotOf(t, provider, serve(t, server), "")
		server.Set(mem0.Faults{LLM: "provider_unavailable",
			Embedder: map[string]string{"simple_rag": "provider_unavailable"}[provider]})
		_, err := s.RecordEvent(context.Background(), turn("e1", "I drink oat milk."))
		e := abi.AsError(err)
		require.Error(t, err)
		assert.Equal(t, abi.CodeUnavailable, e.Code)
		assert.True(t, e.NothingStored)
		server.Set(mem0.Faults{})
		receipt := record(t, s, turn("e1", "I drink oat milk."))
		assert.Equal(t, abi.StatusCommitted, receipt.Status)
		assert.False(t, receipt.Duplicate)
		assert.Equal(t, []string{"I drink oat milk."}, server.Texts(""))
	}
}

func TestPartialVerbatimTurnIsFinishedByTheHost(t *testing.T) {
	server := mem0.New(mem0.Options{AdminKey: key})
	s := slotOf(t, "simple_rag", serve(t, server), `,"add_timeout_s":0`)
	server.Set(mem0.Faults{FailMessage: 3})
	event := turn("e1", "My cat is called Zorvex.", "Noted.", "My dog is called Flum.", "Noted.")
	require.Equal(t, abi.StatusPartial, record(t, s, event).Status)
	server.Set(mem0.Faults{})
	// An earlier request could take effect until settle_ms is over.
	require.Eventually(t, func() bool {
		return record(t, s, event).Status == abi.StatusCommitted
	}, 10*time.Second, 500*time.Millisecond)
	assert.Equal(t, []string{"My cat is called Zorvex.", "Noted.", "My dog is called Flum.", "Noted."},
		server.Texts(""))
}

func TestParallelWritersOfOneScopeAreOneAfterAnother(t *testing.T) {
	server := mem0.New(mem0.Options{AdminKey: key})
	var most, now atomic.Int64
	server.Set(mem0.Faults{After: func() { most.Store(max(most.Load(), now.Add(1))); now.Add(-1) }})
	s := slotOf(t, "mem0", serve(t, server), "")
	parallel(10, func(i int) { record(t, s, turn("e"+strconv.Itoa(i), "My lucky number is forty two.")) })
	assert.Equal(t, []string{"My lucky number is forty two."}, server.Texts(""),
		"mem0 stores it up to ten times when it is added in parallel")
	assert.EqualValues(t, 1, most.Load())
}

func TestFirstWritesOfManyScopesDoNotRaceForTheTable(t *testing.T) {
	server := mem0.New(mem0.Options{AdminKey: key})
	server.Set(mem0.Faults{FirstUseRace: true})
	s := slotOf(t, "mem0", serve(t, server), "")
	parallel(20, func(i int) {
		e := turn("e1", "I drink oat milk.")
		e.RunID = "run" + strconv.Itoa(i)
		assert.Equal(t, abi.StatusCommitted, record(t, s, e).Status)
	})
	assert.Len(t, server.Texts(""), 20)
}

// TestNothingIsLostOrDoubled runs 50 writers in 50 scopes against a server that fails every third add in one of three
// ways, each with 502 or no answer.
func TestNothingIsLostOrDoubled(t *testing.T) {
	brief.Leave(t)
	for name, break1 := range map[string]mem0.Faults{
		"50 parallel writers exhaust the pool": {Before: everyThird(func(w http.ResponseWriter) {
			answer502(w)
		})},
		"the server is killed behind storing, unacked": {AfterStoring: true},
		"the server restarts: connections are dropped": {Before: everyThird(drop)},
		"the LLM is down for a while":                  {LLM: "provider_unavailable"},
		"half of the facts are ghosts": {Ghosts: func(fact string) bool {
			return strings.Contains(fact, "tea")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := mem0.New(mem0.Options{AdminKey: key})
			s := slotOf(t, "mem0", serve(t, server), `,"add_timeout_s":0`)
			events := make([]*abi.MemoryEvent, 50)
			for i := range events {
				events[i] = turn("e1", "I drink oat milk. I like tea. I live in Lisbon.")
				events[i].RunID = "run" + strconv.Itoa(i)
			}
			server.Set(break1)
			parallel(len(events), func(i int) { _, _ = s.RecordEvent(context.Background(), events[i]) })
			server.Set(mem0.Faults{})
			for _, e := range events {
				require.Eventually(t, func() bool {
					receipt, err := s.RecordEvent(context.Background(), e)
					return err == nil && receipt.Status == abi.StatusCommitted
				}, 10*time.Second, 200*time.Millisecond)
			}
			assert.Len(t, server.Texts(""), 150)
			seen := map[string]bool{}
			for _, row := range server.Rows() {
				fact := row["run_id"].(string) + row["memory"].(string)
				assert.False(t, seen[fact], fact)
				seen[fact] = true
			}
		})
	}
}

func parallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// everyThird breaks every third add, before anything is stored.
func everyThird(do func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/memories" || n.Add(1)%3 != 0 {
			return false
		}
		do(w)
		return true
	}
}

func answer502(w http.ResponseWriter) {
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte(`{"detail":"Upstream provider error.","code":"unknown","request_id":"1a2b3c4d"}`))
}

func drop(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = c.Close()
	}
}

func TestAPlatformJobThatNeverEndsStaysPending(t *testing.T) {
	platform := &mem0.Platform{Token: key, NeverEnd: true}
	s := slotOf(t, "mem0", serve(t, platform), "")
	assert.Equal(t, abi.StatusQueued, record(t, s, turn("e1", "I drink oat milk.")).Status)
	ready, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: maria, TimeoutMS: 100})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, ready.Status)
	assert.Equal(t, []string{"e1"}, ready.EventIDs.Pending)
}

func TestAPlatformJobThatFailsIsSentAgain(t *testing.T) {
	platform := &mem0.Platform{Token: key, FailJobs: "quota"}
	s := slotOf(t, "mem0", serve(t, platform), `,"settle_ms":0`)
	record(t, s, turn("e1", "I drink oat milk."))
	ready, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: maria})
	require.NoError(t, err)
	assert.Equal(t, []string{"e1"}, ready.EventIDs.Failed)
	platform.Change(func() { platform.FailJobs = "" })
	assert.False(t, record(t, s, turn("e1", "I drink oat milk.")).Duplicate)
	ready, err = s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: maria, TimeoutMS: 2000})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
	assert.Equal(t, []string{"I drink oat milk."}, platform.Texts())
}

func TestThePlatformsOwnLimitIsPassedOn(t *testing.T) {
	platform := &mem0.Platform{Token: key}
	s := slotOf(t, "mem0", serve(t, platform), "")
	record(t, s, turn("e1", "I drink oat milk."))
	platform.Change(func() { platform.Limited = "7" })
	_, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "milk", Scope: maria, SessionID: "s"})
	e := abi.AsError(err)
	assert.Equal(t, abi.CodeRateLimited, e.Code)
	require.NotNil(t, e.RetryAfterMS)
	assert.EqualValues(t, 7000, *e.RetryAfterMS)
}

// TestABudgetOfTokensIsFilled: 300 messages of 16 tokens each are more than fits.
func TestABudgetOfTokensIsFilled(t *testing.T) {
	ctx := context.Background()
	server := mem0.New(mem0.Options{AdminKey: key})
	s := slotOf(t, "simple_rag", serve(t, server), "")
	for i := range 300 {
		e := turn(fmt.Sprint("e", i), fmt.Sprintf("Tea number %d is the one that I drink on day %d of the year.", i, i))
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	for _, budget := range []int64{500, 2000, 4000} {
		r, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "Which tea do I drink?", Scope: maria, SessionID: "s",
			Budget: abi.ContextBudget{MaxTokens: &budget}})
		require.NoError(t, err)
		use := r.Trace.BudgetApplied["max_items"]
		t.Logf("%d tokens: %d used, asked %d, sent %d, received %d, shown %d, %d calls", budget, *r.Trace.TokenCount,
			*use.Asked, *use.Sent, *use.Received, *use.Shown, len(r.Trace.IO))
		assert.Greater(t, *r.Trace.TokenCount, budget*3/4, "the budget is filled")
		assert.LessOrEqual(t, *use.Received, 2**use.Shown, "at most twice what fits is fetched")
		assert.Equal(t, int64(1000), *use.Ceiling)
	}
	r, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "Which tea do I drink?", Scope: maria, SessionID: "s",
		Budget: abi.ContextBudget{MaxTokens: count(4000), MaxItems: count(5)}})
	require.NoError(t, err)
	assert.Len(t, r.Evidence, 5, "a limit of the caller wins")
}
