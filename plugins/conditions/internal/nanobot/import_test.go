package nanobot

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// A file that arrived in parts has the same text and lines, wherever it was split.
func TestAFileIsReadAcrossItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		call := sdktest.New(t, sdktest.Options{}).Call(abi.OpNativeMutation,
			abi.MemoryScope{RunID: "r", PersonaID: "p"})
		parts := rapid.SliceOf(rapid.StringOf(rapid.RuneFrom([]rune("ab \r\n\t山")))).Draw(t, "parts")
		stored := func() *Incoming {
			in := &Incoming{Base: &Base{State: state.Of(call)}, Paths: []string{"f"}, parts: map[string][]sdk.Item{}}
			for i, part := range parts {
				key := "import/f//" + strconv.Itoa(i)
				require.NoError(t, call.Put(key, []byte(part), sdk.AnyVersion))
				in.parts["f"] = append(in.parts["f"], sdk.Item{Key: key, Size: int64(len(part))})
			}
			return in
		}
		whole := strings.Join(parts, "")
		first := stored()
		assert.Equal(t, whole, first.Take("f"))
		require.NoError(t, first.Err())
		var want, got []string
		for line := range strings.SplitSeq(whole, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				want = append(want, line)
			}
		}
		in := stored()
		for line := range in.TakeLines("f") {
			got = append(got, line)
		}
		require.NoError(t, in.Err())
		assert.Equal(t, want, got)
		assert.Empty(t, in.Paths)
		assert.EqualValues(t, 1, in.Taken)
	})
}
