package bytes4

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCounterCountsEveryByteThatIsNotASCII(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("aé水😀")), 0, 40, -1).Draw(t, "text"))
		other := 0
		for _, b := range text {
			if b >= 0x80 {
				other++
			}
		}
		require.Equal(t, estimate(len(text), other), Counter{}.Count(text))
	})
}
