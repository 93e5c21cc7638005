package object

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

// record has a member of every kind.
type record struct {
	text  string
	n     int64
	real  float64
	flag  bool
	texts []string
	raw   abi.Raw
}

func (x *record) members(as func(string, any) Member) []Member {
	return []Member{as("text", &x.text), as("n", &x.n), as("real", &x.real), as("flag", &x.flag), as("texts", &x.texts),
		as("raw", &x.raw),
		Constant("v", "1")}
}

func TestWhatIsWrittenForAnEmptyMember(t *testing.T) {
	x := new(record)
	assert.Equal(t, `{"v":1}`, string(Encode(x.members(Optional)...)))
	assert.Equal(t, `{"text":null,"n":null,"real":null,"flag":null,"texts":null,"raw":null,"v":1}`,
		string(Encode(x.members(OrNull)...)))
	x.raw = abi.Raw("{}")
	assert.Equal(t, `{"text":"","n":0,"real":0,"flag":false,"texts":[],"raw":{},"v":1}`,
		string(Encode(x.members(Always)...)))
}

func TestAnObjectIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &record{text: rapid.String().Draw(t, "text"), n: rapid.Int64().Draw(t, "n"),
			real: rapid.Float64Range(-1e9, 1e9).Draw(t, "real"), flag: rapid.Bool().Draw(t, "flag"),
			raw: abi.Raw(`[1,"a"]`)}
		if n := rapid.IntRange(0, 3).Draw(t, "texts"); n > 0 {
			x.texts = rapid.SliceOfN(rapid.String(), n, n).Draw(t, "list")
		}
		for _, as := range []func(string, any) Member{Optional, Always, OrNull} {
			back := new(record)
			require.NoError(t, DecodeStrictly(Encode(x.members(as)...), back.members(as)...))
			require.Equal(t, x, back)
		}
	})
}

func TestAMemberOfAnotherType(t *testing.T) {
	for _, text := range []string{`{"text":1}`, `{"n":"1"}`, `{"n":1.5}`, `{"flag":0}`, `{"texts":{}}`,
		`{"texts":[1]}`} {
		assert.Error(t, DecodeStrictly([]byte(text), new(record).members(Always)...), text)
		x := new(record)
		require.NoError(t, Decode([]byte(text), x.members(Always)...), text)
		if len(x.texts) == 0 {
			assert.Equal(t, new(record), x, text)
		}
	}
	assert.Error(t, DecodeStrictly([]byte(`[]`), new(record).members(Always)...))
	assert.NoError(t, DecodeStrictly([]byte(`{"text":null,"other":1,"v":2}`), new(record).members(Always)...),
		"null is absent, and others are skipped")
}
