package plugins_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// TestEveryProviderPassesTheKitUnderSourceDesign: what a module sends under that profile is what its manifest lets
// through. In short runs these are the clauses about writing, finding and budgets.
func TestEveryProviderPassesTheKitUnderSourceDesign(t *testing.T) {
	const key = "key-of-the-test"
	quick := honcho.Mood{Flush: true, RowDelay: 5 * time.Millisecond, WorkDelay: 5 * time.Millisecond}
	entry := `"persona_id":"mara","attribute":"hot_drink","value":"green tea","valid_from":"2026-01-01T00:00:00Z"`
	model := `"llm":{"base_url":"URL/v1","model":"stub"}`
	mara := &conformance.Known{Scope: scope, Query: "tea"}
	covered := map[string]bool{}
	for _, c := range []struct {
		name, block string // in which URL is the server's address
		server      func() http.Handler
		known       *conformance.Known
		errorBody   string
	}{
		{name: "mem0", block: `"url":"URL","api_key":{"secret":"K"},"add_timeout_s":2`, server: func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key})
		}},
		{name: "memos", block: `"url":"URL","add_mode":"sync/fast","graph_store":"neo4j"`, server: func() http.Handler {
			return memos.New(memos.Options{Flavour: memos.Neo4j})
		}, errorBody: `{"code":500,"message":"boom","data":null}`},
		{name: "memos", block: `"url":"URL","add_mode":"async","writable_cube_template":"{run_id}:{persona_id}"`, server: func() http.Handler {
			return memos.New(memos.Options{Flavour: memos.Community, TaskDelay: 20 * time.Millisecond})
		}, errorBody: `{"code":500,"message":"boom","data":null}`},
		{name: "honcho", block: `"url":"URL","workspace_template":"{run_id}"`, server: func() http.Handler { return honcho.New(honcho.Options{Mood: quick}) }},
		{name: "graphiti", block: `"url":"URL","surface":"rest","stall_s":2`, server: func() http.Handler {
			return graphiti.New(graphiti.Options{Delay: 5 * time.Millisecond}).REST()
		}},
		{name: "graphiti", block: `"url":"URL","surface":"mcp","stall_s":2,"group_id_template":"{run_id}:{persona_id}"`, server: func() http.Handler {
			return graphiti.New(graphiti.Options{Delay: 5 * time.Millisecond}).MCP()
		}},
		{name: "rolling_summary", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "layered_memory", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "ledger_memory", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "ledger_memory"}, {name: "bm25"}, {name: "full_history"}, {name: "no_memory"},
		{name: "static_profile", known: mara,
			block: `"profiles":[{"persona_id":"mara","text":"Mara drinks green tea."}]`},
		{name: "oracle_ipas", known: mara, block: `"entries":[{` + entry + `}]`},
	} {
		covered[c.name] = true
		m, found := plugins.Find(c.name)
		if !assert.True(t, found, "%s is not built: make plugins", c.name) {
			continue
		}
		t.Run(c.name+c.block, func(t *testing.T) {
			t.Parallel()
			p := host.ProviderConfig{Name: c.name, Module: m.Wasm, Source: "builtin", Profile: abi.ProfileSourceDesign,
				Block: abi.Raw(`{` + c.block + `}`)}
			if c.server != nil {
				server := httptest.NewServer(c.server())
				t.Cleanup(server.Close)
				p.Block = abi.Raw(strings.ReplaceAll(string(p.Block), "URL", server.URL))
				p.Secrets = map[string]host.Secret{"K": {Value: func() (string, error) { return key, nil },
					Origin: server.URL}}
			}
			target := conformance.Target{Provider: p, ReadyWithin: 10 * time.Second, Known: c.known}
			if c.errorBody != "" {
				target.ErrorBodies = map[string]string{"": c.errorBody}
			}
			options := conformance.Options{CacheDir: testcache.Dir()}
			if brief.Tests() {
				options.Clauses = []int{1, 2, 5}
			}
			conformance.TestWith(t, target, options)
		})
	}
	for _, m := range plugins.Builtin() {
		assert.True(t, covered[m.Name], "%s is in no row", m.Name)
	}
}
