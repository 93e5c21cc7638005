package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/pages"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/memhost/memhost/sdk"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// providerSetup is one way to configure the provider.
type providerSetup struct {
	surface string
	bolt    bool
}

func (u providerSetup) String() string {
	if u.bolt {
		return u.surface + "+bolt"
	}
	return u.surface
}

var setUps = []providerSetup{{"rest", true}, {"mcp", true}, {"mcp", false}, {"rest", false}}

const password = "correct horse"

// backend is a fake Graphiti with servers that listen.
type backend struct {
	*graphiti.Server
	db     *bolt.Server
	config host.ProviderConfig
}

// start runs the fake behind sockets, and configures the built module for it.
func start(t testing.TB, u providerSetup, o graphiti.Options, more string) *backend {
	t.Helper()
	module, ok := plugins.Find("graphiti")
	require.True(t, ok, "plugins/graphiti has not been built: make plugins")
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	b := &backend{Server: graphiti.New(o)}
	handler := b.REST()
	switch u.surface {
	case surfaceMCP:
		handler = b.MCP()
	case surfaceCore:
		handler = b.Gateway()
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	block := fmt.Sprintf(`{"url":%q,"surface":%q%s`, server.URL, u.surface, more)
	b.config = host.ProviderConfig{Name: "graphiti", Module: module.Wasm, Source: "builtin"}
	if u.bolt {
		b.db = bolt.Start(t, bolt.Options{Password: password})
		require.NoError(t, b.Serve(b.db, manifest))
		block += fmt.Sprintf(`,"bolt":%q,"bolt_password":{"secret":"neo4j"}`, b.db.URL("bolt"))
		b.config.Secrets = map[string]host.Secret{"neo4j": {Origin: b.db.URL("bolt"),
			Value: func() (string, error) { return password, nil }}}
	}
	b.config.Block = abi.Raw(block + "}")
	return b
}

// TestConformance is the kit against the fakes, in every way to configure the provider.
func TestConformance(t *testing.T) {
	for _, u := range setUps {
		t.Run(u.String(), func(t *testing.T) {
			t.Parallel()
			if u == (providerSetup{"mcp", true}) || u == (providerSetup{"rest", false}) {
				brief.Skip(t)
			}
			if u != (providerSetup{"rest", true}) {
				brief.Leave(t)
			}
			b := start(t, u, graphiti.Options{Delay: 5 * time.Millisecond}, `,"stall_s":2`)
			conformance.TestWith(t, conformance.Target{Provider: b.config, ReadyWithin: 10 * time.Second,
				ErrorBodies: map[string]string{}}, conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// TestConformanceOfCore is the kit against the gateway: each way to ingest, and the recipes that rank otherwise.
func TestConformanceOfCore(t *testing.T) {
	brief.Leave(t)
	for name, more := range map[string]string{
		"sync":        ``,
		"queued":      `,"receipts":"queued"`,
		"bulk":        `,"bulk":"native"`,
		"bulk queued": `,"bulk":"native","receipts":"queued"`,
		"combined":    `,"recipe":"COMBINED_HYBRID_SEARCH_RRF"`,
		"reranked":    `,"recipe":"COMBINED_HYBRID_SEARCH_CROSS_ENCODER"`,
		"misaligned":  `,"recipe":"EDGE_HYBRID_SEARCH_EPISODE_MENTIONS","annotate":false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "queued" {
				brief.Skip(t)
			}
			b := start(t, providerSetup{surfaceCore, false}, graphiti.Options{Delay: 5 * time.Millisecond}, more)
			conformance.TestWith(t, conformance.Target{Provider: b.config, ReadyWithin: 10 * time.Second},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// serve opens a slot with the built module before a fake.
func serve(t testing.TB, b *backend) *host.Slot {
	t.Helper()
	return serveWithin(t, b, host.Limits{})
}

func serveWithin(t testing.TB, b *backend, limits host.Limits) *host.Slot {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Durability: "process", Limits: limits})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(t.Context(), b.config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

func wait(t testing.TB, s *host.Slot) *abi.BackendReadiness {
	t.Helper()
	ready, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 5000})
	require.NoError(t, err)
	return ready
}

// TestTheBuiltModule runs the project's example for Graphiti: a preference changes, and the memory shows when each fact
// was valid and where it came from.
func TestTheBuiltModule(t *testing.T) {
	for _, u := range setUps {
		t.Run(u.String(), func(t *testing.T) {
			b := start(t, u, graphiti.Options{Delay: time.Millisecond}, "")
			s := serve(t, b)
			for _, e := range []*abi.MemoryEvent{turnOn(1, "ev-1", "I prefer window seats on business trips."),
				turnOn(20, "ev-2", "I now prefer aisle seats on business trips.")} {
				receipt, err := s.RecordEvent(t.Context(), e)
				require.NoError(t, err)
				require.Equal(t, abi.StatusQueued, receipt.Status)
			}
			require.Equal(t, abi.ReadinessReady, wait(t, s).Status)
			again, err := s.RecordEvent(t.Context(), turnOn(1, "ev-1", "I prefer window seats on business trips."))
			require.NoError(t, err)
			require.True(t, again.Duplicate)
			require.Equal(t, abi.StatusCommitted, again.Status, "it was seen")
			result, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "Which seat on business trips?",
				Scope: scope, SessionID: "new"})
			require.NoError(t, err)
			require.Contains(t, result.FormattedContext,
				"m1 [2025-03-01 to 2025-03-20, superseded] user_a prefer window seats on business trips\n")
			formatted, err := s.FormatContext(t.Context(), &abi.FormatRequest{Result: *result, Scope: scope})
			require.NoError(t, err)
			require.Equal(t, result.FormattedContext, formatted.FormattedContext)
			c, err := s.Capabilities(t.Context())
			require.NoError(t, err)
			if u == (providerSetup{surfaceREST, false}) {
				require.NotContains(t, c.Capabilities, abi.OpProvenance)
			} else {
				p, err := s.Provenance(t.Context(), &abi.ProvenanceRequest{Scope: scope,
					NativeID: result.Evidence[0].NativeID})
				require.NoError(t, err)
				require.NotEmpty(t, p.Items)
			}
			if u.bolt {
				require.Equal(t, []string{"ev-1"}, result.Evidence[0].SourceEventIDs)
				require.NotContains(t, result.FormattedContext, "ev-1", "ids that callers chose are not shown")
				before, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
				require.NoError(t, err)
				require.True(t, before.Complete)
			}
			reset, err := s.ResetScope(t.Context(), scope)
			require.NoError(t, err)
			require.Equal(t, abi.ResetDone, reset.Status)
			require.Empty(t, b.Groups(), "reset leaves no node of the group")
		})
	}
}

func TestAWorkerThatDiedIsSaidAndNothingIsLostInSilence(t *testing.T) {
	brief.Leave(t)
	b := start(t, providerSetup{surfaceREST, true}, graphiti.Options{}, `,"stall_s":1`)
	s := serve(t, b)
	b.FailExtraction(1)
	for i := range 2 {
		_, err := s.RecordEvent(t.Context(), turnOn(1+i, fmt.Sprint("lost-", i), "I like rowing."))
		require.NoError(t, err)
	}
	ready := wait(t, s)
	require.Equal(t, abi.ReadinessDegraded, ready.Status, "after stall_s")
	require.ElementsMatch(t, []string{"lost-0", "lost-1"}, ready.EventIDs.Pending)
	health, err := s.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, abi.HealthOK, health.Status, "the servers' health does not know")
	b.Restart()
	_, err = s.RecordEvent(t.Context(), turnOn(3, "after", "I like running."))
	require.NoError(t, err)
	ready = wait(t, s)
	require.Equal(t, abi.ReadinessFailed, ready.Status)
	require.ElementsMatch(t, []string{"lost-0", "lost-1"}, ready.EventIDs.Lost)
	receipt, err := s.RecordEvent(t.Context(), turnOn(1, "lost-0", "I like rowing."))
	require.NoError(t, err)
	require.False(t, receipt.Duplicate, "what is proved lost is sent again")
	_, err = s.RecordEvent(t.Context(), turnOn(2, "lost-1", "I like rowing."))
	require.NoError(t, err)
	require.Equal(t, abi.ReadinessReady, wait(t, s).Status)
}

func TestWrongPasswordsAreNotTriedAgainAndAgain(t *testing.T) {
	b := start(t, providerSetup{surfaceMCP, true}, graphiti.Options{}, "")
	b.config.Secrets["neo4j"] = host.Secret{Origin: b.db.URL("bolt"),
		Value: func() (string, error) { return "wrong password", nil }}
	s := serve(t, b)
	for range 5 {
		_, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
		require.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
		require.NotContains(t, err.Error(), "wrong password")
	}
	require.Less(t, b.db.Logons(), 3, "three would lock the user")
}

func TestNeo4jThatWasAwayIsUsedAgain(t *testing.T) {
	b := start(t, providerSetup{surfaceREST, true}, graphiti.Options{}, "")
	s := serve(t, b)
	_, err := s.RecordEvent(t.Context(), turnOn(1, "e1", "I like rowing."))
	require.NoError(t, err)
	b.db.Stop()
	_, err = s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
	require.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	require.NoError(t, b.db.Listen())
	require.Equal(t, abi.ReadinessReady, wait(t, s).Status)
}

func TestTenThousandFacts(t *testing.T) {
	brief.Leave(t)
	b := start(t, providerSetup{surfaceREST, true}, graphiti.Options{}, `,"max_facts":100`)
	s := serve(t, b)
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "I like thing%d. ", i)
	}
	_, err := s.RecordEvent(t.Context(), turnOn(1, "big", text.String()))
	require.NoError(t, err)
	require.Equal(t, abi.ReadinessReady, wait(t, s).Status)
	result, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "thing77", Scope: scope, SessionID: "new",
		Budget: abi.ContextBudget{MaxItems: sdk.Ptr(int64(5))}})
	require.NoError(t, err)
	require.Len(t, result.Evidence, 5)
	require.Equal(t, "user_a like thing77", result.Evidence[0].Text)
	inventory, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
	require.NoError(t, err)
	for _, k := range inventory.Kinds {
		if k.Kind == "fact" {
			require.Equal(t, int64(10_000), k.Count)
		}
	}
}

// TestAnInventoryNeedsNoMoreMemoryThanAPage: the size of its pages is twice the guest's memory, and so is that of a
// list of its facts.
func TestAnInventoryNeedsNoMoreMemoryThanAPage(t *testing.T) {
	const facts, memory = 20_000, 12 << 20
	b := start(t, providerSetup{surfaceCore, false}, graphiti.Options{}, "")
	text := strings.Repeat("tea ", 300)
	server := pages.Serve(t, b.Gateway(), func(r *http.Request, _ []byte) string {
		group, edges := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/groups/"), "/edges")
		if !edges {
			return ""
		}
		at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		assert.NoError(t, err)
		var edge []string
		for range limit {
			edge = append(edge, fmt.Sprintf(`{"uuid":"%d","group_id":%q,"fact":%q,"episodes":["%d"]}`, at, group, text,
				at))
			at++
		}
		next := "null"
		if at < facts {
			next = fmt.Sprintf(`"%d"`, at)
		}
		return fmt.Sprintf(`{"edges":[%s],"next_cursor":%s}`, strings.Join(edge, ","), next)
	})
	b.config.Block = abi.Raw(fmt.Sprintf(`{"url":%q,"surface":"core"}`, server.URL))
	s := serveWithin(t, b, host.Limits{MemoryBytes: memory})
	inventory, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: abi.MemoryScope{RunID: "r",
		PersonaID: "p"}})
	require.NoError(t, err)
	require.Equal(t, "fact", inventory.Kinds[2].Kind)
	assert.EqualValues(t, facts, inventory.Kinds[2].Count)
	server.MoreThan(t, memory)
}
