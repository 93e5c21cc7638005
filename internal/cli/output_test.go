package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

func TestExitCodes(t *testing.T) {
	want := map[abi.Code]int{
		abi.CodeInvalidArgument: 2, abi.CodeTooLarge: 2, abi.CodeUnauthenticated: 4, abi.CodeDenied: 4,
		abi.CodeReadOnly: 4, abi.CodeNotFound: 5, abi.CodeConflict: 5,
		abi.CodeUnsupported: 6, abi.CodeRateLimited: 3, abi.CodeUnavailable: 3, abi.CodeTimeout: 3, abi.CodeBackend: 1,
		abi.CodeIsolationBreach: 1, abi.CodeInternal: 1,
	}
	for _, code := range abi.Codes() {
		got, ok := want[code]
		require.True(t, ok, "no exit code is meant for %s", code)
		require.Equal(t, got, ExitCode(abi.NewError(code, "x")), code)
	}
	again := abi.NewError(abi.CodeBackend, "502")
	again.Retryable = true
	require.Equal(t, ExitRetry, ExitCode(again))
	never := abi.NewError(abi.CodeUnavailable, "data file is damaged")
	never.Retryable = false
	require.Equal(t, ExitFailed, ExitCode(never))
	require.Equal(t, ExitFailed, ExitCode(io.ErrUnexpectedEOF))
}

func TestErrorsOfTheBackendKeepTheirBody(t *testing.T) {
	var stderr bytes.Buffer
	o := NewOutput(System{Stdout: io.Discard, Stderr: &stderr})
	o.Fail(&abi.Error{Code: abi.CodeBackend, Message: "two\nlines", Hint: "do this",
		Native: &abi.NativeError{Status: new(int64(500)), Body: "boom\x1b[31m"}})
	require.Equal(t, "memhost: two\nmemhost: lines\n  backend said 500: boom\\u{1b}[31m\n  hint: do this\n", stderr.String())
}

func TestUnicodeOnlyWhereTheLocaleHasIt(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    bool
	}{{nil, false}, {[]string{"LANG=C"}, false}, {[]string{"LANG=C.UTF-8"}, true}, {[]string{"LANG=de_DE.utf8"}, true},
		{[]string{"LANG=C.UTF-8", "LC_ALL=C"}, false},
		{[]string{"LANG=C.UTF-8", "TERM=dumb"}, false}} {
		o := NewOutput(System{Environ: c.environ, Stdout: io.Discard, Stderr: io.Discard})
		require.Equal(t, c.want, o.Unicode, c.environ)
	}
}

func TestColumns(t *testing.T) {
	list := []Column{{"full_history", []string{"one two three", "日本語のとても長い文章はどこでも折り返せます。"}, "12 tokens"},
		{"no_memory", []string{"(nothing)"}, "nothing"}}
	for width, name := range map[int]string{62: "wide", 50: "narrow"} {
		var b bytes.Buffer
		o := NewOutput(System{Stdout: &b, Stderr: io.Discard})
		o.Width = width
		o.Columns(list)
		want := map[string]string{"wide": `
full_history                    no_memory
------------------------------  ------------------------------
one two three                   (nothing)
日本語のとても長い文章はどこで
も折り返せます。
(12 tokens)                     (nothing)
`, "narrow": `
  full_history (12 tokens)
    one two three
    日本語のとても長い文章はどこでも折り返せます。

  no_memory (nothing)
    (nothing)
`}[name]
		require.Equal(t, want, b.String(), name)
	}
}

func TestWrapLosesNothingAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab 日🫖é\u0301 \t"))).Draw(t, "text")
		width := rapid.IntRange(2, 20).Draw(t, "width")
		parts := wrap(text, width)
		require.NotEmpty(t, parts)
		for _, part := range parts {
			require.LessOrEqual(t, uniseg.StringWidth(part), width, "%q", part)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		require.Equal(t, squeeze(text), squeeze(strings.Join(parts, "")))
	})
}

func TestExcerpt(t *testing.T) {
	tea := []string{"tea"}
	require.Equal(t, []string{"(nothing)"}, Excerpt("", tea))
	require.Equal(t, []string{"Tea at 5", "... and 1 other line"},
		Excerpt("<memory-context backend=\"tea\" scope=\"r/u\">\nTea at 5\n\nb\n</memory-context>", tea))
	require.Equal(t, []string{"tea 3", "tea 4", "tea 5", "tea 6", "... and 3 other lines"},
		Excerpt("tea 1\ntea 2\ntea 3\ncake\ntea 4\ntea 5\ntea 6", tea))
	long := strings.Repeat("so many words ", 30) + "green tea " + strings.Repeat("and more of them ", 30)
	got := Excerpt(long, tea)[0]
	require.Contains(t, got, "green tea")
	require.Less(t, len(got), 170)
	require.Regexp(t, `^\.\.\. .* \.\.\.$`, got)
}

func TestSizes(t *testing.T) {
	require.Equal(t, "9999 bytes", Size(9999))
	require.Equal(t, "316 KB", Size(323665))
	require.Equal(t, "10 MB", Size(10<<20))
	require.Equal(t, "1 event", Count(1, "event"))
	require.Equal(t, "0 events", Count(0, "event"))
}
