package structjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/text/structjson"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// byTags writes and reads a T by its tags, whatever codecs it has.
type byTags[T any] struct{ value T }

func (x *byTags[T]) Encode(e *wirejson.Encoder) { structjson.Encode(e, &x.value) }

func (x *byTags[T]) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, &x.value)
}

type codable[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

// TestStructsAreWrittenAndReadAsByTheirCodecs compares with the generated codecs of package abi: bytes, and the values
// and errors of right and wrong documents.
func TestStructsAreWrittenAndReadAsByTheirCodecs(t *testing.T) {
	t.Run("WriteReceipt", compare[abi.WriteReceipt])
	t.Run("MemoryEvent", compare[abi.MemoryEvent])
	t.Run("RetrieveRequest", compare[abi.RetrieveRequest])
	t.Run("RetrieveResult", compare[abi.RetrieveResult])
	t.Run("Trace", compare[abi.Trace])
	t.Run("ResetReceipt", compare[abi.ResetReceipt])
	t.Run("HTTPRequest", compare[abi.HTTPRequest])
	t.Run("ProviderDecl", compare[abi.ProviderDecl])
	t.Run("NativeDecl", compare[abi.NativeDecl])
}

func compare[T any, P codable[T]](t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		drawn := servertest.Random[T](rt, "value")
		text := abi.Marshal(P(drawn))
		require.Equal(rt, string(text), string(abi.Marshal(&byTags[T]{*drawn})))
		for range 4 {
			document := changed(rt, text)
			for _, read := range []func(data []byte, to abi.Decodable) error{abi.Unmarshal[abi.Decodable],
				abi.UnmarshalStrict[abi.Decodable]} {
				coded, tagged := P(new(T)), new(byTags[T])
				want, got := read(document, coded), read(document, tagged)
				require.Equal(rt, want, got, "%s", document)
				if want == nil {
					require.Equal(rt, coded, P(&tagged.value), "%s", document)
				}
			}
		}
	})
}

// changed draws a document in which some values are others, and some keys are unknown or occur twice.
func changed(rt *rapid.T, document wirejson.Raw) []byte {
	if rapid.IntRange(0, 9).Draw(rt, "other") == 0 {
		return []byte(rapid.SampledFrom([]string{`null`, `""`, `"x"`, `1`, `-0`, `1.5`, `1e2`, `1e999`, `true`, `[]`, `{}`,
			`[1]`, `[[]]`, `{"a":{}}`, `9223372036854775808`, `"\ud800"`, `x`, ``,
			strings.Repeat("9", 50), strings.Repeat("[", 60) + strings.Repeat("]", 60)}).Draw(rt, "value"))
	}
	d := wirejson.DecodeBytes(document)
	var out []byte
	value := func() error {
		raw, err := d.Raw()
		out = append(append(out, changed(rt, raw)...), ", "...)
		return err
	}
	switch document.Type() {
	case wirejson.Object:
		require.NoError(rt, d.Obj(func(_ *wirejson.Decoder, key string) error {
			key = rapid.SampledFrom([]string{key, key, key, key, key, key, key, key + "s", "event_id", "a b", ""}).Draw(rt, "key")
			out = append(out, wirejson.Quote(key)+" : "...)
			return value()
		}))
		return []byte("{" + strings.TrimSuffix(string(out), ", ") + "}")
	case wirejson.Array:
		require.NoError(rt, d.Arr(func(*wirejson.Decoder) error { return value() }))
		return []byte("[" + strings.TrimSuffix(string(out), ", ") + "]")
	default:
		return document
	}
}

func TestNothingOfTheInputIsKept(t *testing.T) {
	data := []byte(`{"route":"search","params":{"a":"b"}}`)
	var x byTags[abi.HTTPRequest]
	require.NoError(t, abi.Unmarshal(data, &x))
	want, err := json.Marshal(x.value)
	require.NoError(t, err)
	clear(data)
	got, err := json.Marshal(x.value)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestATypeThatHasNoFormPanics(t *testing.T) {
	for _, x := range []any{
		&struct{ A string }{},
		&struct {
			A int64 `json:"a,string"`
		}{},
		&struct {
			A int32 `json:"a"`
		}{},
	} {
		require.Panics(t, func() { structjson.Encode(new(wirejson.Encoder), x) })
		require.Panics(t, func() {
			_ = structjson.Decode(wirejson.DecodeStr(`{"a":1}`), abi.Lenient, x)
		})
	}
}
