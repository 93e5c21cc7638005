package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// recorder answers a batch event by event: with a receipt, or for the id "bad" with an error that names the event's
// place.
func recorder(batches *[][]string) *servertest.Slot {
	return &servertest.Slot{Answer: func(_ context.Context, op string, request any) (any, error) {
		if op == abi.OpRecordEvent {
			return &abi.WriteReceipt{EventID: request.(*abi.MemoryEvent).EventID}, nil
		}
		out := &abi.BatchReceipts{}
		var ids []string
		for i, e := range request.(*abi.EventBatch).Events {
			ids = append(ids, e.EventID)
			if e.EventID == "bad" {
				out.Receipts = append(out.Receipts,
					abi.ReceiptOrError{EventID: "bad",
						Error: abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("events[%d].turn_id: empty", i))})
				continue
			}
			out.Receipts = append(out.Receipts, abi.ReceiptOrError{Receipt: &abi.WriteReceipt{EventID: e.EventID}})
		}
		*batches = append(*batches, ids)
		return out, nil
	}}
}

func receipts(t *testing.T, s *server.Server, body string) []abi.ReceiptOrError {
	t.Helper()
	w := ask(s.Handler(), "POST", wire.PathEventsBatch, body)
	require.Equal(t, 200, w.Code, w.Body)
	var answer abi.BatchReceipts
	require.NoError(t, abi.Unmarshal(w.Body.Bytes(), &answer))
	return answer.Receipts
}

func TestOneWrongEventStopsNoOther(t *testing.T) {
	var batches [][]string
	s, _ := newServer(t, recorder(&batches))
	got := receipts(t, s, `{"events":[{"event_id":"a"},{"event_id":"b","mesages":[]},{"event_id":"bad"},7,{"event_id":"c","messages":[{"content":1}]},{"event_id":"d"},null]}`)
	require.Equal(t, [][]string{{"a", "bad", "d", ""}}, batches)
	require.Len(t, got, 7)
	for i, id := range map[int]string{0: "a", 5: "d", 6: ""} {
		require.Equal(t, id, got[i].Receipt.EventID)
	}
	for i, want := range map[int][2]string{
		1: {"b", `events[1].mesages: unknown field, did you mean "messages"?`},
		2: {"bad", "events[2].turn_id: empty"},
		3: {"", "events[3]: want an object, got a number"},
		4: {"c", "events[4].messages[0].content: want a string, got a number"},
	} {
		require.Equal(t, want[0], got[i].EventID)
		require.Equal(t, want[1], got[i].Error.Message)
		require.Equal(t, abi.CodeInvalidArgument, got[i].Error.Code)
	}
	require.Equal(t, abi.OpRecordEvents, got[1].Error.Operation)
}

func TestAnEventThatCouldBeTakenForTwoStopsNoOther(t *testing.T) {
	var batches [][]string
	s, _ := newServer(t, recorder(&batches))
	got := receipts(t, s, `{"events":[{"event_id":"a"},{"event_id":"b","user_id":"ann","user_id":"bob"},{"event_id":"c","user_id":"\ud83d"},{"event_id":"d"}]}`)
	require.Equal(t, [][]string{{"a", "d"}}, batches)
	require.Equal(t, "events[1].user_id: given twice, and which of the two counts would be a guess",
		got[1].Error.Message)
	require.Contains(t, got[2].Error.Message, "half of a surrogate pair")
}

func TestABatchOfWrongEventsDoesNotReachTheSlot(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	require.Len(t, receipts(t, s, `{"events":[{"x":1},{"y":1}]}`), 2)
}

func TestAnEmptyBatchIsTheSlotsToRefuse(t *testing.T) {
	s, _ := newServer(t, failing(abi.NewError(abi.CodeInvalidArgument, "events: want at least one")))
	for _, body := range []string{`{}`, `{"events":[]}`, `{"events":null}`, `null`} {
		w := ask(s.Handler(), "POST", wire.PathEventsBatch, body)
		require.Equal(t, 400, w.Code, body)
		require.Equal(t, abi.OpRecordEvents, problem(t, w).Operation)
	}
}

func TestALargeBatchIsOneRequest(t *testing.T) {
	var batches [][]string
	s, _ := newServer(t, recorder(&batches))
	const n = 10_000
	got := receipts(t, s, `{"events":[`+strings.Repeat(anEvent+",", n-1)+anEvent+`]}`)
	require.Len(t, got, n)
	require.Len(t, batches[0], n)
}

func TestASlotThatMiscountsIsCaught(t *testing.T) {
	s, _ := newServer(t, &servertest.Slot{Answer: func(context.Context, string, any) (any, error) {
		return &abi.BatchReceipts{}, nil
	}})
	w := ask(s.Handler(), "POST", wire.PathEventsBatch, `{"events":[{}]}`)
	require.Equal(t, 500, w.Code)
	require.Contains(t, problem(t, w).Message, "0 receipts for 1 events")
}

func TestTheConfiguredScopeOnly(t *testing.T) {
	var batches [][]string
	only := func(scope abi.MemoryScope) *server.Server {
		s, _ := newServer(t, recorder(&batches), func(o *server.Options) { o.Scopes.Only = &scope })
		return s
	}
	event := func(run, user, agent string) string {
		return fmt.Sprintf(`{"event_id":"e","run_id":%q,"user_id":%q,"agent_id":%q}`, run, user, agent)
	}
	plain, agent := only(abi.MemoryScope{RunID: "r", PersonaID: "u", BackendNamespace: "n"}),
		only(abi.MemoryScope{RunID: "r", PersonaID: "u", AgentID: "a"})
	for _, c := range []struct {
		s     *server.Server
		event string
		says  string
	}{
		{plain, event("r", "u", ""), ""}, {plain, event("r", "u", "a label"), ""},
		{plain, event("R", "u", ""), "run_id:"}, {plain, event("r", "", ""), "user_id:"},
		{agent, event("r", "u", "a"), ""}, {agent, event("r", "u", "b"), "agent_id:"},
		{agent, event("r", "u", ""), "agent_id:"},
	} {
		w := ask(c.s.Handler(), "POST", wire.PathEvents, c.event)
		if c.says == "" {
			require.Equal(t, 200, w.Code, c.event)
			continue
		}
		require.Equal(t, 403, w.Code, c.event)
		e := problem(t, w)
		require.Equal(t, abi.CodeDenied, e.Code)
		require.Equal(t, "scope", e.Reason)
		require.Contains(t, e.Message, c.says)
	}

	got := receipts(t, plain, `{"events":[`+event("r", "u", "")+`,`+event("r", "x", "")+`,{"z":1},`+event("r", "u",
		"")+`]}`)
	require.NotNil(t, got[0].Receipt)
	require.Equal(t, abi.CodeDenied, got[1].Error.Code)
	require.Contains(t, got[1].Error.Message, "events[1].user_id:")
	require.Equal(t, "e", got[1].EventID)
	require.Equal(t, abi.CodeInvalidArgument, got[2].Error.Code)
	require.NotNil(t, got[3].Receipt)
}

func TestTheConfiguredScopeOnlyAtEveryRouteThatNamesOne(t *testing.T) {
	scope := abi.MemoryScope{RunID: "r", PersonaID: "u", BackendNamespace: "n"}
	only := func(o *server.Options) { o.Scopes.Only = &scope }
	closed, _ := newServer(t, untouchable(t), only)
	open, _ := newServer(t, new(servertest.Slot), only)
	for path, field := range map[string]string{wire.PathScopes: "", wire.PathScopesReset: "",
		wire.PathRetrieve: "scope", wire.PathFormat: "scope", wire.PathReadiness: "scope",
		wire.PathInventory: "scope", wire.PathFeedback: "scope", wire.PathForget: "scope", wire.PathMutations: "scope",
		wire.PathProvenance: "scope", wire.PathNativeQuery: "scope", wire.PathMode: "scope"} {
		method := "POST"
		if path == wire.PathMode {
			method = "PUT"
		}
		in := func(scope string) string {
			switch {
			case field == "":
				return scope
			case path == wire.PathMode:
				return `{"read_only":true,"scope":` + scope + `}`
			}
			return `{"scope":` + scope + `}`
		}
		for _, good := range []string{`{"run_id":"r","persona_id":"u"}`,
			`{"run_id":"r","persona_id":"u","backend_namespace":"n"}`} {
			require.Equal(t, 200, ask(open.Handler(), method, path, in(good)).Code, path)
		}
		for _, bad := range []string{`{"run_id":"x","persona_id":"u"}`, `{"run_id":"r","persona_id":"U"}`,
			`{"run_id":"r","persona_id":"u","backend_namespace":"m"}`, `{}`} {
			w := ask(closed.Handler(), method, path, in(bad))
			require.Equal(t, 403, w.Code, path)
			e := problem(t, w)
			require.Equal(t, "scope", e.Reason)
			require.Equal(t, field != "", strings.HasPrefix(e.Message, "scope."), e.Message)
		}
	}
	require.Equal(t, 200, ask(open.Handler(), "PUT", wire.PathMode, `{"read_only":true}`).Code,
		"the slot's own mode has no scope")
}

func TestABatchIsBounded(t *testing.T) {
	s, _ := newServer(t, recorder(new([][]string)))
	list := func(of string, n int) string {
		return `{"events":[` + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + `]}`
	}
	for body, says := range map[string]string{
		list(`{}`, 100_001):  "events: 100001 in one batch, the limit is 100000",
		list(`7`, 100_001):   "events: 100001 in one batch",
		list(`7`, 1_100_000): "1099999 commas, the limit is 1048576"} {
		w := ask(s.Handler(), "POST", wire.PathEventsBatch, body)
		require.Equal(t, 413, w.Code, w.Body)
		require.Contains(t, w.Body.String(), says)
	}
	require.Len(t, receipts(t, s, list(`7`, 100_000)), 100_000)
	table := `"` + strings.Repeat(`1,2,\",3,\n`, 400_000) + `"`
	require.Len(t, receipts(t, s, list(table, 1)), 1, "commas in a text are no values")
}
