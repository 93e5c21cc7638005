package sdk_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/sdk"
)

func TestAppendIsAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, text := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "text")
		room := make([]byte, len(before), len(before)+rapid.IntRange(0, 20).Draw(t, "room"))
		copy(room, before)
		require.Equal(t, before+text, string(sdk.Append(room, text)))
		require.Equal(t, before, string(room))
	})
}

func TestHundredthsAreThoseOfStrconv(t *testing.T) {
	check := func(t require.TestingT, x float64) {
		require.Equal(t, "a"+strconv.FormatFloat(x, 'f', 2, 64), string(sdk.AppendHundredths([]byte("a"), x)))
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 0.005, 0.015, 0.125, 0.375, 0.625, 0.875, 0.995, 0.9950000000000001, 1, 1.005, 9.995, 9.999, 10, 99.995, 99.999, 127.999, 128,
		-0.5, 0.4216370323930363, 1e-3, 1e-300, 5e-324, 0x1p-9, 0x1p-10, 0x1p-11, 0x1p-12, 1 << 51, 1 << 52, 1 << 53, 1 << 54, 1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		check(t, x)
	}
	for n := range 128 * 8 { // only eighths lie between two
		check(t, float64(n)/8)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.Float64Range(0, 1e6), rapid.Map(rapid.IntRange(0, 1<<20), func(n int) float64 { return float64(n) / 1024 })).Draw(t, "x"))
	})
}

func TestTrimSpaceIsThatOfStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab \n\t\v\x00\x1f\x7f\u0085\u00a0\u2028é")), rapid.Rune())).Draw(t, "text")
		assert.Equal(t, strings.TrimSpace(text), sdk.TrimSpace(text))
	})
}
