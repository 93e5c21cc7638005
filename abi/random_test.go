package abi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// codable is every type that has codecs.
type codable interface {
	Encodable
	Decodable
}

// types holds one value of every struct that has codecs; TestEveryCodecIsTested checks that it is complete.
func types() []codable {
	return []codable{
		new(BackendHealth), new(BackendReadiness), new(BackgroundDecl), new(BatchReceipts), new(BoltRequest), new(BoltResult),
		new(BudgetUse),
		new(ConformanceDecl), new(ContextBudget), new(Empty), new(EmptyDecl), new(Envelope), new(EnvelopeMode), new(Error),

		new(EventBatch), new(Evidence),
		new(FeedbackReceipt), new(FindEventAnswer), new(FindEventRequest), new(ForgetReceipt), new(ForgetRequest),
		new(FormatRequest), new(FormatResult), new(GuestConfig),
		new(HTTPRequest), new(HTTPResponse), new(IO), new(Inventory), new(InventoryKind), new(InventoryRequest),
		new(KindRule), new(AdapterMode),
		new(MemoryEvent), new(MemoryFeedback), new(MemoryScope), new(Message), new(ModeReceipt),
		new(ModelCallDecl), new(ModuleManifest), new(UnsourcedDecl), new(SettingDecl),
		new(MutationReceipt),
		new(NativeDecl), new(ShowDecl), new(ColumnDecl), new(FailedDecl), new(NativeError), new(NativeLimit), new(NativeMutation), new(NativeQuery), new(NativeQueryResult),
		new(NotApplicable),
		new(OriginDecl), new(RequireDecl),
		new(Provenance), new(ProvenanceItem), new(ProvenanceRequest), new(ProviderDecl), new(QueryParam), new(RawCall),
		new(RawResult),
		new(ReadinessEventIDs), new(ReadinessMarkers), new(ReadinessRequest), new(ReceiptOrError), new(ResetReceipt),
		new(Resume),
		new(RetrieveRequest), new(RetrieveResult), new(RouteDecl),
		new(SecretDecl),
		new(SetupReceipt), new(Shown), new(Span), new(StateDeleted), new(StateEntries), new(StateEntry), new(StateKey),
		new(StateList), new(StateListRequest),
		new(StateReadRequest), new(StateSeq), new(StateVersion), new(ToolCall), new(Trace), new(WaitRequest),
		new(WriteReceipt),
	}
}

// forEachType runs a subtest per type, with a constructor for its values.
func forEachType(t *testing.T, test func(t *testing.T, fresh func() codable)) {
	for _, x := range types() {
		typ := reflect.TypeOf(x).Elem()
		t.Run(typ.Name(), func(t *testing.T) {
			test(t, func() codable { return reflect.New(typ).Interface().(codable) })
		})
	}
}

// fill sets every exported field to a random value that survives a round trip: never an empty value that omitempty
// keeps, never nil for a field without omitempty.
func fill(t *rapid.T, x codable) {
	if r, ok := x.(*ReceiptOrError); ok {
		fillReceiptOrError(t, r)
		return
	}
	fillValue(t, reflect.ValueOf(x).Elem(), "")
}

func fillReceiptOrError(t *rapid.T, x *ReceiptOrError) {
	if rapid.Bool().Draw(t, "receipt") {
		x.Receipt = new(WriteReceipt)
		fill(t, x.Receipt)
		return
	}
	x.EventID, x.Error = text().Draw(t, "event_id"), new(Error)
	fill(t, x.Error)
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z"\\/\n\x00-\x1f]{0,12}`), rapid.SampledFrom([]string{"",
		"é\"", "\u2028", "\U0001F600 x", "longer than eight bytes\n"}))
}

func raw() *rapid.Generator[Raw] {
	return rapid.Custom(func(t *rapid.T) Raw {
		return Raw(rapid.SampledFrom([]string{`1`, `-0.5e+3`, `"a\u0000\ud83d\ude00"`, `{"a": [1, {"b":null}],"a":2}`, `[]`,
			"[ true,\tfalse ]", `""`}).Draw(t, "raw"))
	})
}

func fillValue(t *rapid.T, v reflect.Value, tag string) {
	omit := strings.HasSuffix(tag, ",omitempty")
	canBeNil := strings.HasSuffix(tag, ",omitzero")
	switch v.Kind() {
	case reflect.String:
		v.SetString(text().Draw(t, tag))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, tag))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, tag))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, tag))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, tag) {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(t, v.Elem(), "")
		}
	case reflect.Struct:
		if r, ok := v.Addr().Interface().(*ReceiptOrError); ok {
			fillReceiptOrError(t, r)
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fillValue(t, v.Field(i), f.Tag.Get("json"))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[Raw]() {
			if rapid.Bool().Draw(t, tag) {
				v.Set(reflect.ValueOf(raw().Draw(t, tag)))
			}
			return
		}
		if n := rapid.IntRange(0, 3).Draw(t, tag); n > 0 || !omit && (!canBeNil || !rapid.Bool().Draw(t, "nil")) {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fillValue(t, v.Index(i), "")
			}
		}
	case reflect.Map:
		if n := rapid.IntRange(0, 3).Draw(t, tag); n > 0 || !omit {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				e := reflect.New(v.Type().Elem()).Elem()
				fillValue(t, e, "")
				v.SetMapIndex(reflect.ValueOf(text().Draw(t, "key")), e)
			}
		}
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

func TestEveryCodecIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, x := range types() {
		tested[reflect.TypeOf(x).Elem().Name()] = true
	}
	for _, name := range structsWithCodecs(t) {
		require.True(t, tested[name], "%s is missing in types()", name)
	}
}
