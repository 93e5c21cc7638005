//go:build live

package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLive_memos is `make test-live BACKEND=memos`: both graph flavours, each with the three ways to write.
func TestLive_memos(t *testing.T) {
	for _, graph := range []string{"neo4j", "neo4j-community"} {
		t.Run(graph, func(t *testing.T) {
			m, err := newForTest(t).StartMemOS(t.Context(), graph)
			require.NoError(t, err)
			for _, mode := range []string{"sync/fast", "sync/fine", "async"} {
				t.Run("kit/"+mode, func(t *testing.T) { conform(t, m.Backend(), "memos", map[string]any{"add_mode": mode}) })
			}
		})
	}
}
