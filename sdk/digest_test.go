package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/sdk"
)

func TestDigestIsSHA256(t *testing.T) {
	for n := range 200 {
		text := strings.Repeat("x", n)
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, hex.EncodeToString(sum[:]), sdk.Digest256(text), "%d bytes", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		var d sdk.Digest
		std := sha256.New()
		for _, text := range rapid.SliceOf(rapid.String()).Draw(t, "texts") {
			d.Add(text)
			std.Write([]byte(text))
		}
		assert.Equal(t, hex.EncodeToString(std.Sum(nil)), d.Hex())
	})
}
