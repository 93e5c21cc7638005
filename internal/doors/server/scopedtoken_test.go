package server_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const slotToken = "the-token-of-the-slot"

func issue(t *testing.T, token server.ScopedToken) string {
	t.Helper()
	text, err := token.Issue(slotToken)
	require.NoError(t, err)
	return "Bearer " + text
}

func annsToken() server.ScopedToken {
	return server.ScopedToken{Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"}, Session: "s1"}
}

// Every route of the OpenAPI document, others outside it, and methods that a route does not have.
func TestAScopedTokenRecordsAndRetrievesAndNothingElse(t *testing.T) {
	mounted := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	slot := &servertest.Slot{Answer: func(_ context.Context, op string, _ any) (any, error) {
		if op != wire.OpCapabilities { // used by /readyz
			t.Errorf("%s reached the slot", op)
		}
		return nil, nil
	}}
	s, _ := newServer(t, slot, withToken(slotToken), func(o *server.Options) {
		o.Mounts = map[string]http.Handler{"/mcp": mounted}
	})
	allowed := []string{"POST /v1/events", "POST /v1/events/batch", "POST /v1/retrieve"}
	open := []string{"GET /healthz", "GET /readyz"} // never require a token
	lines := append(table(), "POST /mcp", "GET /mcp/x", "GET /nothing", "GET /v1/events", "PUT /v1/events", "DELETE /v1/retrieve",
		"POST /v1/events/", "POST /V1/EVENTS", "POST /v1/../v1/mode", "POST /v1/events/../mode")
	bearer := issue(t, annsToken())
	for _, line := range lines {
		method, path, _ := strings.Cut(line, " ")
		w := ask(s.Handler(), method, path, "{", "Authorization", bearer)
		switch {
		case slices.Contains(allowed, line):
			require.Equal(t, 400, w.Code, line) // the body is not JSON
		case slices.Contains(open, line):
			require.NotContains(t, []int{401, 403}, w.Code, line)
		default:
			require.Equal(t, 403, w.Code, line)
			if e := problem(t, w); e.Reason != "scoped_token" {
				t.Errorf("%s: refused for the reason %q", line, e.Reason)
			}
		}
	}
}

func TestAScopedTokenIsForOneScopeAndOneSession(t *testing.T) {
	slot := &servertest.Slot{Answer: func(_ context.Context, op string, q any) (any, error) {
		if e, ok := q.(*abi.MemoryEvent); ok {
			return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
		}
		return nil, nil
	}}
	s, _ := newServer(t, slot, withToken(slotToken))
	retrieve := func(scope, session string) string {
		return `{"query":"q","scope":{` + scope + `},"session_id":"` + session + `"}`
	}
	event := func(fields string) string {
		return `{"event_id":"e-1","turn_id":"1","timestamp":"2026-03-01T09:30:00Z","messages":[{"role":"user","content":"hi"}],` +
			fields + `}`
	}
	const mine = `"run_id":"r","user_id":"ann","session_id":"s1"`
	ann := annsToken()
	anySession := ann
	anySession.Session = ""
	agents := ann
	agents.Scope.AgentID = "bot"
	for _, c := range []struct {
		name, path, body string
		token            server.ScopedToken
		field            string // the rejected field; empty: allowed
	}{
		{"own retrieval", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann"`, "s1"), ann, ""},
		{"another run", wire.PathRetrieve, retrieve(`"run_id":"r2","persona_id":"ann"`, "s1"), ann, "scope.run_id"},
		{"another person", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"bob"`, "s1"), ann, "scope.persona_id"},
		{"an agent", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann","agent_id":"bot"`, "s1"), ann, "scope.agent_id"},
		{"a namespace", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann","backend_namespace":"n"`, "s1"), ann,
			"scope.backend_namespace"},
		{"another session", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann"`, "s2"), ann, "session_id"},
		{"any session", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann"`, "s2"), anySession, ""},
		{"the agent's own", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann","agent_id":"bot"`, "s1"), agents, ""},
		{"without the agent", wire.PathRetrieve, retrieve(`"run_id":"r","persona_id":"ann"`, "s1"), agents, "scope.agent_id"},
		{"own event", wire.PathEvents, event(mine), ann, ""},
		{"event of another run", wire.PathEvents, event(`"run_id":"r2","user_id":"ann","session_id":"s1"`), ann, "run_id"},
		{"event of another person", wire.PathEvents, event(`"run_id":"r","user_id":"bob","session_id":"s1"`), ann, "user_id"},
		{"event of an agent", wire.PathEvents, event(mine + `,"agent_id":"bot"`), ann, "agent_id"},
		{"event of another session", wire.PathEvents, event(`"run_id":"r","user_id":"ann","session_id":"s2"`), ann, "session_id"},
		{"event of any session", wire.PathEvents, event(`"run_id":"r","user_id":"ann","session_id":"s2"`), anySession, ""},
		{"a batch with a foreign event", wire.PathEventsBatch,
			`{"events":[` + event(mine) + `,` + event(`"run_id":"r","user_id":"bob","session_id":"s1"`) + `]}`, ann,
			"events[1].user_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(s.Handler(), "POST", c.path, c.body, "Authorization", issue(t, c.token))
			if c.field == "" {
				require.Equal(t, 200, w.Code, w.Body)
				return
			}
			require.Equal(t, 403, w.Code, w.Body)
			e := problem(t, w)
			require.Equal(t, "scoped_token", e.Reason)
			require.Contains(t, e.Message, c.field+": this token is for another")
		})
	}
}

func TestAScopedTokenCannotBeMadeUp(t *testing.T) {
	s, _ := newServer(t, untouchable(t), withToken(slotToken))
	good := strings.TrimPrefix(issue(t, annsToken()), "Bearer ")
	parts := strings.Split(good, ".")
	foreign, err := annsToken().Issue("another-slots-token")
	require.NoError(t, err)
	bobs := base64.RawURLEncoding.EncodeToString([]byte(`{"scope":{"run_id":"r","persona_id":"bob"}}`))
	expired := annsToken()
	expired.Expires = time.Now().Add(-time.Second)
	for name, token := range map[string]string{"of another slot": foreign, "other claims": parts[0] + "." + bobs + "." + parts[2],
		"no signature": parts[0] + "." + parts[1] + ".", "no claims": parts[0] + "." + parts[2], "cut": good[:len(good)-1],
		"longer": good + "A", "only the prefix": "mhs1.", "expired": strings.TrimPrefix(issue(t, expired), "Bearer ")} {
		w := ask(s.Handler(), "POST", wire.PathRetrieve, "{}", "Authorization", "Bearer "+token)
		require.Equal(t, 401, w.Code, name)
		require.NotContains(t, w.Body.String(), slotToken)
	}
	live := annsToken()
	live.Expires = time.Now().Add(time.Hour)
	require.Equal(t, 400, ask(s.Handler(), "POST", wire.PathRetrieve, "{", "Authorization", issue(t, live)).Code)
}

func TestAScopedTokenNeedsATokenAndAScope(t *testing.T) {
	for name, c := range map[string]struct {
		token server.ScopedToken
		slot  string
	}{"no token": {annsToken(), ""}, "no persona": {server.ScopedToken{Scope: abi.MemoryScope{RunID: "r"}}, slotToken},
		"no run": {server.ScopedToken{Scope: abi.MemoryScope{PersonaID: "ann"}}, slotToken}} {
		_, err := c.token.Issue(c.slot)
		require.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code, name)
	}
}
