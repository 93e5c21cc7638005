//go:build live

package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLive_graphiti is `make test-live BACKEND=graphiti`: both servers, each with Bolt and without.
func TestLive_graphiti(t *testing.T) {
	g, err := newForTest(t).StartGraphiti(t.Context())
	require.NoError(t, err)
	for _, c := range []struct {
		name, surface string
		bolt          bool
	}{{"rest+bolt", "rest", true}, {"mcp+bolt", "mcp", true}, {"mcp", "mcp", false}, {"rest", "rest", false}} {
		t.Run("kit/"+c.name, func(t *testing.T) { conform(t, g.Backend(c.surface, c.bolt), "graphiti", nil) })
	}
}
