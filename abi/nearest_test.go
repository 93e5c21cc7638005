package abi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	fields := []string{"role", "content", "name", "tool_call_id", "tool_calls", "id", "text", "test"}
	for word, want := range map[string]string{
		"rolle": "role", "rle": "role", "orle": "role", "ROLE": "role", "contents": "content",
		"tool_call":     "tool_calls",
		"toolcallid":    "tool_call_id",
		"tooL_callz_id": "tool_call_id", "xy": "", "": "", "somethingelse": "", "i": "id", "texst": "text",
		"tst":  "test",
		"role": "role",
	} {
		require.Equal(t, want, Nearest(word, fields), word)
	}
	require.Equal(t, "pet_observability", Nearest("pet_obserability_xy", []string{"backend", "pet_observability"}),
		"a third of the length")
	require.Equal(t, "ab_cd", Nearest("ab_xd", []string{"ab_cd", "ab_dd"}), "the first of equals")
	providers := []string{"mem0", "memos"}
	require.Equal(t, "memos", Nearest("memo", providers), "of equals the one that the word begins")
	require.Equal(t, "mem0", Nearest("mem", providers), "the nearer one")
}

func TestSuggest(t *testing.T) {
	known := []string{"role", "content"}
	require.Equal(t, `, did you mean "role"?`, Suggest("rol", known))
	require.Equal(t, ", want one of role, content", Suggest("zzzz", known))
	require.Empty(t, Suggest("zzzz", nil))
}
