package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `tru`, `falsey`, `nullnull`,
	`0`, `-0`, `1`, `-`, `01`, `-01`, `1.`, `1.0`, `.5`, `1e`, `1e+`, `1E-7`, `1e999`, `-9223372036854775808`,
	`9223372036854775808`, `1.5e3`, `+1`, `0x1`, `12 3`,
	`""`, `"a"`, `"`, `"\`, `"\"`, `"\u`, `"\u12`, `"\u12g4"`, `"\u0041"`, `"\x"`, "\"\x01\"", "\"a\nb\"", "\"\x7f\"",
	`"\/\b\f\n\r\t\\\""`,
	`"seven b"`, `"exactly8"`, `"12345678\"rest of it"`, `"1234567\n1234567\\"`, `"ümläut, and more of it: 漢字"`,
	`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\ud83d"`, `"\uDE00"`, `"\ud83d\ud83d\ude00"`, `"\ude00\ud83d\ude00"`,
	`"\ude00\ud83d"`, `"\ud83d\n\ud83d\u0041\ud83d\""`, `"\\ud83d"`, `"\ud83dx"`,
	`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2`, `[`, `]`, `[]]`, `[[[]]]`, `[{}]`, `[1}`,
	`[[1],[2,[3]],{"a":[]}]`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" : 1 , "b":[2]}`, `{a:1}`, `{"a":1 "b":2}`,
	`{"a":1]`, `{"a":{"b":{"c":null}}}`, `{"\u0061":1,"a":2}`, `{1:2}`, `{"a":1`, `{`,
	"\ufeff{}", "[1]\x00", "\v1", "[1,\u00a02]", " \t\r\n[ \t\r\n1 ] \n",
}

// readValue reads a text value by value, as the codecs do, and returns what encoding/json with UseNumber would.
func readValue(d *Decoder) (any, error) {
	switch d.Next() {
	case String:
		return d.Str()
	case Number:
		raw, err := d.Raw()
		return json.Number(raw), err
	case Bool:
		return d.Bool()
	case Null:
		return nil, d.Null()
	case Array:
		list := []any{}
		err := d.Arr(func(d *Decoder) error {
			v, err := readValue(d)
			list = append(list, v)
			return err
		})
		return list, err
	case Object:
		members := map[string]any{}
		err := d.Obj(func(d *Decoder, key string) (err error) {
			members[key], err = readValue(d)
			return err
		})
		return members, err
	}
	return nil, d.Skip()
}

// holds compares all results of a Decoder for a text with encoding/json.
func holds(t require.TestingT, text []byte) {
	want := json.Valid(text)
	skipping := DecodeBytes(text)
	err := skipping.Validate()
	if _, deep := DepthError(err); deep {
		return
	}
	require.Equal(t, want, err == nil, "%q: %v", text, err)

	d := DecodeBytes(text)
	got, err := readValue(d)
	if err == nil && !d.AtEnd() {
		err = errors.New("more")
	}
	require.Equal(t, want, err == nil, "%q pulled: %v", text, err)
	if !want {
		return
	}
	if utf8.Valid(text) {
		var whole any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		require.NoError(t, d.Decode(&whole))
		require.Equal(t, whole, got, "%q", text)
	}
	raw, err := DecodeBytes(text).Raw()
	require.NoError(t, err)
	require.Equal(t, strings.Trim(string(text), " \t\r\n"), string(raw))
}

func TestAsEncodingJSON(t *testing.T) {
	for _, text := range texts {
		t.Run(text, func(t *testing.T) { holds(t, []byte(text)) })
	}
}

// TestEveryPlaceInAString puts each kind of byte at each of the eight positions that are read at once.
func TestEveryPlaceInAString(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for _, c := range []string{`\"`, `\\`, `\u00e9`, "\x00", "\x1f", " ", "!", "\"", "#", "[", "\\", "]",
				"\x7f", "é",
				"\x80", "\xff"} {
				holds(t, []byte(`["`+strings.Repeat("x", at)+c+strings.Repeat("y", length-at-1)+`","end"]`))
			}
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { holds(t, text) })
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "unexpected end of input at byte 0"},
		{`{"a":`, "unexpected end of input at byte 5"},
		{`[1,2`, "unexpected end of input at byte 4"},
		{`"abc`, "unexpected end of input at byte 4"},
		{`{"a" 1}`, "unexpected '1' at byte 5"},
		{`[1,]`, "unexpected ']' at byte 3"},
		{`<html>`, "unexpected '<' at byte 0"},
		{"\"a\x01\"", `unexpected 0x01 at byte 2`},
		{`1.`, "unexpected end of input at byte 2"},
		{`tru3`, "unexpected '3' at byte 3"},
		{`1 2`, "more after the end of the value at byte 2"},
	} {
		t.Run(c.text, func(t *testing.T) {
			err := DecodeBytes([]byte(c.text)).Validate()
			require.EqualError(t, err, c.want)
			require.Equal(t, strings.HasPrefix(c.want, "unexpected end"), errors.Is(err, io.ErrUnexpectedEOF))
		})
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n) + `1` + strings.Repeat(`}]`, n) }
	for _, c := range []struct {
		name, text string
		limit      int
		at         int // of the error, 0 for no error
	}{
		{"as deep as may be", nested(2), 4, 0},
		{"one deeper", nested(2) + " ", 3, 7},
		{"many beside each other", `[[],[],[],[[]],{},{}]`, 3, 0},
		{"brackets in a string", `["[[[[[["]`, 1, 0},
		{"behind an escaped quote", `["a\"[[[[["]`, 1, 0},
		{"behind an escaped backslash", `["a\\",[[[]]]]`, 3, 9},
		{"the limit of all", nested(MaxDepth / 2), MaxDepth, 0},
		{"beyond the limit of all", "[" + nested(MaxDepth/2) + "]", MaxDepth + 1, 1 + MaxDepth/2*6 - 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := DecodeBytes([]byte(c.text)).Limit(c.limit).Validate()
			_, pulling := readValue(DecodeBytes([]byte(c.text)).Limit(c.limit))
			require.Equal(t, err == nil, pulling == nil)
			at, deep := DepthError(err)
			require.Equal(t, c.at > 0, deep, err)
			require.Equal(t, c.at, at)
		})
	}
	t.Run("after a value, its levels are free again", func(t *testing.T) {
		d := DecodeBytes([]byte(`[[[]],[[]]]`)).Limit(3)
		require.NoError(t, d.Arr(func(d *Decoder) error {
			_, levels, err := d.RawLevels()
			require.Equal(t, 2, levels)
			return err
		}))
	})
}

func TestLevels(t *testing.T) {
	for text, want := range map[string]int{`"[[["`: 0, `1`: 0, `[]`: 1, `{"a":[]}`: 2, `[1,[2,[3]],[4]]`: 3} {
		raw, levels, err := DecodeBytes([]byte(" " + text)).RawLevels()
		require.NoError(t, err)
		require.Equal(t, want, levels, text)
		require.Equal(t, text, string(raw))
	}
}

func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, x := rapid.Int64().Draw(t, "n"), rapid.Float64().Draw(t, "x")
		var e Encoder
		e.ArrStart()
		e.Int64(n)
		e.Float64(x)
		e.ArrEnd()
		want, err := json.Marshal([]any{n, x})
		require.NoError(t, err)
		require.Equal(t, string(want), e.String())
		a, err := DecodeBytes(e.Bytes()).ArrIter()
		require.NoError(t, err)
		d := a.d
		require.True(t, a.Next())
		gotN, err := d.Int64()
		require.NoError(t, err)
		require.Equal(t, n, gotN)
		require.True(t, a.Next())
		gotX, err := d.Float64()
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(x), math.Float64bits(gotX))
		require.False(t, a.Next())
		require.NoError(t, a.Err())
	})
	for _, text := range []string{`1.0`, `1e3`, `9223372036854775808`, `"1"`, `true`, ``} {
		_, err := DecodeBytes([]byte(text)).Int64()
		require.Error(t, err, text)
	}
	_, err := DecodeBytes([]byte(`1e999`)).Float64()
	require.Error(t, err)
	var e Encoder
	e.ArrStart()
	e.Float64(math.NaN())
	e.Float64(math.Inf(-1))
	e.Int(7)
	e.ArrEnd()
	require.Equal(t, `[null,null,7]`, e.String())
}

// TestStrings compares written strings with encoding/json (without HTML escapes), and reads them back.
func TestStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		var e Encoder
		e.Str(s)
		require.True(t, json.Valid(e.Bytes()))
		var want string
		require.NoError(t, json.Unmarshal(e.Bytes(), &want))
		require.Equal(t, strings.ToValidUTF8(want, ""), want, "UTF-8")
		got, err := DecodeBytes(e.Bytes()).Str()
		require.NoError(t, err)
		require.Equal(t, want, got)
		if utf8.ValidString(s) {
			require.Equal(t, s, got)
		}
	})
}

// generated draws any value, in the types of encoding/json.
func generated(depth int) *rapid.Generator[any] {
	plain := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }),
	}
	if depth == 0 {
		return rapid.OneOf(plain...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return generated(depth - 1) })
	return rapid.OneOf(append(plain,
		rapid.Map(rapid.SliceOfN(inner, 0, 4), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(rapid.String(), inner, 0, 4), func(v map[string]any) any { return v }))...)
}

func write(e *Encoder, v any) {
	switch v := v.(type) {
	case nil:
		e.Null()
	case bool:
		e.Bool(v)
	case string:
		e.Str(v)
	case json.Number:
		e.Raw([]byte(v))
	case []any:
		e.ArrStart()
		for _, x := range v {
			write(e, x)
		}
		e.ArrEnd()
	case map[string]any:
		e.ObjStart()
		for key, x := range v {
			e.FieldStart(key)
			write(e, x)
		}
		e.ObjEnd()
	}
}

func TestValuesThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := generated(4).Draw(t, "value")
		var e Encoder
		e.SetBytes([]byte("kept{"))
		write(&e, want)
		text, found := bytes.CutPrefix(e.Bytes(), []byte("kept{"))
		require.True(t, found)
		holds(t, text)
		got, err := readValue(DecodeBytes(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		holds(t, text[:cut])
	})
}

func TestErrorsOfACaller(t *testing.T) {
	mine := errors.New("mine")
	require.Same(t, mine, DecodeStr(`{"a":1}`).Obj(func(*Decoder, string) error { return mine }))
	require.Same(t, mine, DecodeStr(`[1]`).Arr(func(*Decoder) error { return mine }))
	require.Error(t, DecodeStr(`null`).Obj(nil))
	require.Error(t, DecodeStr(`{}`).Arr(nil))
}

func TestAFieldHasOneName(t *testing.T) {
	o, err := DecodeStr(`{"a":1 , "b\u0063" : 2}`).ObjIter()
	require.NoError(t, err)
	for _, want := range []string{"a", "bc"} {
		require.True(t, o.Next())
		require.Equal(t, want, o.Name())
		require.NoError(t, o.d.Skip())
	}
	require.False(t, o.Next())
	require.NoError(t, o.Err())
}
