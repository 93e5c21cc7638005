package abi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type validator interface {
	Decodable
	Validate() error
}

const (
	okScope = `"scope":{"run_id":"r","persona_id":"p"}`
	okEvent = `"event_id":"e","run_id":"r","user_id":"u","session_id":"s","turn_id":"t","timestamp":"2026-03-01T09:30:00Z"`
	okTurn  = `"messages":[{"role":"user","content":"x"}]`
)

// checkValid decodes each document into a new value and compares the message of Validate; "" means valid.
func checkValid(t *testing.T, fresh func() validator, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		x := fresh()
		require.NoError(t, UnmarshalStrict([]byte(c[0]), x), c[0])
		err := x.Validate()
		if c[1] == "" {
			require.NoError(t, err, c[0])
			continue
		}
		require.Error(t, err, c[0])
		require.Equal(t, c[1], AsError(err).Message, c[0])
		require.Equal(t, CodeInvalidArgument, CodeOf(err))
	}
}

func TestValidateScope(t *testing.T) {
	checkValid(t, func() validator { return new(MemoryScope) }, [][2]string{
		{`{"run_id":"r","persona_id":"p"}`, ``},
		{`{"run_id":"*","persona_id":"..","agent_id":" ","backend_namespace":"\u0001\"😀"}`, ``},
		{`{"run_id":"` + strings.Repeat("é", 256) + `","persona_id":"p"}`, ``},
		{`{"run_id":"` + strings.Repeat("é", 256) + `x","persona_id":"p"}`, `run_id: 513 bytes, want at most 512`},
		{`{"persona_id":"p"}`, `run_id: missing or empty`},
		{`{"run_id":"r","persona_id":""}`, `persona_id: missing or empty`},
		{`{"run_id":"a\u0000b","persona_id":"p"}`, `run_id: contains U+0000`},
		{`{"run_id":"r","persona_id":"p","agent_id":"\u0000"}`, `agent_id: contains U+0000`},
	})
	require.EqualError(t, (&MemoryScope{RunID: "r", PersonaID: "\xff"}).Validate(),
		"invalid_argument: persona_id: not valid UTF-8")
}

func TestValidateEvent(t *testing.T) {
	with := func(messages string) string { return `{` + okEvent + `,"messages":[` + messages + `]}` }
	checkValid(t, func() validator { return new(MemoryEvent) }, [][2]string{
		{`{` + okEvent + `,` + okTurn + `}`, ``},
		{`{` + okEvent + `}`, `messages: want at least one message`},
		{`{` + okTurn + `}`, `event_id: missing or empty`},
		{`{"event_id":"e","run_id":"r","user_id":"u","session_id":"s","timestamp":"x"}`, `turn_id: missing or empty`},
		{strings.Replace(`{`+okEvent+`}`, `2026-03-01T09:30:00Z`, `2026-03-01 09:30:00`, 1),
			`timestamp: "2026-03-01 09:30:00" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z`},
		{strings.Replace(`{`+okEvent+`}`, `2026-03-01T09:30:00Z`, ``, 1), `timestamp: missing or empty`},
		{with(`{"role":"user","content":"x"},{"role":"robot","content":"x"}`),
			`messages[1].role: "robot" is not one of user, assistant, system, tool`},
		{with(`{"content":"x"}`), `messages[0].role: missing, want one of user, assistant, system, tool`},
		{with(`null`), `messages[0].role: missing, want one of user, assistant, system, tool`},
		{with(`{"role":"assistant","content":null}`), `messages[0].content: missing, and there are no tool_calls`},
		{with(`{"role":"assistant","content":"","tool_calls":[]}`), ``},
		{with(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","name":"f","arguments":"not json"}]}`), ``},
		{with(`{"role":"assistant","tool_calls":[{"id":"1","name":"f"},{"id":"2"}]}`),
			`messages[0].tool_calls[1].name: missing or empty`},
		{with(`{"role":"assistant","tool_calls":[{"name":"f"}]}`), `messages[0].tool_calls[0].id: missing or empty`},
		{with(`{"role":"tool","content":"42"}`), ``},
	})
	bad := MemoryEvent{}
	require.NoError(t, Unmarshal([]byte(`{`+okEvent+`,`+okTurn+`}`), &bad))
	bad.Metadata = map[string]Raw{"b": Raw("}"), "a": Raw("{"), "c": nil}
	require.EqualError(t, bad.Validate(), "invalid_argument: metadata.a: not JSON: unexpected end of input at byte 1")
	content := "\xff"
	bad.Messages[0].Content = &content
	require.EqualError(t, bad.Validate(), "invalid_argument: messages[0].content: not valid UTF-8")
}

func TestValidateEventBatch(t *testing.T) {
	checkValid(t, func() validator { return new(EventBatch) }, [][2]string{
		{`{}`, `events: want at least one event`},
		{`{"events":[{` + okEvent + `,` + okTurn + `}]}`, ``},
		{`{"events":[{` + okEvent + `,` + okTurn + `},{` + okEvent + `,"messages":[{}]}]}`,
			`events[1].messages[0].role: missing, want one of user, assistant, system, tool`},
	})
}

func TestValidateRetrieveRequest(t *testing.T) {
	with := func(more string) string { return `{"query":"q",` + okScope + `,"session_id":"s"` + more + `}` }
	checkValid(t, func() validator { return new(RetrieveRequest) }, [][2]string{
		{with(``), ``},
		{`{` + okScope + `,"session_id":"s"}`, ``},
		{`{"query":"q","session_id":"s"}`, `scope.run_id: missing or empty`},
		{`{"query":"q",` + okScope + `}`, `session_id: missing or empty`},
		{with(`,"budget":{"min_tokens":5,"max_tokens":5,"max_items":0}`), ``},
		{with(`,"budget":{"min_tokens":6,"max_tokens":5}`), `budget.min_tokens: more than max_tokens`},
		{with(`,"budget":{"max_items":-1}`), `budget.max_items: negative`},
		{with(`,"filters":{"cross_context":true,"k":[1]}`), ``},
		{with(`,"filters":{"cross_context":"yes"}`), `filters.cross_context: want true or false`},
		{with(`,"as_of":"2026-03-01T09:30:00+01:00"`), ``},
		{with(`,"as_of":"yesterday"`), `as_of: "yesterday" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z`},
	})
}

func TestValidateOtherRequests(t *testing.T) {
	const badScope = `"scope":{"run_id":"r"}`
	checkValid(t, func() validator { return new(ContextBudget) }, [][2]string{{`{}`, ``}, {`{"max_tokens":-1}`,
		`max_tokens: negative`}})
	checkValid(t, func() validator { return new(FormatRequest) }, [][2]string{
		{`{` + okScope + `}`, ``},
		{`{` + badScope + `}`, `scope.persona_id: missing or empty`},
		{`{` + okScope + `,"budget":{"min_tokens":-1}}`, `budget.min_tokens: negative`},
	})
	require.EqualError(t, (&FormatRequest{Result: RetrieveResult{Raw: RawResult{Calls: []RawCall{{Body: Raw(
		"x")}}}}}).Validate(),
		"invalid_argument: result.raw.calls[0].body: not JSON: unexpected 'x' at byte 0")
	checkValid(t, func() validator { return new(AdapterMode) }, [][2]string{
		{`{"read_only":true}`, ``},
		{`{"read_only":true,` + badScope + `}`, `scope.persona_id: missing or empty`},
	})
	checkValid(t, func() validator { return new(ReadinessRequest) }, [][2]string{
		{`{` + okScope + `}`, ``}, {`{` + okScope + `,"timeout_ms":-1}`, `timeout_ms: negative`}, {`{}`,
			`scope.run_id: missing or empty`}})
	checkValid(t, func() validator { return new(InventoryRequest) }, [][2]string{{`{` + okScope + `}`, ``}, {`{}`,
		`scope.run_id: missing or empty`}})
	checkValid(t, func() validator { return new(NativeQuery) }, [][2]string{
		{`{` + okScope + `,"name":"n","params":{"a":null}}`, ``}, {`{` + okScope + `}`, `name: missing or empty`}})
	checkValid(t, func() validator { return new(NativeMutation) }, [][2]string{
		{`{` + okScope + `,"name":"n"}`, ``}, {`{"name":"n"}`, `scope.run_id: missing or empty`}})
}

func TestValidateFeedback(t *testing.T) {
	with := func(more string) string {
		return `{"feedback_id":"f",` + okScope + `,"session_id":"s","timestamp":"2026-03-01T09:30:00Z","text":"x"` +
			more +
			`}`
	}
	checkValid(t, func() validator { return new(MemoryFeedback) }, [][2]string{
		{with(``), ``},
		{with(`,"history":[{"role":"user","content":"x"}],"native_ids":["a"],"event_id":"e"`), ``},
		{with(`,"history":[{"role":"user"}]`), `history[0].content: missing, and there are no tool_calls`},
		{with(`,"native_ids":["a",""]`), `native_ids[1]: missing or empty`},
		{`{` + okScope + `}`, `feedback_id: missing or empty`},
	})
}

func TestValidateProvenance(t *testing.T) {
	const one = `want exactly one of native_id, event_id, and from with to`
	with := func(more string) string { return `{` + okScope + more + `}` }
	checkValid(t, func() validator { return new(ProvenanceRequest) }, [][2]string{
		{with(`,"native_id":"n","limit":5,"cursor":"c"`), ``},
		{with(`,"event_id":"e"`), ``},
		{with(`,"from":"2026-03-01T09:30:00Z","to":"2026-03-01T10:30:00+01:00"`), ``},
		{with(``), one},
		{with(`,"native_id":"n","event_id":"e"`), one},
		{with(`,"native_id":"n","from":"2026-03-01T09:30:00Z"`), one},
		{with(`,"to":"2026-03-01T09:30:00Z"`), `from: "" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z`},
		{with(`,"from":"2026-03-01T09:30:01Z","to":"2026-03-01T10:30:00+01:00"`), `to: earlier than from`},
		{with(`,"event_id":"e","limit":-1`), `limit: negative`},
	})
}

func TestValidateForget(t *testing.T) {
	checkValid(t, func() validator { return new(ForgetRequest) }, [][2]string{
		{`{` + okScope + `,"event_ids":["e"],"reason":"r"}`, ``},
		{`{` + okScope + `,"session_id":"s"}`, ``},
		{`{` + okScope + `,"from":"2026-03-01T00:00:00Z","to":"2026-03-01T00:00:00Z"}`, ``},
		{`{` + okScope + `,"native_ids":["n"]}`, ``},
		{`{"event_ids":["e"]}`, `scope.run_id: missing or empty`},
		{`{` + okScope + `}`, `want exactly one of event_ids, session_id, from with to, and native_ids`},
		{`{` + okScope + `,"event_ids":["e"],"native_ids":["n"]}`,
			`want exactly one of event_ids, session_id, from with to, and native_ids`},
		{`{` + okScope + `,"event_ids":["e",""]}`, `event_ids[1]: missing or empty`},
		{`{` + okScope + `,"session_id":"\u0000"}`, `session_id: contains U+0000`},
		{`{` + okScope + `,"from":"2026-03-01T00:00:00Z"}`,
			`to: "" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z`},
		{`{` + okScope + `,"from":"2026-03-02T00:00:00Z","to":"2026-03-01T00:00:00Z"}`, `to: earlier than from`},
		{`{` + okScope + `,"native_ids":[""]}`, `native_ids[0]: missing or empty`},
	})
}
