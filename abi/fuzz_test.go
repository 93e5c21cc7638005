package abi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The fuzz tests compare the codecs with encoding/json: both accept the same documents, read the same values and write
// the same documents. isComparable lists the deliberate differences.

func FuzzDecodeMemoryEvent(f *testing.F)     { fuzzDecode[MemoryEvent](f, benchEvent()) }
func FuzzDecodeRetrieveRequest(f *testing.F) { fuzzDecode[RetrieveRequest](f, fuzzRequest()) }
func FuzzDecodeRetrieveResult(f *testing.F) {
	fuzzDecode[RetrieveResult](f, benchResult(), fuzzResult())
}
func FuzzDecodeWriteReceipt(f *testing.F)   { fuzzDecode[WriteReceipt](f, fuzzReceipt()) }
func FuzzDecodeModuleManifest(f *testing.F) { fuzzDecode[ModuleManifest](f, fuzzManifest()) }
func FuzzDecodeError(f *testing.F) {
	status := int64(429)
	fuzzDecode[Error](f, &Error{Code: CodeRateLimited, Message: "m", RetryAfterMS: &status,
		Native: &NativeError{Status: &status, Body: "b"}})
}

func fuzzRequest() *RetrieveRequest {
	n := int64(8000)
	return &RetrieveRequest{Query: "the cat's name?",
		Scope: MemoryScope{RunID: "r", PersonaID: "p", BackendNamespace: "n",
			AgentID: "a"}, SessionID: "s",
		Budget: ContextBudget{MaxTokens: &n}, Filters: map[string]Raw{"cross_context": Raw("true"),
			"x": Raw("[1.5e3]")},
		AsOf: "2026-03-01T09:30:00+01:00"}
}

func fuzzResult() *RetrieveResult {
	x := benchResult()
	yes, n, score := true, int64(3), 0.5
	x.Evidence = []Evidence{{Pointer: "/calls/0", Rank: 1, Span: &Span{1, 2}, Superseded: &yes, Score: &score,
		SourceEventIDs: []string{"e"}, TimeBasis: TimeIngest}}
	x.Trace.BudgetApplied = map[string]BudgetUse{"max_tokens": {How: "native", Sent: &n}}
	x.Trace.FiltersApplied = map[string]string{"scenario": "semantic"}
	x.Trace.LabelsVerified, x.Trace.TopScore, x.Trace.TokenCount = &yes, &score, &n
	x.Trace.Effective = map[string]Raw{"mode": Raw(`"hybrid"`)}
	x.Raw.Notes = map[string]Raw{"note": Raw(`"\u00e9\ud83d\ude00"`)}
	return x
}

func fuzzReceipt() *WriteReceipt {
	n := int64(2)
	return &WriteReceipt{EventID: "e", Status: StatusQueued, NativeIDs: []string{"a", "b"},
		NativeIDsKind: NativeIDsTransient, StoredCount: &n,
		Markers: []string{"job:7"}, Warnings: []string{"duplicate_event: x"}, LatencyMS: 12.5,
		Trace: &Trace{Operation: OpRecordEvent}}
}

func fuzzManifest() *ModuleManifest {
	return &ModuleManifest{Manifest: 1, Name: "mem0", ABI: ABIMemhost, Providers: []ProviderDecl{{Name: "mem0",
		Kind: KindArchitecture, Preset: Raw(`{"infer":false}`)}},
		ConfigSchema: Raw(`{}`), Routes: []RouteDecl{{Name: "search",
			Match: map[string]Raw{"/method": Raw(`"tools/call"`)},
			Class: ClassRead}},
		DeadlinesMS: map[string]int64{"retrieve": 30000},
		Conformance: &ConformanceDecl{NotApplicable: []NotApplicable{{Clause: 4, Because: "x"}}}}
}

// fuzzDecode compares the two ways to read a T. Its second type parameter is there because codecs have pointer
// receivers.
func fuzzDecode[T any, P interface {
	*T
	codable
}](f *testing.F, seeds ...P) {
	for _, seed := range seeds {
		f.Add(Marshal(seed))
	}
	for _, seed := range []string{``, `null`, `{}`, ` {"a" : [ ] } `, `[`, `{"event_id":"\ud800\udc00\ud800"}`,
		`{"trace":{"latency_ms":-0.0e-1}}`} {
		f.Add([]byte(seed))
	}
	folded := foldedFields()
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := P(new(T)), P(new(T))
		err := Unmarshal(data, ours)
		if strict := UnmarshalStrict(data, P(new(T))); strict == nil {
			require.NoError(t, err, "strict accepts what lenient refuses")
		}
		if !isComparable(data, folded) {
			return
		}
		want := json.Unmarshal(data, theirs)
		require.Equal(t, want == nil, err == nil, "encoding/json: %v; abi: %v", want, err)
		if err != nil {
			require.NotEmpty(t, AsError(err).Message)
			return
		}
		require.Equal(t, theirs, ours)
		compareWritten[T, P](t, ours)
	})
}

func compareWritten[T any, P interface {
	*T
	codable
}](t *testing.T, x P) {
	data := Marshal(x)
	require.True(t, json.Valid(data), "%s", data)
	again := P(new(T))
	require.NoError(t, UnmarshalStrict(data, again))
	require.Equal(t, string(data), string(Marshal(again)))
	// encoding/json writes nil lists as null and escapes HTML, so its output is decoded and encoded again before comparing.
	other := P(new(T))
	require.NoError(t, UnmarshalStrict(theirs(t, x), other))
	require.Equal(t, generic(t, data), generic(t, Marshal(other)))
}

// isComparable reports whether the contract and encoding/json agree on the meaning of data. They differ deliberately in
// four cases. encoding/json replaces bytes that are not UTF-8; it allows 10,000 levels instead of MaxValueDepth; it
// merges the values of a key that occurs twice in an object; and it matches field names regardless of case.
func isComparable(data []byte, folded map[string]string) bool {
	if !utf8.Valid(data) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type level struct {
		keys    map[string]bool // nil in arrays
		wantKey bool
	}
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return true // not JSON, or at its end: both must agree
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil {
			top := &levels[n-1]
			if top.wantKey = !top.wantKey; !top.wantKey { // token is a key
				key := token.(string)
				name, like := folded[strings.ToLower(strings.ToUpper(key))]
				if top.keys[key] || like && name != key {
					return false
				}
				top.keys[key] = true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, wantKey: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
		if len(levels) > MaxValueDepth {
			return false
		}
	}
}

// foldedFields maps every field's name in the contract, in lower case, to itself.
func foldedFields() map[string]string {
	names := map[string]string{}
	for _, x := range types() {
		typ := reflect.TypeOf(x).Elem()
		if typ.Kind() != reflect.Struct {
			continue
		}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			names[strings.ToLower(strings.ToUpper(name))] = name
		}
	}
	return names
}
