package words_test

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi/words"
)

// near are texts of the bytes around those that the tests look for.
func near() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte("az \x00\x1f;<=~\x7f\x80\xbc\xff\n\r")), rapid.Byte()), 0, 40), func(b []byte) string { return string(b) })
}

func TestEightBytesAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := near().Filter(func(s string) bool { return len(s) >= 8 }).Draw(t, "text")
		i := rapid.IntRange(0, len(text)-8).Draw(t, "from")
		w := words.At(text, i)
		require.Equal(t, binary.LittleEndian.Uint64([]byte(text[i:])), w)
		require.Equal(t, uint32(w), words.HalfAt(text, i))
		to, want := make([]byte, len(text)), make([]byte, len(text))
		words.Put(to, i, w)
		copy(want[i:], text[i:i+8])
		require.Equal(t, want, to)
		words.PutHalf(to, 0, words.HalfAt(text, i))
		copy(want, text[i:i+4])
		require.Equal(t, want, to)
	})
}

func TestTheLowestMarkIsTheFirstByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := near().Filter(func(s string) bool { return len(s) >= 8 }).Draw(t, "text")[:8]
		w, c := words.At(text, 0), rapid.OneOf(rapid.SampledFrom([]byte(" <\x7f\x80\x00")), rapid.Byte()).Draw(t, "byte")
		place := func(marks uint64) int {
			require.Zero(t, marks&^words.High)
			if marks == 0 {
				return -1
			}
			return bits.TrailingZeros64(marks) / 8
		}
		require.Equal(t, strings.IndexByte(text, c), place(words.Equal(w, c)))
		if c <= 0x80 {
			first := -1
			for i := range len(text) {
				if text[i] < c {
					first = i
					break
				}
			}
			require.Equal(t, first, place(words.Below(w, c)))
		}
	})
}

func TestFirstIsIndexAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := near().Draw(t, "text")
		i := rapid.IntRange(0, len(text)).Draw(t, "from")
		one := rapid.OneOf(rapid.SampledFrom([]byte("<\n\r\x00\xff")), rapid.Byte())
		a, b, c := one.Draw(t, "a"), one.Draw(t, "b"), one.Draw(t, "c")
		want := i
		for want < len(text) && text[want] != a && text[want] != b && text[want] != c {
			want++
		}
		require.Equal(t, want, words.First(text, i, a, b, c))
	})
}

func TestPlainIsASCIIWithoutControlCharactersAndAngles(t *testing.T) {
	require.True(t, words.Plain("") && words.Plain("a063983a-fa27-431e-b5df-90412b186bde") && words.Plain("1 > 0; ~"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(near(), rapid.StringMatching(`[ -;=-~]{0,40}`)).Draw(t, "text")
		want := true
		for i := range len(text) {
			want = want && text[i] >= ' ' && text[i] < 0x7f && text[i] != '<'
		}
		require.Equal(t, want, words.Plain(text))
	})
}

func TestBytesAreSeenAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := near().Draw(t, "text")
		require.Equal(t, text, words.View([]byte(text)))
		require.Equal(t, text, string(words.Bytes(text)))
		require.Empty(t, words.View(nil))
	})
}
