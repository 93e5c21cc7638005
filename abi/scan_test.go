package abi

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/go-faster/jx"
	"github.com/stretchr/testify/require"
)

func TestTooDeep(t *testing.T) {
	for _, c := range []struct {
		name, in string
		deep     bool
	}{
		{"as deep as may be", `[{"a":[]}]`, false},
		{"one deeper", `[{"a":[{}]}]`, true},
		{"many beside each other", `[[],[],[],[[]],{},{}]`, false},
		{"in a string", `["[[[[[["]`, false},
		{"behind an escaped quote", `["a\"[[[[["]`, false},
		{"behind an escaped backslash", `["a\\",[[[]]]]`, true},
		{"in a string that does not end", `"[[[[[[`, false},
		{"behind a backslash at the end", `"\`, false},
		{"not JSON, but deep", `]]]]{{{{{{{{{`, true},
		{"nothing", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.deep, tooDeep([]byte(c.in), 3) != "") })
	}
}

func TestMended(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a pair", `"\ud83d\ude00"`, `"\ud83d\ude00"`},
		{"a pair in capitals", `"\uD83D\uDE00"`, `"\uD83D\uDE00"`},
		{"two pairs", `"\ud83d\ude00\ud83d\ude00"`, `"\ud83d\ude00\ud83d\ude00"`},
		{"a first half", `"\ud83d"`, `"\ufffd"`},
		{"a second half", `"\uDE00"`, `"\ufffd"`},
		{"a first half before a pair", `"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`},
		{"a second half before a pair", `"\ude00\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`},
		{"halves in the wrong order", `"\ude00\ud83d"`, `"\ufffd\ufffd"`},
		{"a half before another escape", `"\ud83d\n\ud83d\u0041\ud83d\""`, `"\ufffd\n\ufffd\u0041\ufffd\""`},
		{"no escape, but a backslash", `"\\ud83d"`, `"\\ud83d"`},
		{"broken digits", `"\ud83d\ude0x\ud8"`, `"\ufffd\ude0x\ud8"`},
		{"a backslash at the end", `"\ud83d\`, `"\ufffd\`},
		{"in a key", `{"\ud83d":"\ud83d\ude00"}`, `{"\ufffd":"\ud83d\ude00"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			got, differs := mended(in)
			require.Equal(t, c.want, string(got))
			require.Equal(t, c.in != c.want, differs)
			require.Equal(t, c.in, string(in), "the input is left alone")
		})
	}
}

// FuzzScan holds what is done before jx against encoding/json: how deep a text nests, what its strings come to when mended, and,
// as jx decides it, whether it is JSON.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`[{"a":[1,"\ud83d\ud83d\ude00"]}]`, `"\\\ud83d\"\uDE00"`, `[[[]],{"\u005d":"]"}]`, `-0.5e+1`, `1.`, `tru`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := json.Valid(data)
		require.Equal(t, valid, notJSON(data) == "", notJSON(data))
		if !valid || !utf8.Valid(data) {
			return
		}
		deepest := depth(t, data)
		require.Equal(t, deepest > 3, tooDeep(data, 3) != "")
		clean, _ := mended(data)
		require.Len(t, clean, len(data))
		require.Equal(t, generic(t, data), generic(t, clean))
		if d := jx.DecodeBytes(clean); d.Next() == jx.String {
			got, err := d.Str()
			require.NoError(t, err)
			require.Equal(t, generic(t, data), got)
		}
	})
}

func depth(t *testing.T, data []byte) (deepest int) {
	d, now := json.NewDecoder(bytes.NewReader(data)), 0
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return deepest
		}
		require.NoError(t, err)
		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}
