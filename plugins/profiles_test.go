package plugins_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/seat"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
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

// designProvider is a provider with a configuration for memory.profile: source-design.
type designProvider struct {
	name, block string // URL in it is replaced by the server's address
	module      string // "" if it is named like the provider
	server      func() http.Handler
	known       *conformance.Known
	errorBody   string
}

// keyOfTheTest is the secret K of the blocks.
const keyOfTheTest = "key-of-the-test"

// sourceDesign lists every provider, with each surface of its backend and a template.
func sourceDesign() []designProvider {
	quick := honcho.Mood{Flush: true, RowDelay: 5 * time.Millisecond, WorkDelay: 5 * time.Millisecond}
	entry := `"persona_id":"mara","attribute":"hot_drink","value":"green tea","valid_from":"2026-01-01T00:00:00Z"`
	model := `"llm":{"base_url":"URL/v1","model":"stub"}`
	mara := &conformance.Known{Scope: scope, Query: "tea"}
	return []designProvider{
		{name: "mem0", block: `"url":"URL","api_key":{"secret":"K"},"add_timeout_s":2`, server: func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: keyOfTheTest})
		}},
		{name: "simple_rag", module: "mem0", block: `"url":"URL","api_key":{"secret":"K"},"add_timeout_s":2`, server: func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: keyOfTheTest})
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
		{name: "graphiti", block: `"url":"URL","surface":"core","recipe":"COMBINED_HYBRID_SEARCH_RRF"`, server: func() http.Handler {
			return graphiti.New(graphiti.Options{}).Gateway()
		}},
		{name: "rolling_summary", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "layered_memory", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "ledger_memory", block: model, server: func() http.Handler { return llm.New(llm.Options{}) }},
		{name: "ledger_memory"}, {name: "bm25"}, {name: "recall", module: "bm25"},
		{name: "hybrid", module: "bm25", block: `"embedder":{"base_url":"URL/v1","model":"stub"}`, server: func() http.Handler {
			return llm.New(llm.Options{})
		}},
		{name: "full_history"}, {name: "no_memory"},
		{name: "static_profile", known: mara,
			block: `"profiles":[{"persona_id":"mara","text":"Mara drinks green tea."}]`},
		{name: "oracle_ipas", known: mara, block: `"entries":[{` + entry + `}]`},
	}
}

// config is the provider's configuration, with its server behind wrap.
func (d *designProvider) config(t *testing.T, wrap func(http.Handler) http.Handler) host.ProviderConfig {
	t.Helper()
	m, found := plugins.Find(cmp.Or(d.module, d.name))
	require.True(t, found, "%s is not built: make plugins", d.name)
	p := host.ProviderConfig{Name: d.name, Module: m.Wasm, Source: "builtin", Profile: abi.ProfileSourceDesign,
		Block: abi.Raw(`{` + d.block + `}`)}
	if d.server != nil {
		server := httptest.NewServer(wrap(d.server()))
		t.Cleanup(server.Close)
		p.Block = abi.Raw(strings.ReplaceAll(string(p.Block), "URL", server.URL))
		p.Secrets = map[string]host.Secret{"K": {Value: func() (string, error) { return keyOfTheTest, nil },
			Origin: server.URL}}
	}
	return p
}

// TestEveryProviderPassesTheKitUnderSourceDesign: the manifest allows everything that a module sends under that
// profile. Short runs cover the clauses about writing, finding and budgets.
func TestEveryProviderPassesTheKitUnderSourceDesign(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range sourceDesign() {
		covered[cmp.Or(c.module, c.name)] = true
		t.Run(c.name+c.block, func(t *testing.T) {
			t.Parallel()
			target := conformance.Target{ReadyWithin: 10 * time.Second, Known: c.known,
				Provider: c.config(t, func(server http.Handler) http.Handler { return server })}
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

// TestEveryProviderIsEvaluatedUnderSourceDesign: a small evaluation runs to its scores, with test sessions in which a
// simulated person talks with an agent and judges it. No retrieval fails, nothing is reset, and every field of raw
// equals the server's answer.
func TestEveryProviderIsEvaluatedUnderSourceDesign(t *testing.T) {
	path, p := simulatetest.Synth(t, map[string]string{"personas": "1", "sessions": "2", "turns": "2"})
	persona := p.Manifest.Personas[0].PersonaID
	for _, c := range sourceDesign() {
		t.Run(c.name+c.block, func(t *testing.T) {
			if !strings.Contains(c.block, `"url"`) {
				brief.Leave(t)
			}
			answers := &answerLog{seen: map[string]bool{}}
			config := c.config(t, answers.record)
			if block := p.Conditions[c.name]; block != nil {
				config.Block = abi.Raw(block)
			}
			asked, compared := 0, 0
			o := run.Options{Now: time.Now, Logger: hclog.NewNullLogger(),
				Provider: func(*lab.Provider) (host.ProviderConfig, error) { return config, nil },
				Host: host.Options{CacheDir: testcache.Dir(), OnExchange: func(x *host.Exchange) {
					reset, is := x.Request.(*abi.MemoryScope)
					assert.False(t, x.Operation == abi.OpResetScope && is && reset.PersonaID == persona, "a test session resets nothing")
					if x.Operation != abi.OpRetrieve {
						return
					}
					asked++
					assert.Nil(t, x.Error)
					if r, is := x.Answer.(*abi.RetrieveResult); is && c.server != nil {
						for _, call := range r.Raw.Calls {
							if call.Route == "state" { // from the host, not from a server
								continue
							}
							compared++
							assert.True(t, answers.has(call.Body), "the server did not answer %s: %.300s", call.Route, call.Body)
						}
					}
				}}}
			l, err := lab.Parse([]byte("lab: 1\npack: synth.pack\ntokenizer: bytes4\nproviders: [" + c.name + "]\nbudgets: [400]\nsubject: {seat: stub}"))
			require.NoError(t, err)
			folder := filepath.Join(t.TempDir(), "run")
			o.Seat, err = seat.New(l, folder, os.Getenv)
			require.NoError(t, err)
			begun, err := run.Begin(folder, l, path, p, o)
			require.NoError(t, err)
			require.NoError(t, run.Go(t.Context(), folder, begun, p, o))
			begun, err = rundir.Open(folder)
			require.NoError(t, err)
			require.Equal(t, rundir.Complete, begun.Cells[0].State)
			metrics, _, err := score.Score(folder, p)
			require.NoError(t, err)
			require.NotNil(t, metrics.Columns[0].Behaviour)
			assert.Greater(t, asked, 5)
			if strings.Contains(c.block, `"url"`) {
				assert.Positive(t, compared)
			}
		})
	}
}

// answerLog contains the JSON values that a server has answered.
type answerLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

// record notes each answer, and each event of a stream.
func (a *answerLog) record(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both := &bodyRecorder{ResponseWriter: w}
		server.ServeHTTP(both, r)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.note(both.body.Bytes())
		for line := range strings.Lines(both.body.String()) {
			if data, is := strings.CutPrefix(line, "data:"); is {
				a.note([]byte(data))
			}
		}
	})
}

// note adds a value, and the content that it has as the result of an MCP tool.
func (a *answerLog) note(value []byte) {
	a.seen[normal(value)] = true
	var call struct {
		Result struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal(value, &call) == nil {
		for _, c := range call.Result.Content {
			a.seen[normal([]byte(c.Text))] = true
		}
	}
}

func (a *answerLog) has(body []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[normal(body)]
}

// normal returns a JSON value in a canonical form; "" for invalid JSON.
func normal(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return ""
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// bodyRecorder also keeps what is written.
type bodyRecorder struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (c *bodyRecorder) Write(p []byte) (int, error) {
	c.body.Write(p)
	return c.ResponseWriter.Write(p)
}

func (c *bodyRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }
