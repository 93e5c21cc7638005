package abi

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWhatIsWrittenIsReadBackEqual(t *testing.T) {
	forEachType(t, func(t *testing.T, fresh func() codable) {
		rapid.Check(t, func(t *rapid.T) {
			x, y := fresh(), fresh()
			fill(t, x)
			data := Marshal(x)
			require.True(t, json.Valid(data), "%s", data)
			fill(t, y) // decoding must overwrite what y held
			require.NoError(t, UnmarshalStrict(data, y), "%s", data)
			require.Equal(t, x, y)
		})
	})
}

func TestEncodingJSONReadsAndWritesTheSame(t *testing.T) {
	forEachType(t, func(t *testing.T, fresh func() codable) {
		rapid.Check(t, func(t *rapid.T) {
			x, y := fresh(), fresh()
			fill(t, x)
			require.NoError(t, json.Unmarshal(Marshal(x), y))
			require.Equal(t, x, y)
			require.Equal(t, withoutEmptyBudget(generic(t, theirs(t, x))), generic(t, Marshal(x)))
		})
	})
}

func theirs(t require.TestingT, x any) []byte {
	data, err := json.Marshal(x)
	require.NoError(t, err)
	return data
}

func generic(t require.TestingT, data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

// withoutEmptyBudget removes a struct without set fields, which encoding/json writes despite omitempty.
func withoutEmptyBudget(v any) any {
	if m, ok := v.(map[string]any); ok {
		if b, ok := m["budget"].(map[string]any); ok && len(b) == 0 {
			delete(m, "budget")
		}
	}
	return v
}

func TestAnEncoderAndADecoderCanBeShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b MemoryScope
		fill(t, &a)
		fill(t, &b)
		var e wirejson.Encoder
		e.ArrStart()
		a.Encode(&e)
		b.Encode(&e)
		e.ObjStart()
		e.FieldStart("a")
		a.Encode(&e)
		e.FieldStart("n")
		e.Int(1)
		e.ObjEnd()
		e.ArrEnd()
		require.True(t, json.Valid(e.Bytes()), "%s", e.Bytes())

		var got [2]MemoryScope
		i := 0
		d := wirejson.DecodeBytes(e.Bytes())
		require.NoError(t, d.Arr(func(d *wirejson.Decoder) error {
			if i == 2 {
				return d.Skip()
			}
			i++
			return got[i-1].Decode(d, Strict)
		}))
		require.Equal(t, [2]MemoryScope{a, b}, got)
	})
}

// ping is a type from outside the package.
type ping struct{ n int }

func (p *ping) Encode(e *wirejson.Encoder) { e.Int(p.n) }

func (p *ping) Decode(d *wirejson.Decoder, _ Mode) (err error) {
	p.n, err = d.Int()
	return err
}

func TestForeignTypesAreServedToo(t *testing.T) {
	require.Equal(t, "x7", string(AppendJSON([]byte("x"), &ping{7})))
	var p ping
	require.NoError(t, Unmarshal([]byte(" 12 "), &p))
	require.Equal(t, 12, p.n)
	require.EqualError(t, Unmarshal([]byte("12 13"), &p),
		"invalid_argument: not JSON: more after the end of the value at byte 3")
}

func TestNothingOfTheInputIsKept(t *testing.T) {
	data := Marshal(benchResult())
	var x RetrieveResult
	require.NoError(t, Unmarshal(data, &x))
	clear(data)
	require.Equal(t, benchResult(), &x)
}
