package unambiguous_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/unambiguous"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"an object", `{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}`, ""},
		{"nothing to go through", `7`, ""},
		{"names that differ in case", `{"a":1,"A":2}`, `A: differs from "a" only in case`},
		{"names that differ in case further in", `{"x":[{"userId":1,"user_id":3,"USERID":2}]}`,
			`x[0].USERID: differs from "userId"`},
		{"letters that are one without case", `{"user":1,"u\u017fer":2}`, `["uſer"]: differs from "user"`},
		{"names that differ in more", `{"a":1,"A ":2,"á":3,"b":{"A":1}}`, ""},
		{"a name twice", `{"user_id":"ann","user_id":"bob"}`, "user_id: given twice"},
		{"a name twice, once escaped", `{"user_id":"ann","\u0075ser_id":"bob"}`, "user_id: given twice"},
		{"a name twice further in", `{"events":[{},{"metadata":{"a b":1,"a b":1}}]}`,
			`events[1].metadata["a b"]: given twice`},
		{"no name at all, twice", `{"":1,"":2}`, `[""]: given twice`},
		{"a long name twice", `{"` + strings.Repeat("é", 40) + `":1,"` + strings.Repeat("é", 40) + `":1}`,
			"...\"]: given twice"},
		{"a whole pair", `"\ud83d\ude00"`, ""},
		{"an escaped backslash before u", `"\\ud83d"`, ""},
		{"the first half", `{"a":"cut \ud83d"}`, `\ud83d at byte 10 is half`},
		{"the first half before another escape", `"\ud83d\n"`, `half`},
		{"two first halves", `"\uD83D\uD83D"`, `\uD83D at byte 1 is half`},
		{"the second half", `"\ude00"`, `\ude00 at byte 1 is half`},
		{"a half in a name", `{"\ud83d":1}`, "half"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(c.text)))
			err := unambiguous.Check([]byte(c.text))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
			require.Contains(t, err.Error(), c.says)
		})
	}
}

// What Check accepts, Go's parser and the contract's read in the same way: no character was replaced and no value
// hidden.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":1,"a":2}`, `"\ud83d\ude00"`, `["\ud83d"]`, `{"a":{"b":[1,{}]}}`, `"\\\ud83d"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !abi.ValidJSON([]byte(text)) || strings.Contains(text, "\uFFFD") ||
			strings.Contains(strings.ToLower(text), `\ufffd`) || !json.Valid([]byte(text)) {
			return
		}
		if unambiguous.Check([]byte(text)) != nil {
			return
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return // a number beyond float64
		}
		again, err := json.Marshal(value)
		require.NoError(t, err)
		if strings.ToValidUTF8(text, "") == text {
			require.NotContains(t, string(again), "\uFFFD")
		}
		require.Equal(t, strings.Count(text, ":"), strings.Count(string(again), ":"), "a name was lost")
	})
}

// Letters that Unicode's simple folding treats as equal are equal in names.
func TestCheckFoldsEveryLetter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if other := unicode.SimpleFold(r); other != r {
			text := []byte(`{"` + string(r) + `":1,"` + string(other) + `":2}`)
			require.ErrorContains(t, unambiguous.Check(text), "differs", "%q %q", r, other)
		}
	}
}
