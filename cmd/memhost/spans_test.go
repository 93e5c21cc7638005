//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/collector"
	"github.com/memhost/memhost/internal/test/pgserver"
)

// parents has the traceparent headers that a backend received.
type parents struct {
	mu   sync.Mutex
	list []string
}

func (p *parents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, r.Header.Get(traceparent.Header))
	_, _ = w.Write([]byte("ok"))
}

// configure appends keys to a slot's configuration file.
func (m memhost) configure(yaml string) {
	file := filepath.Join(m.dir, "memhost.yaml")
	text, err := os.ReadFile(file)
	require.NoError(m.t, err)
	require.NoError(m.t, os.WriteFile(file, append(text, yaml...), 0o600))
}

// callersTrace returns a header whose trace id consists of 32 equal digits.
func callersTrace(digit string) (header, trace string) {
	trace = strings.Repeat(digit, 32)
	return "00-" + trace + "-00f067aa0ba902b7-01", trace
}

// recordTraced records an event at a slot, as part of a caller's trace.
func recordTraced(t *testing.T, url, id, header string) {
	t.Helper()
	c, err := client.New(url, "")
	require.NoError(t, err)
	defer c.Close()
	_, err = c.RecordEvent(traceparent.Accept(t.Context(), header), &abi.MemoryEvent{EventID: id, RunID: "r",
		UserID: "ann@example.org", SessionID: "secret session", TurnID: id, Timestamp: "2026-01-01T00:00:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: new("deliver a")}}})
	require.NoError(t, err)
}

// ofTrace returns the spans of a trace.
func ofTrace(spans []collector.Span, trace string) (list []collector.Span) {
	for _, s := range spans {
		if s.Trace == trace {
			list = append(list, s)
		}
	}
	return list
}

// TestACollectorGetsWhatEveryDoorDoes: HTTP, MCP and an agent's hook each join their caller's trace, and queued spans
// are sent when the slot ends.
func TestACollectorGetsWhatEveryDoorDoes(t *testing.T) {
	backend := &parents{}
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	c := collector.New(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	m.probe(server.URL)
	m.configure("telemetry: {otlp: {endpoint: " + c.URL + "}}\n")
	slot := m.serve()

	overHTTP, httpTrace := callersTrace("1")
	recordTraced(t, slot.url, "e1", overHTTP)

	overMCP, mcpTrace := callersTrace("2")
	child := m.mcpClient("--config", "memhost.yaml")
	_, err := child.CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{traceparent.Header: overMCP},
		Name: "memory_add", Arguments: map[string]any{"text": "deliver a"}})
	require.NoError(t, err)
	require.NoError(t, child.Close())

	overHook, hookTrace := callersTrace("3")
	hook := m.command("hook", "claude-code", "--config", "memhost.yaml", "--run", "r", "--user", "u")
	hook.Env = append(hook.Env, traceparent.Variable+"="+overHook)
	hook.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"what?",`+
		`"cwd":%q}`, m.dir))
	out, err := hook.CombinedOutput()
	require.NoError(t, err, string(out))
	slot.stop()

	spans := c.Spans()
	one := ofTrace(spans, httpTrace)
	door := collector.One(t, one, "POST /v1/events")
	assert.Equal(t, "00f067aa0ba902b7", door.Parent)
	assert.Equal(t, tracepb.Span_SPAN_KIND_SERVER, door.Kind)
	assert.Equal(t, "http", door.Attributes["memhost.door"])
	assert.Equal(t, int64(200), door.Attributes["http.response.status_code"])
	record := collector.One(t, one, "record_event")
	assert.Equal(t, door.ID, record.Parent)
	assert.Equal(t, "probe", record.Attributes["memhost.provider"])
	native := collector.One(t, one, "POST /post")
	entries := map[string]string{} // entries into the guest, by operation: setup_scope has one too
	for _, entry := range collector.Named(one, "plugin") {
		entries[entry.ID] = entry.Parent
	}
	assert.Equal(t, record.ID, entries[native.Parent])
	assert.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, native.Kind)
	assert.NotEmpty(t, collector.Named(one, "lock"))
	assert.NotEmpty(t, collector.Named(one, "commit"))

	two := ofTrace(spans, mcpTrace)
	tool := collector.One(t, two, "tools/call memory_add")
	assert.Equal(t, tracepb.Span_SPAN_KIND_SERVER, tool.Kind)
	door = collector.One(t, two, "POST /v1/events")
	assert.Equal(t, tool.ID, door.Parent)
	assert.Equal(t, "mcp", door.Attributes["memhost.door"])
	assert.NotEqual(t, tool.Resource["service.instance.id"], door.Resource["service.instance.id"], "two processes")

	three := ofTrace(spans, hookTrace)
	door = collector.One(t, three, "POST /v1/retrieve")
	assert.Equal(t, "hook", door.Attributes["memhost.door"])
	assert.Equal(t, door.ID, collector.One(t, three, "retrieve").Parent)

	for _, s := range spans {
		for _, text := range []string{"ann@example.org", "secret session", "deliver", "what?"} {
			assert.NotContains(t, fmt.Sprint(s.Name, s.Attributes, s.Failure), text)
		}
	}
	for _, header := range backend.list {
		assert.Empty(t, header, "a backend gets no traceparent unless telemetry.propagate says so")
	}
}

// TestThreeHostsSpansAreToldApart: the hosts of a slot have different names, a person's scope has the same name at all
// of them, and with telemetry.propagate a backend receives the native call's span.
func TestThreeHostsSpansAreToldApart(t *testing.T) {
	brief.Leave(t)
	database := pgserver.Start(t)
	backend := &parents{}
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	c := collector.New(t)
	cache := cacheHome(t)
	const hosts = 3
	var slots []*slotProcess
	for range hosts {
		m := memhost{t, t.TempDir(), cache, ""}
		m.probe(server.URL)
		m.configure(fmt.Sprintf("store: {postgres: {url: %q}}\ntelemetry: {otlp: {endpoint: %s}, propagate: true}\n",
			database.URL, c.URL))
		if slots == nil {
			_, code := m.run("cluster", "migrate")
			require.Zero(t, code)
		}
		slots = append(slots, m.serve())
	}
	for i, slot := range slots {
		header, _ := callersTrace(fmt.Sprint(i + 1))
		recordTraced(t, slot.url, fmt.Sprint("e", i), header)
	}
	for _, slot := range slots {
		slot.stop()
	}
	instances, scopes, sent := map[any]bool{}, map[any]bool{}, map[string]bool{}
	for i := range slots {
		_, trace := callersTrace(fmt.Sprint(i + 1))
		spans := ofTrace(c.Spans(), trace)
		record := collector.One(t, spans, "record_event")
		instances[record.Resource["service.instance.id"]] = true
		assert.NotEmpty(t, record.Resource["host.name"])
		scopes[record.Attributes["memhost.scope"]] = true
		sent["00-"+trace+"-"+collector.One(t, spans, "POST /post").ID+"-01"] = true
	}
	assert.Len(t, instances, hosts)
	assert.Len(t, scopes, 1)
	backend.mu.Lock()
	defer backend.mu.Unlock()
	for _, header := range backend.list {
		delete(sent, header)
	}
	assert.Empty(t, sent, "the backend got %v", backend.list)
}

// TestAnEvaluationSendsSpansWhereTheCommandSaysSo, but not because of the memhost.yaml in the folder.
func TestAnEvaluationSendsSpansWhereTheCommandSaysSo(t *testing.T) {
	brief.Leave(t)
	c := collector.New(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"),
		[]byte("telemetry: {otlp: {endpoint: "+c.URL+"}}\n"), 0o600))
	_, code := m.run("eval", "pack", "build", "synth", "-o", "s.pack", "--option", "personas=1", "--option", "sessions=1",
		"--option", "turns=1")
	require.Zero(t, code)
	evaluate := func(out string, more ...string) {
		t.Helper()
		args := []string{"eval", "run", "--pack", "s.pack", "--providers", "full_history", "--no-references", "--out", out}
		_, code := m.run(append(args, more...)...)
		require.Zero(t, code)
	}
	evaluate("silent")
	require.Empty(t, c.Spans())
	evaluate("told", "--config", "memhost.yaml")
	spans := c.Spans()
	run := collector.One(t, spans, "evaluation")
	require.Equal(t, run.ID, collector.One(t, spans, "cell").Parent)
	require.NotEmpty(t, collector.Named(spans, "probe"))
	_, code = m.run("eval", "run", "--pack", "s.pack", "--providers", "full_history", "--out", "no", "--set",
		"telemetry.otlp.endpoint=nowhere")
	require.NotZero(t, code)
}
