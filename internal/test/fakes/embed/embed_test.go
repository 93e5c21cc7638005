package embed_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

func TestTextsThatShareWordsAreNear(t *testing.T) {
	seat := embed.Text("The user always prefers an aisle seat.")
	assert.InDelta(t, 1, embed.Cosine(seat, seat), 1e-6)
	assert.Greater(t, embed.Cosine(seat, embed.Text("Which seat does the user like?")),
		embed.Cosine(seat, embed.Text("Biscuit is afraid of thunder")))
	assert.Greater(t, embed.Cosine(embed.Text("我喜欢绿茶"), embed.Text("绿茶")), 0.5)
	assert.Zero(t, embed.Cosine(embed.Text(""), seat), "nothing is near nothing")
}

func FuzzVectorsAreUnits(f *testing.F) {
	f.Add("a b c")
	f.Add("\x00 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		v := embed.Text(text)
		if length := embed.Cosine(v, v); len(embed.Words(text)) > 0 && math.Abs(length-1) > 1e-4 {
			t.Fatalf("length %v", length)
		}
	})
}
