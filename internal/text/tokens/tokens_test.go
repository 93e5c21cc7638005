package tokens

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBytes4CountsEveryByteThatIsNotASCII(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("aé水😀")), 0, 40, -1).Draw(t, "text"))
		other := 0
		for _, b := range text {
			if b >= 0x80 {
				other++
			}
		}
		require.Equal(t, estimate(len(text), other), Bytes4{}.Count(text))
	})
}

func TestTheExactCountersCountAtOnce(t *testing.T) {
	for name, want := range map[string]int64{Cl100kName: 9, O200kName: 6} {
		c, err := New(name)
		require.NoError(t, err)
		require.Equal(t, want, c.Count([]byte("Die Größe von 日本語 ")), name)
	}
}

func BenchmarkReadVocabulary(b *testing.B) {
	for b.Loop() {
		_, err := newEncoding(o200kTokens, 199_998, nil)
		require.NoError(b, err)
	}
}
