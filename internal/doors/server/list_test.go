package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// listing is a report.Listing that notes what it is asked.
type listing struct {
	scopes report.ScopeQuery
	events report.EventQuery
}

func (l *listing) ListScopes(_ context.Context, q report.ScopeQuery) (*report.ScopePage, error) {
	l.scopes = q
	page := &report.ScopePage{Next: "ab"}
	for _, run := range []string{"one", "two"} {
		page.Scopes = append(page.Scopes, report.ListedScope{ScopeMapping: report.ScopeMapping{
			Scope: abi.MemoryScope{RunID: run, PersonaID: "u"}, Generation: 2,
			NativeScope: map[string]string{"id": run}, Since: "2026-03-01T09:00:02Z"}, Lost: 3})
		if q.Counts {
			one := &page.Scopes[len(page.Scopes)-1]
			one.Events, one.LastAt = new(int64(12)), "2026-03-01T10:00:00Z"
		}
	}
	return page, nil
}

func (l *listing) ListEvents(_ context.Context, q report.EventQuery) (*report.EventPage, error) {
	l.events = q
	return &report.EventPage{Generation: 1, Events: []report.ListedEvent{{EventID: "e-1", SessionID: "s", State: report.EventSent,
		SentAt: "2026-03-01T09:00:02Z"}}}, nil
}

func TestScopesAndEventsAreListed(t *testing.T) {
	l := new(listing)
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Listing = l })
	w := ask(s.Handler(), "GET", wire.PathScopes+"?limit=7&after=cd", "")
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, report.ScopeQuery{After: "cd", Limit: 7}, l.scopes)
	require.JSONEq(t, `{"scopes":[
		{"scope":{"run_id":"one","persona_id":"u"},"generation":2,"native_scope":{"id":"one"},"since":"2026-03-01T09:00:02Z","queued":0,"pending":0,"lost":3},
		{"scope":{"run_id":"two","persona_id":"u"},"generation":2,"native_scope":{"id":"two"},"since":"2026-03-01T09:00:02Z","queued":0,"pending":0,"lost":3}
		],"next":"ab"}`, w.Body.String())

	w = ask(s.Handler(), "POST", wire.PathScopesList, `{"contains":"on","only_open":true,"counts":true,"limit":3,"after":"cd"}`)
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, report.ScopeQuery{After: "cd", Limit: 3, Contains: "on", OnlyOpen: true, Counts: true}, l.scopes)
	require.Contains(t, w.Body.String(), `"lost":3,"events":12,"last_at":"2026-03-01T10:00:00Z"}`)

	w = ask(s.Handler(), "POST", wire.PathEventsList,
		`{"scope":{"run_id":"r","persona_id":"u"},"limit":5,"after":"e-0","states":["sent"],"session_id":"s"}`)
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, report.EventQuery{Scope: abi.MemoryScope{RunID: "r", PersonaID: "u"}, After: "e-0", Limit: 5,
		States: []string{"sent"}, SessionID: "s"}, l.events)
	require.JSONEq(t, `{"generation":1,"events":[{"event_id":"e-1","session_id":"s","state":"sent","sent_at":"2026-03-01T09:00:02Z"}]}`,
		w.Body.String())
}

func TestListsRefuseWhatTheyDoNotKnow(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Listing = new(listing) })
	for _, query := range []string{"?limit=0", "?limit=501", "?limit=x", "?limits=1", "?after=%zz"} {
		e := problem(t, ask(s.Handler(), "GET", wire.PathScopes+query, ""))
		require.Equal(t, abi.CodeInvalidArgument, e.Code, query)
	}
	for _, body := range []string{`{"limit":501}`, `{"limit":-1}`, `{"find":"x"}`, `{"counts":1}`} {
		e := problem(t, ask(s.Handler(), "POST", wire.PathScopesList, body))
		require.Equal(t, abi.CodeInvalidArgument, e.Code, body)
	}
	for _, body := range []string{`{}`, `{"scope":{"run_id":"r","persona_id":"u"},"limit":501}`,
		`{"scope":{"run_id":"r","persona_id":"u"},"limit":1.5}`, `{"scope":{"run_id":"r","persona_id":"u"},"states":"x"}`,
		`{"scope":{"run_id":"r","persona_id":"u"},"state":["x"]}`} {
		e := problem(t, ask(s.Handler(), "POST", wire.PathEventsList, body))
		require.Equal(t, abi.CodeInvalidArgument, e.Code, body)
	}
	none, _ := newServer(t, new(servertest.Slot))
	require.Equal(t, 501, ask(none.Handler(), "GET", wire.PathScopes, "").Code)
}

func TestADoorOfOneScopeListsThatScopeOnly(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) {
		o.Listing, o.Scopes.Only = new(listing), &abi.MemoryScope{RunID: "two", PersonaID: "u"}
	})
	w := ask(s.Handler(), "GET", wire.PathScopes, "")
	require.Contains(t, w.Body.String(), `"run_id":"two"`)
	require.NotContains(t, w.Body.String(), `"run_id":"one"`)
	w = ask(s.Handler(), "POST", wire.PathScopesList, `{"counts":true}`)
	require.Contains(t, w.Body.String(), `"run_id":"two"`)
	require.NotContains(t, w.Body.String(), `"run_id":"one"`)
	e := problem(t, ask(s.Handler(), "POST", wire.PathEventsList, `{"scope":{"run_id":"one","persona_id":"u"}}`))
	require.Equal(t, abi.CodeDenied, e.Code)
}
