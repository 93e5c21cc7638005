package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// TestABodyForAnotherRouteIsToldWhere: the error of the wrong one of the two routes for events names the right one.
func TestABodyForAnotherRouteIsToldWhere(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	for _, c := range []struct{ name, path, body, says, hint string }{
		{"an event to the batch", wire.PathEventsBatch, anEvent, "this is one event, and this route takes several",
			`as {"events": [{...}]}`},
		{"an event without messages to the batch", wire.PathEventsBatch, `{"event_id":"e-1","user_id":"u"}`,
			"this is one event, and this route takes several", `as {"events": [{...}]}`},
		{"a list to the batch", wire.PathEventsBatch, "[" + anEvent + "]", "",
			`write {"events": [...]} around the list`},
		{"a batch to the event", wire.PathEvents, `{"events":[` + anEvent + `]}`,
			"these are several events, and this route takes one", wire.PathEventsBatch},
		{"a field like none", wire.PathEvents, `{"zzzzzz":1}`, "zzzzzz: unknown field, want one of event_id, ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := problem(t, ask(s.Handler(), "POST", c.path, c.body))
			require.Contains(t, e.Message, c.says)
			require.Contains(t, e.Hint, c.hint)
		})
	}
}

// TestBothNamesOfAUserAreRead: user_id and persona_id are both accepted, with a hint at the right one.
func TestBothNamesOfAUserAreRead(t *testing.T) {
	s, _ := newServer(t, &servertest.Slot{Answer: func(_ context.Context, op string, request any) (any, error) {
		if op == abi.OpRecordEvents {
			return &abi.BatchReceipts{Receipts: []abi.ReceiptOrError{{Receipt: &abi.WriteReceipt{EventID: "e-1"}}}}, nil
		}
		return nil, nil
	}})
	for _, c := range []struct{ name, path, body, hint string }{
		{"a question", wire.PathRetrieve, `{"query":"x","scope":{"run_id":"r","user_id":"u"},"session_id":"s"}`,
			"scope.user_id was read as scope.persona_id"},
		{"a scope", wire.PathScopes, `{"run_id":"r","user_id":"u"}`, "user_id was read as persona_id"},
		{"a batch", wire.PathEventsBatch,
			`{"events":[` + strings.Replace(anEvent, "user_id", "persona_id", 1) + `]}`,
			"events[0].persona_id was read as events[0].user_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(s.Handler(), "POST", c.path, c.body)
			require.Equal(t, 200, w.Code, w.Body)
			require.Equal(t, c.hint, w.Header().Get("Memhost-Hint"))
		})
	}
	for name, body := range map[string]string{
		"both":       `{"query":"x","scope":{"run_id":"r","user_id":"u","persona_id":"p"},"session_id":"s"}`,
		"one, twice": `{"query":"x","scope":{"run_id":"r","user_id":"u","user_id":"p"},"session_id":"s"}`,
	} {
		w := ask(s.Handler(), "POST", wire.PathRetrieve, body)
		require.Equal(t, 400, w.Code, name)
		require.Empty(t, w.Header().Get("Memhost-Hint"), name)
	}
}
