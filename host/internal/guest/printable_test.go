package guest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHostileTextBecomesOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain, Grüße, 記憶, 👩‍👩‍👧, مرحبا": "plain, Grüße, 記憶, 👩‍👩‍👧, مرحبا",
		"a\nb\r\tc":                            `a\nb\r\tc`,
		"\x1b[2J\x1b]0;title\a":                `\x1b[2J\x1b]0;title\a`,
		"\u009b31m\u0085\u2028\u2029\u202e":    `\u009b31m\u0085\u2028\u2029\u202e`,
		"\xff\xc3(\x00\x7f":                    `\xff\xc3(\x00\x7f`,
		"2026-11-22 [ERROR] host\n[INFO] fake": `2026-11-22 [ERROR] host\n[INFO] fake`,
	} {
		require.Equal(t, want, Printable(text, 1000))
	}
	require.Equal(t, "é", Printable("éé", 3), "not cut inside a character")
	require.Equal(t, "a", Printable("a\nb", 2), "nor inside an escape")
	rapid.Check(t, func(t *rapid.T) {
		got := Printable(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), 100)
		require.LessOrEqual(t, len(got), 100)
		require.True(t, utf8.ValidString(got))
		require.False(t, strings.ContainsAny(got, "\n\r\x1b\x00\u009b"))
	})
}
