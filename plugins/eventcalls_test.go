package plugins

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

func TestEventCallsFollowTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		provider, block string
		known           bool
		least           int64
	}{
		{"mem0", `{"url":"http://127.0.0.1:8888"}`, true, 1},
		{"mem0", `{"url":"http://127.0.0.1:8888","infer":false}`, true, 0},
		{"mem0", `{"url":"https://api.mem0.ai"}`, false, 0},
		{"mem0", `{"url":"http://127.0.0.1:1","api":"platform"}`, false, 0},
		{"mem0", `{"url":"https://api.mem0.ai","infer":false}`, true, 0},
		{"simple_rag", `{}`, true, 0},
		{"simple_rag", `{"infer":true}`, true, 1},
		{"graphiti", `{}`, true, 2},
		{"memos", `{}`, true, 1},
		{"memos", `{"add_mode":"sync/fast"}`, true, 0},
		{"memos", `{"add_mode":"sync/fine"}`, true, 1},
		{"honcho", ``, false, 0},
	} {
		calls, ok := EventCallsOf(c.provider, []byte(c.block))
		require.True(t, ok, c.provider)
		require.Equal(t, c.known, calls.Known, "%s %s", c.provider, c.block)
		require.Equal(t, c.least, calls.Least, "%s %s", c.provider, c.block)
		require.NotEmpty(t, calls.About)
	}
}

// Every provider that writes to a backend has an entry, and no other.
func TestEventCallsAreOfEachBackend(t *testing.T) {
	for _, m := range Builtin() {
		info, err := host.Inspect(m.Wasm, host.Limits{})
		require.NoError(t, err)
		writes := false
		for _, r := range info.Manifest.Routes {
			writes = writes || r.Class == abi.ClassWrite
		}
		for _, p := range info.Manifest.Providers {
			_, ok := EventCallsOf(p.Name, nil)
			require.Equal(t, writes, ok, p.Name)
		}
	}
}
