package abi

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/require"
)

func TestDecodeErrorsNameTheField(t *testing.T) {
	const all = ", want one of event_id, run_id, user_id, agent_id, session_id, turn_id, timestamp, messages, " +
		"scenario, context, attribute, metadata"
	for _, c := range []struct{ name, in, want string }{
		{"a type", `{"run_id":1}`, `run_id: want a string, got a number`},
		{"a type in a list", `{"messages":[{},{"content":3}]}`, `messages[1].content: want a string, got a number`},
		{"an object for a string", `{"messages":[{"name":{}}]}`, `messages[0].name: want a string, got an object`},
		{"an array for an object", `{"messages":[[]]}`, `messages[0]: want an object, got an array`},
		{"a boolean for an array", `{"messages":true}`, `messages: want an array, got a boolean`},
		{"a string for a map", `{"metadata":"x"}`, `metadata: want an object, got a string`},
		{"the whole value", `[]`, `want an object, got an array`},
		{"a field mistyped", `{"messages":[{},{"rolle":"user"}]}`,
			`messages[1].rolle: unknown field, did you mean "role"?`},
		{"a field in capitals", `{"Run_ID":"a"}`, `Run_ID: unknown field, did you mean "run_id"?`},
		{"a field that is like none", `{"persona":"a"}`, `persona: unknown field` + all},
		{"a field of odd characters", `{"a b":1}`, `["a b"]: unknown field` + all},
		{"a field without name", `{"":1}`, `[""]: unknown field` + all},
		{"a long field", `{"` + strings.Repeat("x", 100) + `":1}`, `["` + strings.Repeat("x", 64) +
			`..."]: unknown field` + all},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x MemoryEvent
			err := UnmarshalStrict([]byte(c.in), &x)
			require.Equal(t, c.want, AsError(err).Message)
			require.Equal(t, CodeInvalidArgument, CodeOf(err))
		})
	}
}

func TestDecodeErrorsBelowMapsAndPointers(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a map's key", `{"trace":{"filters_applied":{"scenario":1}}}`,
			`trace.filters_applied.scenario: want a string, got a number`},
		{"a map of structs", `{"trace":{"budget_applied":{"max_tokens":{"hwo":"x"}}}}`,
			`trace.budget_applied.max_tokens.hwo: unknown field, did you mean "how"?`},
		{"a key that must be quoted", `{"trace":{"budget_applied":{"a.b":[]}}}`,
			`trace.budget_applied["a.b"]: want an object, got an array`},
		{"a pointer to a number", `{"trace":{"top_score":"x"}}`, `trace.top_score: want a number, got a string`},
		{"a fraction", `{"trace":{"generation":1.5}}`, `trace.generation: want a whole number, got 1.5`},
		{"an exponent", `{"trace":{"token_count":1e2}}`, `trace.token_count: want a whole number, got 1e2`},
		{"too large", `{"evidence":[{"rank":9223372036854775808}]}`,
			`evidence[0].rank: want a whole number of 64 bits, got 9223372036854775808`},
		{"far too large", `{"evidence":[{"rank":` + strings.Repeat("9", 60) + `}]}`,
			`evidence[0].rank: want a whole number of 64 bits, got ` + strings.Repeat("9", 40) + `...`},
		{"too small", `{"evidence":[{"rank":-9223372036854775809}]}`,
			`evidence[0].rank: want a whole number of 64 bits, got -9223372036854775809`},
		{"beyond floats", `{"evidence":[{"score":1e999}]}`, `evidence[0].score: want a number of 64 bits, got 1e999`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x RetrieveResult
			require.Equal(t, c.want, AsError(UnmarshalStrict([]byte(c.in), &x)).Message)
		})
	}
}

func TestWhatIsNotJSONIsReportedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", ``, `unexpected end of input at byte 0`},
		{"an open object", `{"run_id":"a","xx`, `unexpected end of input at byte 17`},
		{"an open string in a list", `{"messages":[{"role":"us`, `unexpected end of input at byte 24`},
		{"a comma too many", `{"run_id":"a",}`, `unexpected '}' at byte 14`},
		{"a comma too many in a list", `{"messages":[{},]}`, `unexpected ']' at byte 16`},
		{"no comma", `{"run_id":"a" "user_id":"b"}`, `unexpected '"' at byte 14`},
		{"no colon", `{"run_id" "a"}`, `unexpected '"' at byte 10`},
		{"no value", `{"run_id":}`, `unexpected '}' at byte 10`},
		{"a key that is no string", `{run_id:"a"}`, `unexpected 'r' at byte 1`},
		{"a broken word", `{"run_id":nil}`, `unexpected 'i' at byte 11`},
		{"a word too long", `{"run_id":nullx}`, `unexpected 'x' at byte 14`},
		{"a leading zero", `{"metadata":{"a":01}}`, `unexpected '1' at byte 18`},
		{"a bare minus", `{"metadata":{"a":-}}`, `unexpected '}' at byte 18`},
		{"a bare point", `{"metadata":{"a":1.}}`, `unexpected '}' at byte 19`},
		{"a bare point in a list", `{"metadata":{"a":[1. 5]}}`, `unexpected ' ' at byte 20`},
		{"a bare exponent", `{"metadata":{"a":1e+}}`, `unexpected '}' at byte 20`},
		{"a control character", "{\"run_id\":\"a\x01\"}", `unexpected 0x01 at byte 12`},
		{"an unknown escape", `{"run_id":"\x"}`, `unexpected 'x' at byte 12`},
		{"a short escape", `{"run_id":"\u12"}`, `unexpected '"' at byte 15`},
		{"two values, the second without end", `{} [1,`, `more after the end of the value at byte 3`},
		{"a list without end", `[1,`, `unexpected end of input at byte 3`},
		{"two values", `{} {}`, `more after the end of the value at byte 3`},
		{"a byte order mark", "\ufeff{}", `unexpected 0xef at byte 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x MemoryEvent
			require.Equal(t, "not JSON: "+c.want, AsError(UnmarshalStrict([]byte(c.in), &x)).Message)
			require.False(t, json.Valid([]byte(c.in)))
		})
	}
}

func TestLenientSkipsUnknownFields(t *testing.T) {
	var x MemoryScope
	require.NoError(t, Unmarshal([]byte(`{"new":[{"a":1e5},"\u0041",true,null],"run_id":"r"}`), &x))
	require.Equal(t, MemoryScope{RunID: "r"}, x)
	require.ErrorContains(t, Unmarshal([]byte(`{"new":[1,]}`), &x), "not JSON")
}

func TestNullIsAbsent(t *testing.T) {
	full := `{"event_id":"e","messages":[{"role":"user"}],"metadata":{"a":1},"agent_id":"x"}`
	var x MemoryEvent
	require.NoError(t, Unmarshal([]byte(full), &x))
	require.NoError(t, Unmarshal([]byte(`{"event_id":null,"messages":null,"metadata":null}`), &x))
	require.Equal(t, MemoryEvent{}, x)
	require.NoError(t, Unmarshal([]byte(`null`), &x))

	var r RawCall
	require.NoError(t, Unmarshal([]byte(`{"route":"a","body": null }`), &r))
	require.Nil(t, r.Body)
	require.Equal(t, `{"route":"a","body":null}`, string(Marshal(&r)))
}

func TestTheLastOfTwoEqualKeysCountsWholly(t *testing.T) {
	var x RetrieveRequest
	in := `{"scope":{"run_id":"a","agent_id":"x"},"filters":{"a":1},"query":"q","scope":{"run_id":"b"},"filters":{"b":2},"query":null}`
	require.NoError(t, Unmarshal([]byte(in), &x))
	require.Equal(t, RetrieveRequest{Scope: MemoryScope{RunID: "b"}, Filters: map[string]Raw{"b": Raw("2")}}, x)
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestNestingIsLimited(t *testing.T) {
	const tooDeep = ` want at most 64 levels, in a free value 56`
	var x MemoryEvent
	require.NoError(t, Unmarshal([]byte(`{"metadata":{"a":`+nested(MaxValueDepth)+`}}`), &x))
	require.NoError(t, Unmarshal([]byte(`{"unknown":`+nested(MaxDepth-1)+`}`), &x))
	require.EqualError(t, Unmarshal([]byte(`{"metadata":{"a":`+nested(MaxValueDepth+1)+`}}`), &x),
		"invalid_argument: metadata.a: nested too deep at byte 56,"+tooDeep, "counted from where the value begins")
	require.EqualError(t, Unmarshal([]byte(`{"unknown":`+nested(MaxDepth)+`}`), &x),
		"invalid_argument: nested too deep at byte 74,"+tooDeep)
	require.ErrorContains(t, Unmarshal([]byte(strings.Repeat(`{"x":`, 1_000_000)), &x), tooDeep)
	require.NoError(t, Unmarshal([]byte(`{"run_id":"`+strings.Repeat("[{", 200)+`"}`), &x),
		"brackets in strings do not nest")
	require.True(t, ValidJSON([]byte(nested(MaxDepth))))
	require.False(t, ValidJSON([]byte(nested(MaxDepth+1))))
	x = MemoryEvent{EventID: "e", RunID: "r", UserID: "u", SessionID: "s", TurnID: "t",
		Timestamp: "2026-03-01T09:30:00Z",
		Messages:  []Message{{Role: RoleUser, Content: new(string)}},
		Metadata: map[string]Raw{"a": Raw(nested(MaxValueDepth +
			1))}}
	require.EqualError(t, x.Validate(), "invalid_argument: metadata.a: nested too deep at byte 56,"+tooDeep)
}

func TestWhatIsAcceptedFitsIntoWhatIsSentOn(t *testing.T) {
	deepest := Raw(nested(MaxValueDepth))
	var result RetrieveResult
	require.NoError(t, Unmarshal(Marshal(&RetrieveResult{Raw: RawResult{Calls: []RawCall{{Body: deepest}}},
		Trace: &Trace{Details: map[string]Raw{"a": deepest}}}), &result))
	var format FormatRequest
	require.NoError(t, UnmarshalStrict(Marshal(&FormatRequest{Result: result}), &format))
	var events EventBatch
	batch := &EventBatch{Events: []MemoryEvent{{Metadata: map[string]Raw{"a": deepest}}}}
	require.NoError(t, UnmarshalStrict(Marshal(batch), &events))
	for _, body := range []Encodable{&format, &events} {
		var e Envelope
		require.NoError(t, Unmarshal(Marshal(&Envelope{Body: Marshal(body)}), &e))
		require.NoError(t, Unmarshal(e.Body, new(FormatRequest)))
	}
}

func TestInvalidUTF8IsRefusedStrictly(t *testing.T) {
	var x MemoryScope
	require.EqualError(t, UnmarshalStrict([]byte("{\"run_id\":\"\u00e9\xff\"}"), &x),
		"invalid_argument: invalid UTF-8 at byte 13")
	require.NoError(t, Unmarshal([]byte("{\"run_id\":\"a\xffb\"}"), &x))
	require.Equal(t, `{"run_id":"a`+"\ufffd"+`b","persona_id":""}`, string(Marshal(&x)),
		"what is written is UTF-8 all the same")
	x.RunID = "\xff\"long enough for eight"
	require.Equal(t, `{"run_id":"`+"\ufffd"+`\"long enough for eight","persona_id":""}`, string(Marshal(&x)))
}

func TestHalvesOfSurrogatePairs(t *testing.T) {
	for _, in := range []string{`"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`,
		`"\ud83d\ud83d\ude00"`, `"\ude00\ud83d"`, `"\ud83d\u00"`, `"\ud83d\`} {
		var want, got string
		err := readString(&got, wirejson.DecodeBytes([]byte(in)), Lenient)
		require.Equal(t, json.Unmarshal([]byte(in), &want) == nil, err == nil, in)
		require.Equal(t, want, got, in)
	}
}

func TestNumbers(t *testing.T) {
	x := IO{MS: math.NaN(), Status: math.MinInt64, BytesIn: math.MaxInt64}
	require.Equal(t, `{"route":"","class":"","status":-9223372036854775808,"ms":null,"bytes_out":0,"bytes_in":9223372036854775807,"retries":0}`, string(Marshal(&x)))
	var y IO
	require.NoError(t, Unmarshal(Marshal(&x), &y))
	require.Equal(t, IO{Status: math.MinInt64, BytesIn: math.MaxInt64}, y)
	for _, f := range []float64{0, math.Copysign(0, -1), 1e-7, 1e-6, 123456.789, 1e20, 1e21, -1e-100, math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Inf(-1)} {
		want, err := json.Marshal(f)
		if err != nil {
			want = []byte("null")
		}
		var e wirejson.Encoder
		writeFloat(f, &e)
		require.Equal(t, string(want), e.String())
	}
}

func TestEmptyThings(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Encodable
		want string
	}{
		{"lists and maps that are required", &SetupReceipt{}, `{"ready":false,"native_scope":{},"warnings":[]}`},
		{"a budget without limits is left out", &RetrieveRequest{},
			`{"query":"","scope":{"run_id":"","persona_id":""},"session_id":""}`},
		{"a budget with one limit", &RetrieveRequest{Budget: ContextBudget{MaxItems: new(int64)}},
			`{"query":"","scope":{"run_id":"","persona_id":""},"session_id":"","budget":{"max_items":0}}`},
		{"a value that is required", &NativeQueryResult{}, `{"name":"","result":null}`},
		{"content", &Message{Role: RoleAssistant}, `{"role":"assistant","content":null}`},
		{"an object whose fields are all left out", &ContextBudget{}, `{}`},
		{"an object without fields", &Empty{}, `{}`},
		{"keys in order", &ResetReceipt{Removed: map[string]*int64{"b": nil, "a": new(int64)}},
			`{"status":"","removed":{"a":0,"b":null},"remains":[],"old_generation":0,"new_generation":0,"warnings":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, string(Marshal(c.in))) })
	}
}

func TestReceiptOrError(t *testing.T) {
	var x BatchReceipts
	in := `{"receipts":[{"event_id":"a","status":"committed"},{"event_id":"b","error":{"code":"conflict","message":"m"}},{"status":"queued","error":null},{},null]}`
	require.NoError(t, Unmarshal([]byte(in), &x))
	require.Equal(t, []ReceiptOrError{
		{Receipt: &WriteReceipt{EventID: "a", Status: StatusCommitted}},
		{EventID: "b", Error: &Error{Code: CodeConflict, Message: "m"}},
		{Receipt: &WriteReceipt{Status: StatusQueued}},
		{Receipt: &WriteReceipt{}},
		{},
	}, x.Receipts)

	require.Equal(t, `{"receipts":[{"event_id":"b","error":{"code":"conflict","message":"m","retryable":false,"operation":""}}]}`,
		string(Marshal(&BatchReceipts{Receipts: x.Receipts[1:2]})))
	require.Contains(t, string(Marshal(&ReceiptOrError{EventID: "c"})), `neither a receipt nor an error`)

	for in, want := range map[string]string{
		`{"receipts":[{"event_id":"b","error":{"code":1}}]}`: `receipts[0].error.code: want a string, got a number`,
		`{"receipts":[{},{"event_id":"b","statsu":"x"}]}`:    `receipts[1].statsu: unknown field, did you mean "status"?`,
		`{"receipts":[{"error":{},"status":"committed"}]}`:   `receipts[0].status: unknown field, want one of event_id, error`,
		`{"receipts":[3]}`: `receipts[0]: want an object, got a number`,
		`{"receipts":[{"event_id":"a","error":{"code":"x"}`: `not JSON: unexpected end of input at byte 49`,
	} {
		require.Equal(t, want, AsError(UnmarshalStrict([]byte(in), &x)).Message)
	}
}

func TestRawThroughEncodingJSON(t *testing.T) {
	var r struct{ A, B, C Raw }
	require.NoError(t, json.Unmarshal([]byte(`{"A": {"x" : 1},"B":null}`), &r))
	require.Equal(t, Raw(`{"x" : 1}`), r.A)
	require.Nil(t, r.B)
	out, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, `{"A":{"x":1},"B":null,"C":null}`, string(out))
}

func TestDecodeAllocatesLittle(t *testing.T) {
	data := Marshal(benchEvent())
	var x MemoryEvent
	allocs := testing.AllocsPerRun(100, func() { _ = Unmarshal(data, &x) })
	require.LessOrEqual(t, allocs, 90.0, "one for each string, value and slice, and what lists take to grow")
	buf := make([]byte, 0, 2*len(data))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { buf = AppendJSON(buf[:0], &x) }), 2.0,
		"the encoder, the keys of metadata")
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-0": 0, "7": 7, "-12": -12,
		"999999999999999999":  999999999999999999,
		"-999999999999999999": -999999999999999999,
		"1000000000000000000": 1000000000000000000, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		var s Span
		require.NoError(t, Unmarshal([]byte(`{"start":`+text+`}`), &s), text)
		require.Equal(t, want, s.Start, text)
	}
	for _, text := range []string{"9223372036854775808", "1.0", "1e2", "-1.5", "-", "01", "+1"} {
		require.Error(t, Unmarshal([]byte(`{"start":`+text+`}`), new(Span)), text)
	}
}

func TestStrictReadingCopiesUnlessTheTextIsOwned(t *testing.T) {
	text := []byte(`{"route":"r","params":{"id":"a"},"headers":{"x-a":"b"}}`)
	var r HTTPRequest
	require.NoError(t, UnmarshalStrict(text, &r))
	clear(text)
	require.Equal(t, HTTPRequest{Route: "r", Params: map[string]string{"id": "a"},
		Headers: map[string]string{"x-a": "b"}},
		r)
	var strict HTTPRequest
	require.Error(t, UnmarshalStrictOwned([]byte(`{"root":"r"}`), &strict))
	require.Error(t, UnmarshalStrictOwned([]byte("{\"route\":\"\xff\"}"), &strict))
}
