package tokens

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheExactCountersCountAtOnce(t *testing.T) {
	for name, want := range map[string]int64{Cl100kName: 9, O200kName: 6} {
		c, err := New(name)
		require.NoError(t, err)
		require.Equal(t, want, c.Count([]byte("Die Größe von 日本語 ")), name)
	}
}

// pieces are parts of texts: words in several scripts, contractions, numbers, white space, code, emoji, long runs,
// invalid UTF-8. Each has its number of tokens in cl100k_base and o200k_base.
var pieces = []piece{
	{"a", 1, 1},
	{"the", 1, 1},
	{" tea", 1, 1},
	{" Memory", 1, 1},
	{"isn't", 3, 2},
	{"I'LL", 3, 3},
	{"'ſ", 3, 2},
	{"naïve", 3, 3},
	{"Größe", 2, 2},
	{"日本語", 4, 2},
	{"воды", 2, 2},
	{"مرحبا", 5, 2},
	{"हिन्दी", 6, 3},
	{"é", 1, 1},
	{"🫖", 3, 3},
	{"👩\u200d👩\u200d👧", 13, 8},
	{"123", 1, 1},
	{"4567", 2, 2},
	{"٣", 2, 1},
	{" ", 1, 1},
	{"  ", 1, 1},
	{"\n", 1, 1},
	{"\r\n", 1, 1},
	{"\t", 1, 1},
	{"\u00a0", 1, 1},
	{"!", 1, 1},
	{"...", 1, 1},
	{"/*", 1, 1},
	{"{\"a\":[1]}", 5, 5},
	{"<|endoftext|>", 7, 7},
	{"http://x.y/z?q=1", 8, 8},
	{"\xff", 1, 1},
	{"\xf0\x9f", 1, 1},
	{"\x00", 1, 1},
	{"\x7f", 1, 1},
	{"a\x7fb \x7f\x7f", 6, 6},
	{strings.Repeat("x", 300), 38, 38},
	{strings.Repeat("=", 120), 3, 3},
	{strings.Repeat(" ", 90), 2, 2},
	{"supercalifragilisticexpialidocious", 11, 10},
}

type piece struct {
	text          string
	cl100k, o200k int64
}

func TestExactCounts(t *testing.T) {
	for _, p := range pieces {
		for name, want := range map[string]int64{Cl100kName: p.cl100k, O200kName: p.o200k} {
			c, err := New(name)
			require.NoError(t, err)
			require.Equal(t, want, c.Count([]byte(p.text)), "%s: %q", name, p.text)
			require.Equal(t, want, c.Count([]byte(p.text)), "the same from the cache")
		}
	}
}

// TestFitTakesWhatFits: the longest prefix that the limit allows, between characters.
func TestFitTakesWhatFits(t *testing.T) {
	for _, name := range []string{Cl100kName, O200kName} {
		counter, err := New(name)
		require.NoError(t, err)
		random := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.SampledFrom(pieces)), func(list []piece) string {
			var b strings.Builder
			for _, p := range list {
				b.WriteString(p.text)
			}
			return b.String()
		}), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		rapid.Check(t, func(t *rapid.T) {
			text := []byte(random.Draw(t, "text"))
			all := counter.Count(text)
			max := rapid.Int64Range(0, all+1).Draw(t, "max")
			length, count := counter.Fit(text, max)
			require.LessOrEqual(t, count, max)
			require.Equal(t, counter.Count(text[:length]), count)
			if max > all {
				require.Equal(t, len(text), length)
			}
			if utf8.Valid(text) {
				require.True(t, utf8.Valid(text[:length]))
			}
		})
	}
}

// TestAPageWithoutSpacesIsCountedInTime: the library merges one long piece in n log n.
func TestAPageWithoutSpacesIsCountedInTime(t *testing.T) {
	counter, err := New(Cl100kName)
	require.NoError(t, err)
	began := time.Now()
	require.Equal(t, int64(1<<17), counter.Count([]byte(strings.Repeat("ab", 1<<17))))
	require.Less(t, time.Since(began), 10*time.Second)
}
