package traceparent

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAHeaderIsReadAndWritten(t *testing.T) {
	p, ok := Parse(example)
	require.True(t, ok)
	assert.Equal(t, byte(0x4b), p.Trace[0])
	assert.Equal(t, byte(0xb7), p.Span[7])
	assert.True(t, p.Sampled)
	assert.Equal(t, example, p.String())
	p.Sampled = false
	assert.Equal(t, example[:53]+"00", p.String())
	assert.Empty(t, Parent{}.String())
	later, ok := Parse("cc" + example[2:] + "-what-comes-later")
	require.True(t, ok)
	assert.Equal(t, example, later.String())
}

func TestAnInvalidHeaderIsNone(t *testing.T) {
	for _, header := range []string{"", "00", example[:54], example + "-more", example + "x", "ff" + example[2:],
		"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g", "cc" + example[2:] + "x"} {
		p, ok := Parse(header)
		assert.False(t, ok, header)
		assert.False(t, p.Present(), header)
		ctx := context.Background()
		assert.Equal(t, ctx, Accept(ctx, header))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, header string) {
		if p, ok := Parse(header); ok {
			again, ok := Parse(p.String())
			require.True(t, ok)
			require.Equal(t, p, again)
		}
	})
}
