package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "run1", PersonaID: "alice"}

func TestMain(m *testing.M) { testcache.Run(m) }

// bench is the module on standard Go, with the fake behind its routes and one clock for both.
type bench struct {
	*sdktest.Host
	t      sdktest.TB
	server *fake.Server
	at     time.Time
	// answer, if set, may answer a request instead of the server; if it returns false, the server answers.
	answer   func(sdktest.Request) (sdktest.Reply, bool)
	backend  func(sdktest.Request) sdktest.Reply
	manifest abi.ModuleManifest
}

func newBench(t testing.TB, mood fake.Mood, block string) *bench {
	t.Helper()
	text, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	b := &bench{t: t, at: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, abi.UnmarshalStrict(text, &b.manifest))
	require.NoError(t, b.manifest.Validate())
	b.server = fake.New(fake.Options{Mood: mood, Now: func() time.Time { return b.at }})
	b.backend = sdktest.Handler(t, text, nil, b.server)
	b.Host = sdktest.New(t, sdktest.Options{Provider: "honcho", Kind: abi.KindArchitecture,
		Config: `{"url":"http://h"` + block + `}`, Manifest: text, HTTP: b.serve})
	b.pass(0)
	return b
}

// pass advances the clock.
func (b *bench) pass(d time.Duration) {
	b.at = b.at.Add(d)
	b.Now = b.at.Format(time.RFC3339Nano)
}

func (b *bench) serve(r sdktest.Request) sdktest.Reply {
	if b.answer != nil {
		if reply, mine := b.answer(r); mine {
			return reply
		}
	}
	reply := b.backend(r)
	for _, e := range b.manifest.Empty {
		reply.Empty = reply.Empty || e.Route == r.Route && e.Status == reply.Status &&
			regexp.MustCompile(e.Body).MatchString(reply.Body)
	}
	return reply
}

func turn(id, session string, said ...string) *abi.MemoryEvent {
	e := &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, SessionID: session, TurnID: "t-" +
		id, Timestamp: "2026-03-01T10:00:00+01:00"}
	for i, text := range said {
		e.Messages = append(e.Messages, abi.Message{Role: []abi.Role{abi.RoleUser, abi.RoleAssistant}[i%2],
			Content: &text})
	}
	return e
}

func (b *bench) setup(t testing.TB) *abi.SetupReceipt {
	t.Helper()
	receipt, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
	require.NoError(t, err)
	return receipt
}

func (b *bench) record(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return sdktest.Do(b.Host, abi.OpRecordEvent, scope, withBackend(recordEvent), e)
}

func (b *bench) mustRecord(t testing.TB, e *abi.MemoryEvent) *abi.WriteReceipt {
	t.Helper()
	receipt, err := b.record(e)
	require.NoError(t, err)
	return receipt
}

func (b *bench) ready(t testing.TB, markers ...string) *abi.BackendReadiness {
	t.Helper()
	answer, err := sdktest.Do(b.Host, abi.OpReadiness, scope, withBackend(readiness),
		&abi.ReadinessMarkers{Markers: markers})
	require.NoError(t, err)
	return answer
}

func (b *bench) ask(query string, change ...func(*abi.RetrieveRequest)) (*abi.RetrieveResult, error) {
	r := &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "s-new"}
	for _, f := range change {
		f(r)
	}
	return sdktest.Do(b.Host, abi.OpRetrieve, scope, withBackend(retrieve), r)
}

func (b *bench) mustAsk(t testing.TB, query string, change ...func(*abi.RetrieveRequest)) *abi.RetrieveResult {
	t.Helper()
	result, err := b.ask(query, change...)
	require.NoError(t, err)
	return result
}

func (b *bench) find(t testing.TB, id string, markers ...string) *abi.FindEventAnswer {
	t.Helper()
	answer, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
		&abi.FindEventRequest{EventID: id, Markers: markers, SentAt: b.Now})
	require.NoError(t, err)
	return answer
}

// routes returns the routes used since the last call.
func (b *bench) routes() (names []string) {
	for _, r := range b.Sent {
		names = append(names, r.Route)
	}
	b.Sent = nil
	return names
}

// messages returns a session's messages from the server's API.
func (b *bench) messages(t testing.TB, session string) (list []map[string]any) {
	t.Helper()
	s, err := settingsOf(b.Call(abi.OpRetrieve, scope))
	require.NoError(t, err)
	n := s.native(b.Call(abi.OpRetrieve, scope))
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, httptest.NewRequest(http.MethodPost,
		"/v3/workspaces/"+n.workspace+"/sessions/"+n.session(session)+"/messages/list?size=100",
		strings.NewReader("{}")))
	var page struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
	return page.Items
}

var quick = fake.Mood{Flush: true}

// jsonOf reads a value's JSON into another.
func jsonOf(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
