package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/text/tokens"
)

func encodings() []*codec.Codec {
	return []*codec.Codec{codec.NewCl100kBase(), codec.NewO200kBase()}
}

func TestTheCommittedVocabulariesAreTheLibrarys(t *testing.T) {
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	for _, c := range encodings() {
		file, err := os.ReadFile(filepath.Join("..", "..", "internal", "text", "tokens", c.GetName()+".zst"))
		require.NoError(t, err)
		got, err := decoder.DecodeAll(file, nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(vocabulary(c), got), "%s: go run ./vocabulary ../internal/text/tokens writes it anew",
			c.GetName())
	}
}

// pieces are what texts are made of: words of several scripts, contractions, numbers, white space, code, emoji, long
// runs, wrong UTF-8.
var pieces = []string{"a", "the", " tea", " Memory", "isn't", "I'LL", "'ſ", "naïve", "Größe", "日本語", "воды", "مرحبا",
	"हिन्दी", "é", "🫖", "👩‍👩‍👧", "123", "4567", "٣",
	" ", "  ", "\n", "\r\n", "\t", "\u00a0", "!", "...", "/*", "{\"a\":[1]}", "<|endoftext|>", "http://x.y/z?q=1",
	"\xff", "\xf0\x9f", "\x00", "\x7f",
	strings.Repeat("x", 300), strings.Repeat("=", 120), strings.Repeat(" ", 90), "supercalifragilisticexpialidocious"}

func TestCountsAreTheLibrarys(t *testing.T) {
	texts := 20_000
	if brief.Tests() {
		texts = 2_000
	}
	for _, c := range encodings() {
		counter, err := tokens.New(c.GetName())
		require.NoError(t, err)
		random := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.SampledFrom(pieces)),
			func(list []string) string { return strings.Join(list, "") }),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		rapid.Check(t, func(t *rapid.T) {
			text := random.Draw(t, "text")
			want, err := c.Count(text)
			require.NoError(t, err)
			require.EqualValues(t, want, counter.Count([]byte(text)), "%q", text)
			max := rapid.Int64Range(0, int64(want)+1).Draw(t, "max")
			length, count := counter.Fit([]byte(text), max)
			require.LessOrEqual(t, count, max)
			if max > int64(want) {
				require.Equal(t, len(text), length)
				require.EqualValues(t, want, count)
			}
		})
		for range texts {
			var b strings.Builder
			for range rand.IntN(40) {
				b.WriteString(pieces[rand.IntN(len(pieces))])
			}
			want, err := c.Count(b.String())
			require.NoError(t, err)
			require.EqualValues(t, want, counter.Count([]byte(b.String())), "%q", b.String())
		}
	}
}

func TestAPageWithoutSpacesIsCountedInTime(t *testing.T) {
	counter, err := tokens.New(tokens.Cl100kName)
	require.NoError(t, err)
	began := time.Now()
	counter.Count([]byte(strings.Repeat("ab", 1<<17)))
	require.Less(t, time.Since(began), 10*time.Second)
}

func BenchmarkCount8KB(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("..", "..", "RATIONALE.md"))
	require.NoError(b, err)
	c := codec.NewO200kBase()
	counter, err := tokens.New(tokens.O200kName)
	require.NoError(b, err)
	b.Run("by=library", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_, _ = c.Count(string(text[i%4096 : i%4096+8192]))
		}
	})
	b.Run("by=ours", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_, _ = counter.Fit(text[i%4096:i%4096+8192], 1<<40)
		}
	})
}
