package bolt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

// values draws anything that Pack takes, in the form in which Unpack gives it back.
func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Int64Range(-300, 300).AsAny(),
		rapid.Float64().AsAny(),
		rapid.String().AsAny(), rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
	}
	if depth > 0 {
		list := rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(values(depth-1), 0, 20).Draw(t, "list") })
		object := rapid.Custom(func(t *rapid.T) any {
			return rapid.MapOfN(rapid.String(), values(depth-1), 0, 20).Draw(t, "map")
		})
		structure := rapid.Custom(func(t *rapid.T) any {
			return bolt.Struct{Tag: rapid.Byte().Draw(t, "tag"),
				Fields: rapid.SliceOfN(values(depth-1), 0, 15).Draw(t, "fields")}
		})
		kinds = append(kinds, list, object, structure)
	}
	return rapid.OneOf(kinds...)
}

func TestWhatIsPackedIsUnpackedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := values(3).Draw(t, "value")
		got, rest, err := bolt.Unpack(append(bolt.Pack(nil, want), "rest"...))
		require.NoError(t, err)
		require.Equal(t, "rest", string(rest))
		require.Equal(t, want, got)
	})
}

func TestLongValuesHaveLongHeads(t *testing.T) {
	for _, n := range []int{0, 15, 16, math.MaxUint8, math.MaxUint8 + 1, math.MaxUint16, math.MaxUint16 + 1} {
		list := make([]any, n)
		for _, v := range []any{string(make([]byte, n)), make([]byte, n), list} {
			got, rest, err := bolt.Unpack(bolt.Pack(nil, v))
			require.NoError(t, err)
			assert.Empty(t, rest)
			assert.Equal(t, v, got)
		}
	}
}

// TestNeo4jsOwnBytes reads what Neo4j 5.26.2 sent: the numbers of the specification, and a record.
func TestNeo4jsOwnBytes(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		want        any
	}{
		{"a small number", "\x2a", int64(42)},
		{"a small negative number", "\xf0", int64(-16)},
		{"8 bits", "\xc8\xd6", int64(-42)},
		{"16 bits", "\xc9\x1c\x20", int64(7200)},
		{"32 bits", "\xca\x67\xc2\xd3\x98", int64(1740821400)},
		{"64 bits", "\xcb\x80\x00\x00\x00\x00\x00\x00\x00", int64(math.MinInt64)},
		{"a float", "\xc1\x3f\xe0\x00\x00\x00\x00\x00\x00", 0.5},
		{"a text with an emoji", "\x8buser_a \xf0\x9f\xa5\xbe", "user_a 🥾"},
		{"a zoned datetime", "\xb3\x49\xca\x67\xc2\xd3\x98\x00\x00",
			bolt.Struct{Tag: 'I', Fields: []any{int64(1740821400), int64(0), int64(0)}}},
		{"one with the zone's name", "\xb3\x69\xca\x67\xc2\xd3\x98\x00\x83UTC",
			bolt.Struct{Tag: 'i', Fields: []any{int64(1740821400), int64(0), "UTC"}}},
		{"a success", "\xb1\x70\xa1\x88has_more\xc3",
			bolt.Struct{Tag: 0x70, Fields: []any{map[string]any{"has_more": true}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rest, err := bolt.Unpack([]byte(c.bytes))
			require.NoError(t, err)
			assert.Empty(t, rest)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.bytes, string(bolt.Pack(nil, got)))
		})
	}
}

func TestBytesThatAreNoValueAreErrors(t *testing.T) {
	deep := make([]byte, 200)
	for i := range deep {
		deep[i] = 0x91
	}
	for name, bytes := range map[string]string{
		"nothing": "", "a marker that is not": "\xc7", "another": "\xdf", "a short text": "\x85abc",
		"a short number":         "\xcb\x01",
		"a list of four billion": "\xd6\xff\xff\xff\xff", "a map of four billion": "\xda\xff\xff\xff\xff\x81a",
		"a key that is no text":   "\xa1\x01\x01",
		"a structure without tag": "\xb1", "a structure without field": "\xb1\x70", "too deep": string(deep),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := bolt.Unpack([]byte(bytes))
			require.Error(t, err)
		})
	}
}

// FuzzUnpack requires that nothing panics, and that whatever is read can be written and read again as the same.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\xb3\x49\xca\x67\xc2\xd3\x98\x00\x00"))
	f.Add([]byte("\xa1\x84mode\x81r"))
	f.Add([]byte("\xd6\xff\xff\xff\xff"))
	f.Add([]byte("\xcc\x02ab\xd4\x01\xc1\x3f\xe0\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		value, rest, err := bolt.Unpack(data)
		if err != nil {
			return
		}
		if len(rest) > len(data) {
			t.Fatal("more is left than there was")
		}
		packed := bolt.Pack(nil, value)
		again, _, err := bolt.Unpack(packed)
		if err != nil {
			t.Fatalf("%x became %x, which is not read: %v", data, packed, err)
		}
		if string(bolt.Pack(nil, again)) != string(packed) { // compares bytes, because NaN is not equal to itself
			t.Fatalf("%#v became %#v", value, again)
		}
	})
}
