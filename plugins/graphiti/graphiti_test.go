package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "user_a_c1", PersonaID: "user_a"}

// pageGroup is the scope's group as shown in the mapping's documentation.
const pageGroup = "mh1_z_elpmasivc5fm6c8_elpmasivc4_z"

// rig is the plugin on a host in memory with a fake Graphiti, which share one clock.
type rig struct {
	*sdktest.Host
	t     testing.TB
	fake  *graphiti.Server
	clock time.Time
	// markers are the markers of all receipts, as the host would keep them.
	markers []string
	// reply, if set, answers requests instead of the fake.
	reply func(sdktest.Request) (sdktest.Reply, bool)
	noDB  *abi.Error
}

// plug makes a rig. More is further keys of the block, each after a comma.
func plug(t testing.TB, u providerSetup, more string) *rig {
	t.Helper()
	return plugTo(t, u, graphiti.Options{}, more)
}

// plugTo is plug with the caller's servers.
func plugTo(t testing.TB, u providerSetup, o graphiti.Options, more string) *rig {
	t.Helper()
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	var m abi.ModuleManifest
	require.NoError(t, abi.Unmarshal(manifest, &m))
	routes := map[string]abi.RouteDecl{}
	for _, r := range m.Routes {
		routes[r.Name] = r
	}
	r := &rig{t: t, clock: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	o.Now = func() time.Time { return r.clock }
	r.fake = graphiti.New(o)
	handler := r.fake.REST()
	block := fmt.Sprintf(`{"url":"http://127.0.0.1:8000","surface":%q`, u.surface)
	switch u.surface {
	case surfaceMCP:
		handler = r.fake.MCP()
	case surfaceCore:
		handler = r.fake.Gateway()
	}
	if u.bolt {
		block += `,"bolt":"bolt://127.0.0.1:7687"`
	}
	r.Host = sdktest.New(t, sdktest.Options{Provider: "graphiti", Kind: abi.KindArchitecture, Config: block + more +
		"}", Manifest: manifest,
		HTTP: func(q sdktest.Request) sdktest.Reply {
			if r.reply != nil {
				if reply, ok := r.reply(q); ok {
					return reply
				}
			}
			return overHTTP(handler, routes[q.Route], q)
		},
		Bolt: func(q sdktest.Query) sdktest.Rows {
			require.True(t, u.bolt, "bolt is not configured")
			if r.noDB != nil {
				return sdktest.Rows{Err: r.noDB}
			}
			return r.rows(q)
		}})
	r.at(r.clock)
	return r
}

// overHTTP sends a plugin's request through a handler as the host would.
func overHTTP(handler http.Handler, route abi.RouteDecl, q sdktest.Request) sdktest.Reply {
	path := route.Path
	for name, value := range q.Params {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	for i, p := range q.Query {
		path += string("?&"[min(i, 1)]) + p.Key + "=" + p.Value
	}
	request := httptest.NewRequest(route.Method, path, strings.NewReader(q.Body))
	request.Host = "127.0.0.1:8000"
	for name, value := range q.Headers {
		request.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	headers := map[string]string{}
	for name, values := range w.Header() {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return sdktest.Reply{Status: int64(w.Code), Headers: headers, Body: w.Body.String()}
}

func (r *rig) rows(q sdktest.Query) sdktest.Rows {
	d := json.NewDecoder(strings.NewReader(q.Params))
	d.UseNumber()
	params := map[string]any{}
	require.NoError(r.t, d.Decode(&params))
	for name, value := range params {
		if n, ok := value.(json.Number); ok {
			whole, err := n.Int64()
			require.NoError(r.t, err)
			params[name] = whole
		}
	}
	columns, rows, up := r.fake.Query(q.Route, params)
	if !up {
		return sdktest.Rows{Err: abi.NewError(abi.CodeUnavailable, "Neo4j cannot be reached")}
	}
	out := sdktest.Rows{Columns: columns}
	for _, row := range rows {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(r.t, e.Encode(row))
		out.Rows = append(out.Rows, strings.TrimSpace(b.String()))
	}
	return out
}

// at sets the clock of host and fake.
func (r *rig) at(t time.Time) {
	r.clock, r.Now = t, t.Format(time.RFC3339Nano)
}

func (r *rig) later(d time.Duration) { r.at(r.clock.Add(d)) }

// turnOn is a turn with one user message, at a day of March 2025.
func turnOn(day int, id, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, SessionID: "s07", TurnID: "t3",
		Timestamp: time.Date(2025, 3, day, 9, 30, 0, 0, time.UTC).Format(time.RFC3339),
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func (r *rig) recordAll(events ...*abi.MemoryEvent) {
	r.t.Helper()
	for _, e := range events {
		receipt, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, recordEvent, e)
		require.NoError(r.t, err)
		require.Equal(r.t, abi.StatusQueued, receipt.Status, "never more than queued")
		require.Empty(r.t, receipt.NativeIDs, "neither server gives an id")
		r.markers = append(r.markers, receipt.Markers...)
	}
}

func (r *rig) ready() *abi.BackendReadiness {
	r.t.Helper()
	answer, err := sdktest.Do(r.Host, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{Markers: r.markers})
	require.NoError(r.t, err)
	return answer
}

func (r *rig) ask(query string) *abi.RetrieveResult {
	r.t.Helper()
	return r.askFor(&abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "new"})
}

// askFor retrieves, and checks that formatting the result again returns the same text.
func (r *rig) askFor(q *abi.RetrieveRequest) *abi.RetrieveResult {
	r.t.Helper()
	result, err := sdktest.Do(r.Host, abi.OpRetrieve, scope, retrieve, q)
	require.NoError(r.t, err)
	again, err := r.formatted(result, q.Budget)
	require.NoError(r.t, err)
	require.Equal(r.t, result.FormattedContext, again.FormattedContext, "format_context gives the same text")
	return result
}

func (r *rig) formatted(result *abi.RetrieveResult, budget abi.ContextBudget) (*abi.FormatResult, error) {
	r.t.Helper()
	envelope := abi.Marshal(&abi.Envelope{Op: abi.OpFormatContext, Scope: scope, Generation: 1, Now: r.Now,
		Body: abi.Marshal(&abi.FormatRequest{Result: *result, Budget: budget, Scope: scope})})
	call := r.Call(abi.OpFormatContext, scope)
	request := new(formatRequest)
	var e abi.Envelope
	require.NoError(r.t, abi.Unmarshal(envelope, &e))
	require.NoError(r.t, abi.Unmarshal(e.Body, request))
	return formatContext(call, request)
}

// direct runs an operation without the checks of Do, for errors.
func direct[I, O any](r *rig, op string, operation func(*sdk.Call, I) (O, error), in I) (O, error) {
	return operation(r.Call(op, scope), in)
}

// sentBy returns the bodies sent by a route.
func (r *rig) sentBy(route string) []string {
	var bodies []string
	for _, q := range r.Sent {
		if q.Route == route {
			bodies = append(bodies, q.Body)
		}
	}
	return bodies
}

func factTexts(result *abi.RetrieveResult) []string {
	list := []string{}
	for _, e := range result.Evidence {
		list = append(list, e.Text)
	}
	return list
}

func each(t *testing.T, run func(t *testing.T, r *rig, u providerSetup), more ...string) {
	t.Helper()
	for _, u := range setUps {
		t.Run(u.String(), func(t *testing.T) { run(t, plug(t, u, strings.Join(more, "")), u) })
	}
}
