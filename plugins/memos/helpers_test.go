package main

import (
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/sdk/sdktest"
)

// test is a *testing.T or a *rapid.T.
type test interface {
	sdktest.TB
	require.TestingT
}

var (
	scope      = abi.MemoryScope{RunID: "run1", PersonaID: "p9"}
	otherScope = abi.MemoryScope{RunID: "run1", PersonaID: "p10"}
)

// bench is a guest host with a fake MemOS behind it. Their common clock moves only when a test moves it.
type bench struct {
	*sdktest.Host
	server *memos.Server
	now    time.Time
	t      test
}

// newBench is the module with a config block (JSON) and a fake. MemOS's background work takes 5 s.
func newBench(t test, block string, o memos.Options) *bench {
	t.Helper()
	b := &bench{now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), t: t}
	o.Now = func() time.Time { return b.now }
	if o.TaskDelay == 0 {
		o.TaskDelay = 5 * time.Second
	}
	b.server = memos.New(o)
	b.Host = newHost(t, block, b.server)
	return b
}

func newHost(t test, block string, backend http.Handler) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "memos", Kind: abi.KindArchitecture, Namespace: "lab",
		Config: block, Manifest: manifest, HTTP: sdktest.Handler(t, manifest, nil, backend)})
}

// wait moves the clock of both.
func (b *bench) wait(d time.Duration) {
	b.now = b.now.Add(d)
	b.Now = b.now.Format(time.RFC3339Nano)
}

// turnEvent is an event with one user message and an answer.
func turnEvent(id, text string) *abi.MemoryEvent {
	answer := "Noted."
	return &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, SessionID: "s1", TurnID: "t-" +
		id, Timestamp: "2026-05-01T12:00:00+02:00",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: &answer}}}
}

func withLabels(e *abi.MemoryEvent, scenario, context, attribute string) *abi.MemoryEvent {
	e.Scenario, e.Context, e.Attribute = scenario, context, attribute
	return e
}

func (b *bench) record(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	b.t.Helper()
	return sdktest.Do(b.Host, abi.OpRecordEvent, scope, withBackend(recordEvent), e)
}

// must records and requires success.
func (b *bench) must(events ...*abi.MemoryEvent) (last *abi.WriteReceipt) {
	b.t.Helper()
	for _, e := range events {
		r, err := b.record(e)
		require.NoError(b.t, err)
		last = r
	}
	return last
}

func retrieveRequest(query string) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "new"}
}

func (b *bench) retrieve(r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	b.t.Helper()
	return sdktest.Do(b.Host, abi.OpRetrieve, r.Scope, withBackend(retrieve), r)
}

// find retrieves and checks what holds for every retrieval: every pointer leads to its item, format_context gives the
// same string, and budgets are kept.
func (b *bench) find(r *abi.RetrieveRequest) *abi.RetrieveResult {
	b.t.Helper()
	result, err := b.retrieve(r)
	require.NoError(b.t, err)
	again, err := sdktest.Do(b.Host, abi.OpFormatContext, r.Scope, withBackend(formatContext),
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: r.Scope})
	require.NoError(b.t, err)
	require.Equal(b.t, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	require.Equal(b.t, *result.Trace.RetrievedCount, int64(len(result.Evidence)))
	if r.Budget.MaxItems != nil {
		texts := int64(0)
		for _, e := range result.Evidence {
			if e.Group == "text_mem" {
				texts++
			}
		}
		require.LessOrEqual(b.t, texts, *r.Budget.MaxItems)
	}
	return result
}

func (b *bench) ready(markers ...string) *abi.BackendReadiness {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpReadiness, scope, withBackend(readiness), &abi.ReadinessMarkers{Markers: markers})
	require.NoError(b.t, err)
	return r
}

// routesUsed returns the routes that the module used since the last call.
func (b *bench) routesUsed() []string {
	var routes []string
	for _, r := range b.Sent {
		routes = append(routes, r.Route)
	}
	b.Sent = nil
	return routes
}

func (b *bench) cube() string {
	s := &settings{config: &abi.GuestConfig{Provider: "memos", Namespace: "lab"}}
	return s.cubeOf(abi.MemoryScope{RunID: scope.RunID, PersonaID: scope.PersonaID}, b.Generation(scope))
}

// codes are the codes of warnings.
func codes(warnings []string) []string {
	var list []string
	for _, w := range warnings {
		code, _, _ := strings.Cut(w, ":")
		list = append(list, code)
	}
	return list
}

const (
	syncFine = `{"add_mode":"sync/fine","graph_store":"neo4j"}`
	syncFast = `{"add_mode":"sync/fast","graph_store":"neo4j"}`
	async    = `{"add_mode":"async","graph_store":"neo4j"}`
)
