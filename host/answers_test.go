package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainAnswers are valid answers of a module that keeps nothing.
func plainAnswers() map[string]string {
	return map[string]string{
		abi.OpSetupScope:    `{"ready":true,"native_scope":{}}`,
		abi.OpRecordEvent:   `{"status":"not_retained","native_ids_kind":"none"}`,
		abi.OpRetrieve:      `{"raw":{"calls":[]},"formatted_context":"","evidence":[]}`,
		abi.OpFormatContext: `{"formatted_context":"","token_count":0,"truncated":false}`,
		abi.OpResetScope:    `{"status":"done"}`,
		abi.OpHealth: `{"status":"ok","consistency_model":"immediate","isolation":"hard",` +
			`"pet_observability":"weak"}`,
	}
}

// answering returns a module whose operations always return the same texts.
func answering(t testing.TB, answers map[string]string) []byte {
	m := goodModule()
	m.code = map[string][]byte{abi.Marker: {}, abi.InitExport: {},
		abi.BufferExport: append([]byte{opI32}, sleb(0xc000)...)}
	for _, op := range slices.Sorted(maps.Keys(answers)) {
		m = m.with(wasmFunc{"", op, []wasmbin.ValueType{wasmbin.I32}, []wasmbin.ValueType{wasmbin.I64}})
		at := len(m.data)
		m.data += answers[op]
		m.code[op] = append([]byte{opI64}, sleb(int64(abi.Pack(uint32(at), uint32(len(answers[op])), false)))...)
	}
	require.Less(t, len(m.data), 0xc000)
	return m.bytes(t)
}

// sleb encodes a number as wasm encodes constants.
func sleb(n int64) (b []byte) {
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// openAnswering opens a module with one answer replaced, and calls that operation.
func openAnswering(t *testing.T, op, answer string) error {
	t.Helper()
	answers := plainAnswers()
	answers[op] = answer
	h := host.Open(t, host.Options{})
	ctx := context.Background()
	s, err := h.Open(ctx, host.ProviderConfig{Name: "hand", Module: answering(t, answers)})
	if err != nil {
		return err
	}
	defer func() { require.NoError(t, s.Close(ctx)) }()
	switch op {
	case abi.OpSetupScope:
		_, err = s.SetupScope(ctx, host.TestScope)
	case abi.OpRecordEvent:
		_, err = s.RecordEvent(ctx, host.Event("e", "x"))
	case abi.OpRetrieve:
		_, err = s.Retrieve(ctx, host.Ask("x"))
	case abi.OpFormatContext:
		_, err = s.FormatContext(ctx, &abi.FormatRequest{Scope: host.TestScope})
	case abi.OpResetScope:
		_, err = s.ResetScope(ctx, host.TestScope)
	case abi.OpHealth:
		_, err = s.Health(ctx)
	case abi.OpReadiness:
		_, err = s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope})
	case abi.OpInventory:
		_, err = s.Inventory(ctx, &abi.InventoryRequest{Scope: host.TestScope})
	case abi.OpProvenance:
		_, err = s.Provenance(ctx, &abi.ProvenanceRequest{Scope: host.TestScope, EventID: "e"})
	case abi.OpNativeQuery:
		_, err = s.NativeQuery(ctx, &abi.NativeQuery{Scope: host.TestScope, Name: "n"})
	case abi.OpNativeMutation:
		_, err = s.NativeMutation(ctx, &abi.NativeMutation{Scope: host.TestScope, Name: "n"})
	}
	return err
}

func TestAnswersThatBreakTheContractAreRefused(t *testing.T) {
	result := func(evidence, trace string) string {
		return fmt.Sprintf(`{"raw":{"calls":[{"route":"r","body":{"items":[{"id":"a"}],"a/b":{"~":1}}}],"notes":{"n":[1]}},`+
			`"formatted_context":"","evidence":[%s],"trace":{%s}}`, evidence, trace)
	}
	element := func(backend, scope string) string {
		text, err := json.Marshal(fmt.Sprintf("<memory-context backend=%q scope=%q>\nx\n</memory-context>", backend,
			scope))
		require.NoError(t, err)
		return fmt.Sprintf(`{"raw":{"calls":[]},"formatted_context":%s,"evidence":[]}`, text)
	}
	for _, c := range []struct{ op, answer, says string }{
		{abi.OpSetupScope, `{"ready":true}`, "no native_scope"},
		{abi.OpSetupScope, `{"native_scope":{}}`, "no ready"},
		{abi.OpRecordEvent, `{}`, "no status"},
		{abi.OpRecordEvent, `{"status":"committed"}`, "no native_ids_kind"},
		{abi.OpRecordEvent, `{"status":"committed","native_ids_kind":"some"}`, `native_ids_kind "some"`},
		{abi.OpRecordEvent, `{"status":"skipped_read_only","native_ids_kind":"none"}`, `status "skipped_read_only"`},
		{abi.OpRecordEvent, `{"status":"committed","native_ids_kind":"none","stored_count":-1}`, "stored_count is -1"},
		{abi.OpRetrieve, `null`, "no raw"},
		{abi.OpRetrieve, `{}`, "no raw"},
		{abi.OpRetrieve, `[]`, "what is no retrieve answer"},
		{abi.OpRetrieve, `{"raw":{"calls":[]},"formatted_context":""}`, "no evidence"},
		{abi.OpRetrieve, `{"raw":{"calls":[]},"formatted_context":null,"evidence":[]}`, "no formatted_context"},
		{abi.OpRetrieve, result("", `"result_state":"nonsense"`), `result_state "nonsense"`},
		{abi.OpRetrieve, result("", `"filter_mode":"soft"`), `filter_mode "soft"`},
		{abi.OpRetrieve, result("", `"as_of_mode":"later"`), `as_of_mode "later"`},
		{abi.OpRetrieve, result("", `"time_basis":"guess"`), `time_basis "guess"`},
		{abi.OpRetrieve, result("", `"retrieved_count":-3`), "retrieved_count is -3"},
		{abi.OpRetrieve, result("", `"frame_tokens":-1`), "frame_tokens is -1"},
		{abi.OpRetrieve, result("", `"filters_applied":{"context":"maybe"}`), `filters_applied.context "maybe"`},
		{abi.OpRetrieve, result("", `"budget_applied":{"max_items":{"how":"somehow"}}`), `max_items.how "somehow"`},
		{abi.OpRetrieve, result("", `"budget_applied":{"max_items":{"how":"native","sent":-1}}`),
			"max_items.sent is -1"},
		{abi.OpRetrieve, result(`{"pointer":"/calls/0/body/items/1","rank":1}`, ""), "points to nothing"},
		{abi.OpRetrieve, result(`{"pointer":"/calls/0/body/items/00","rank":1}`, ""), "points to nothing"},
		{abi.OpRetrieve, result(`{"pointer":"/calls/1","rank":1}`, ""), "points to nothing"},
		{abi.OpRetrieve, result(`{"pointer":"calls/0","rank":1}`, ""), "points to nothing"},
		{abi.OpRetrieve, result(`{"rank":1}`, ""), "evidence[0].pointer is missing"},
		{abi.OpRetrieve, result(`{"pointer":"/calls/0"}`, ""), "evidence[0].rank is 0"},
		{abi.OpRetrieve, result(`{"pointer":"/calls/0","rank":1,"time_basis":"x"}`, ""), `evidence[0].time_basis "x"`},
		{abi.OpRetrieve, result(`{"pointer":"/calls/0","rank":1,"shown":{"start":0,"end":1}}`, ""),
			"evidence[0].shown is 0 to 1"},
		{abi.OpRetrieve, element("another", "run/persona"), `backend "another"`},
		{abi.OpRetrieve, element("hand", "run/somebody"), `scope "run/somebody"`},
		{abi.OpFormatContext, `{"formatted_context":"","token_count":0}`, "no truncated"},
		{abi.OpFormatContext, `{"formatted_context":"","token_count":-1,"truncated":false}`, "token_count is -1"},
		{abi.OpResetScope, `{"status":"perhaps"}`, `status "perhaps"`},
		{abi.OpResetScope, `{"status":"done","removed":{"memory":-1}}`, "is -1"},
		{abi.OpHealth, `{"status":"ok"}`, "consistency_model"},
		{abi.OpHealth, `{"status":"fine"}`, `status "fine"`},
		{abi.OpReadiness, `{"status":"ready","event_ids":{}}`, "no method"},
		{abi.OpReadiness, `{"status":"soon","event_ids":{},"method":"m"}`, `status "soon"`},
		{abi.OpInventory, `{"kinds":[{"kind":"k","count":-1}],"complete":true,"quiescent":true}`,
			"kinds[0].count is -1"},
		{abi.OpInventory, `{"kinds":[],"complete":true}`, "no quiescent"},
		{abi.OpProvenance, `{}`, "no items"},
		{abi.OpNativeQuery, `{"result":1}`, "no name"},
		{abi.OpNativeMutation, `{"status":"skipped_read_only"}`, `status "skipped_read_only"`},
	} {
		t.Run(c.op+" "+c.answer, func(t *testing.T) {
			e := host.RequireCode(t, openAnswering(t, c.op, c.answer), abi.CodeInternal, c.says)
			assert.Equal(t, abi.ReasonContractBreach, e.Reason)
			assert.False(t, e.Retryable)
		})
	}
	for _, c := range []struct{ op, answer string }{
		{abi.OpRetrieve, result(`{"pointer":"/calls/0/body/items/0/id","rank":1},{"pointer":"/calls/0/body/a~1b/~0","rank":2},`+
			`{"pointer":"/notes/n/0","rank":3},{"pointer":"/calls/0/route","rank":4}`, `"result_state":"results"`)},
		{abi.OpRetrieve, element("hand", "run/persona")},
		{abi.OpReadiness, `{"status":"ready","event_ids":{},"method":"m"}`},
		{abi.OpHealth, plainAnswers()[abi.OpHealth]},
	} {
		assert.NoError(t, openAnswering(t, c.op, c.answer), c.answer)
	}
}

func TestHostOverwritesWhatIsItsOwn(t *testing.T) {
	answers := plainAnswers()
	answers[abi.OpRecordEvent] = `{"event_id":"another","status":"committed","native_ids_kind":"none","duplicate":true,` +
		`"retry_after_ms":5,"warnings":["read_only: a lie","mine: kept"]}`
	answers[abi.OpRetrieve] = `{"raw":{"calls":[]},"formatted_context":"","evidence":[],"trace":{"backend_name":"another",` +
		`"consistency":"queued","consistency_as_of":"yesterday","warnings":["memory_pending: 9 events","mine: kept"],` +
		`"budget_applied":{"max_items":{"how":"native","asked":7,"ceiling":9}}}}`
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: "hand", Module: answering(t, answers)})
	r, err := s.RecordEvent(context.Background(), host.Event("e", "x"))
	require.NoError(t, err)
	assert.Equal(t, "e", r.EventID)
	assert.False(t, r.Duplicate)
	assert.Nil(t, r.RetryAfterMS)
	assert.Equal(t, []string{"mine: kept"}, r.Warnings)
	q, most := host.Ask("x"), int64(3)
	q.Budget.MaxItems = &most
	found, err := s.Retrieve(context.Background(), q)
	require.NoError(t, err)
	assert.Equal(t, "hand", found.Trace.BackendName)
	assert.Equal(t, "committed", found.Trace.Consistency)
	_, err = abi.ParseTime(found.Trace.ConsistencyAsOf)
	assert.NoError(t, err)
	assert.Equal(t, []string{"mine: kept"}, found.Trace.Warnings)
	use := found.Trace.BudgetApplied["max_items"]
	assert.EqualValues(t, 3, *use.Asked)
	assert.Nil(t, use.Ceiling)
}

// TestMinimalModuleOfTheSpecificationIsValid opens the module whose text is in ABI.md.
func TestMinimalModuleOfTheSpecificationIsValid(t *testing.T) {
	wasm, err := os.ReadFile("../abi/testdata/minimal.wasm")
	require.NoError(t, err)
	wasm, err = wasmbin.SetCustom(wasm, abi.ManifestSection, []byte(goodModule().manifest))
	require.NoError(t, err)
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: "hand", Module: wasm})
	ctx := context.Background()
	_, err = s.RecordEvent(ctx, host.Event("e", "x"))
	require.NoError(t, err)
	_, err = s.Retrieve(ctx, host.Ask("x"))
	require.NoError(t, err)
	_, err = s.FormatContext(ctx, &abi.FormatRequest{Scope: host.TestScope})
	require.NoError(t, err)
	_, err = s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
}

func TestMalformedReceiptOfAWriteThatWasSentIsUncertain(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{})
	ctx := context.Background()
	r, err := s.RecordEvent(ctx, host.Event("e", "deliver a; status nonsense"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusUncertain, r.Status)
	assert.Contains(t, r.Warnings[0], `status "nonsense"`)
	assert.EqualValues(t, 3000, *r.RetryAfterMS)
	out, err := s.RecordEvents(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("1", "deliver a"),
		*host.Event("2", "deliver a; status nonsense"), *host.Event("3", "deliver a")}})
	require.NoError(t, err)
	for i, want := range []abi.WriteStatus{abi.StatusCommitted, abi.StatusUncertain, abi.StatusCommitted} {
		assert.Equal(t, want, out.Receipts[i].Receipt.Status, i)
	}
	b.Set(func() { b.Find = answercheck.FoundPresent })
	clock.Add(4000)
	again, err := s.RecordEvent(ctx, host.Event("2", "deliver a; status nonsense"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusCommitted, again.Status, "it can be settled")
	assert.True(t, again.Duplicate)
	assert.Len(t, b.Sent(), 4, "nothing was sent twice")
}
