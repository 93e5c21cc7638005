//go:build live

package testenv

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// TestLive_graphiti is `tools/live graphiti`: both servers, each with Bolt and without.
func TestLive_graphiti(t *testing.T) {
	g, err := newForTest(t).StartGraphiti(t.Context())
	require.NoError(t, err)
	// What the kit sends, such as a text of which Lucene makes more than 1,024 clauses, can end the REST service's only
	// worker, and what is recorded later waits for ever.
	restart := func(t *testing.T, surface string) {
		if surface == "rest" {
			require.NoError(t, g.StartREST(t.Context()))
		}
	}
	t.Run("a contradiction closes the old fact", func(t *testing.T) { graphitiContradiction(t, g) })
	for _, surface := range []string{"mcp", "rest"} {
		t.Run("parity/"+surface, func(t *testing.T) { graphitiParity(t, g, surface) })
	}
	for _, c := range []struct {
		name, surface string
		bolt          bool
	}{{"mcp-bolt", "mcp", true}, {"mcp", "mcp", false}, {"rest-bolt", "rest", true}, {"rest", "rest", false}} {
		t.Run("kit/"+c.name, func(t *testing.T) {
			restart(t, c.surface)
			conform(t, g.Backend(c.surface, c.bolt), "graphiti", 2*time.Minute, nil)
		})
	}
	for _, surface := range []string{"mcp", "rest"} {
		t.Run("kit/"+surface+", source-design", func(t *testing.T) {
			restart(t, surface)
			conformAsDesigned(t, g.Backend(surface, false), "graphiti", 2*time.Minute, nil)
		})
	}
}

// graphitiParity compares with graphiti-core's own search over the same graph: the same facts in the same order, in
// every field that the surface has.
func graphitiParity(t *testing.T, g *Graphiti, surface string) {
	// The REST service returns ten fields of a fact, the MCP server all but the embedding.
	fields := []string{"uuid", "name", "fact", "valid_at", "invalid_at", "created_at", "expired_at", "source_node_uuid",
		"target_node_uuid", "episodes"}
	config := g.Backend(surface, true).providerConfig(t, "graphiti", nil)
	config.Namespace = "parity-" + surface
	parity(t, config, func(raw abi.RawResult) (any, error) {
		body, err := firstCall(raw)
		if err != nil {
			return nil, err
		}
		answer, _ := body.(map[string]any)
		if result, ok := answer["result"].(map[string]any); ok {
			answer = result
		}
		return answer["facts"], nil
	}, func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any {
		var lines []any
		for _, q := range asked {
			lines = append(lines, map[string]any{"query": q.text, "group_id": scopes[q.scope]["group_id"], "limit": 20})
		}
		answers := askPython(t, g.Python, "graphiti_search.py", g.Environment, lines)
		if surface == "rest" {
			for _, answer := range answers {
				for _, fact := range answer.([]any) {
					maps.DeleteFunc(fact.(map[string]any), func(name string, _ any) bool {
						return !slices.Contains(fields, name)
					})
				}
			}
		}
		return answers
	}, nil)
}

// graphitiContradiction: a fact that a later one replaces has an end, is marked, and names the event that said it.
func graphitiContradiction(t *testing.T, g *Graphiti) {
	for _, surface := range []string{"mcp", "rest"} {
		config := g.Backend(surface, true).providerConfig(t, "graphiti", nil)
		config.Namespace = "contradiction-" + surface
		result := tell(t, config, "How should I sit on flights?",
			turn("seat-1", "2026-01-12T08:00:00Z", "I prefer window seats on flights."),
			turn("seat-2", "2026-04-21T08:00:00Z", "I now prefer aisle seats on flights."))
		var old, present *abi.Evidence
		for i, e := range result.Evidence {
			switch {
			case strings.Contains(e.Text, "window"):
				old = &result.Evidence[i]
			case strings.Contains(e.Text, "aisle"):
				present = &result.Evidence[i]
			}
		}
		require.NotNil(t, old, "%s: %s", surface, result.FormattedContext)
		require.NotNil(t, present, "%s: %s", surface, result.FormattedContext)
		require.True(t, old.Superseded != nil && *old.Superseded, "%s: the window is over", surface)
		require.True(t, sameInstant("2026-04-21T08:00:00Z", old.InvalidAt), "%s: until %s", surface, old.InvalidAt)
		require.True(t, sameInstant("2026-01-12T08:00:00Z", old.ValidAt), "%s: from %s", surface, old.ValidAt)
		require.Empty(t, present.InvalidAt)
		require.Equal(t, []string{"seat-1"}, old.SourceEventIDs)
		require.Equal(t, []string{"seat-2"}, present.SourceEventIDs)
	}
}
