//go:build live

package testenv

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// TestLive_graphiti_core is the part of `tools/live graphiti` for the surface core: the library behind the
// gateway of this checkout.
func TestLive_graphiti_core(t *testing.T) {
	g, err := newForTest(t).StartGraphitiCore(t.Context())
	require.NoError(t, err)
	t.Run("a contradiction closes the old fact", func(t *testing.T) { graphitiCoreContradiction(t, g) })
	t.Run("types and triplets are there only where they are configured", func(t *testing.T) { graphitiCoreTypes(t, g) })
	for _, receipts := range []string{"sync", "queued"} {
		t.Run("kept nothing/"+receipts, func(t *testing.T) {
			keptNothing(t, g.Backend(), "graphiti", map[string]any{"receipts": receipts}, map[string]llm.Fault{
				"prose":               {Purpose: "graphiti.entities", Mode: llm.Prose},
				"cut JSON":            {Purpose: "graphiti.entities", Mode: llm.CutAnswer},
				"prose for the facts": {Purpose: "graphiti.edges", Mode: llm.Prose},
				"the embedder fails":  {Purpose: "embeddings", Mode: llm.Status, Status: 400},
			})
		})
	}
	t.Run("parity", func(t *testing.T) { graphitiCoreParity(t, g) })
	for _, c := range []struct {
		name  string
		extra map[string]any
	}{{"sync", nil}, {"queued", map[string]any{"receipts": "queued"}}, {"bulk-native", map[string]any{"bulk": "native"}},
		{"bulk-queued", map[string]any{"bulk": "native", "receipts": "queued"}}} {
		t.Run("kit/"+c.name, func(t *testing.T) { conform(t, g.Backend(), "graphiti", 2*time.Minute, c.extra) })
	}
	t.Run("kit/source-design", func(t *testing.T) {
		conformAsDesigned(t, g.Backend(), "graphiti", 2*time.Minute, nil)
	})
}

// coreRecipes are those whose answers are compared: facts, entities, all at once; each way to rank that needs no
// centre. The last three have an LLM call for each candidate of a question, on both sides.
var coreRecipes = []string{"EDGE_HYBRID_SEARCH_RRF", "EDGE_HYBRID_SEARCH_MMR", "EDGE_HYBRID_SEARCH_EPISODE_MENTIONS",
	"NODE_HYBRID_SEARCH_EPISODE_MENTIONS", "COMBINED_HYBRID_SEARCH_RRF",
	"EDGE_HYBRID_SEARCH_CROSS_ENCODER", "NODE_HYBRID_SEARCH_CROSS_ENCODER", "COMBINED_HYBRID_SEARCH_CROSS_ENCODER"}

// graphitiCoreParity compares with graphiti-core's own search_ in another process, for every recipe: ids, order, scores
// and all other fields.
func graphitiCoreParity(t *testing.T, g *GraphitiCore) {
	talk := loadConversation(t)
	var scopes map[abi.MemoryScope]map[string]string
	configured := func(recipe string) host.ProviderConfig {
		config := g.Backend().providerConfig(t, "graphiti", map[string]any{"recipe": recipe, "annotate": false})
		config.Namespace = "parity-core"
		return config
	}
	open(t, configured(coreRecipes[0]), func(slot *host.Slot) { scopes = recordAll(t, slot, talk) })
	for _, recipe := range coreRecipes {
		t.Run(recipe, func(t *testing.T) {
			open(t, configured(recipe), func(slot *host.Slot) {
				compare(t, slot, talk, scopes, func(raw abi.RawResult) (any, error) {
					body, err := firstCall(raw)
					answer, _ := body.(map[string]any)
					delete(answer, "group_id")
					delete(answer, "score_alignment")
					return answer, err
				}, func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any {
					var lines []any
					for _, q := range asked {
						lines = append(lines, map[string]any{"query": q.text, "group_id": scopes[q.scope]["group_id"], "limit": 20,
							"recipe": recipe})
					}
					return askPython(t, g.Python, "graphiti_recipes.py", g.Environment, lines)
				}, nil)
			})
		})
	}
}

// graphitiCoreContradiction: the receipt names what was stored and what it closed, and is committed.
func graphitiCoreContradiction(t *testing.T, g *GraphitiCore) {
	config := g.Backend().providerConfig(t, "graphiti", nil)
	config.Namespace = "contradiction-core"
	open(t, config, func(slot *host.Slot) {
		first, err := slot.RecordEvent(t.Context(), turn("seat-1", "2026-01-12T08:00:00Z",
			"I prefer window seats on flights."))
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, first.Status)
		require.NotEmpty(t, texts(t, first.Trace.Details["facts_created"]))
		second, err := slot.RecordEvent(t.Context(), turn("seat-2", "2026-04-21T08:00:00Z",
			"I now prefer aisle seats on flights."))
		require.NoError(t, err)
		require.Equal(t, texts(t, first.Trace.Details["facts_created"]), texts(t, second.Trace.Details["facts_invalidated"]))
		result, err := slot.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "How should I sit on flights?",
			Scope: abi.MemoryScope{RunID: "live", PersonaID: "ann"}, SessionID: "s2"})
		require.NoError(t, err)
		for _, e := range result.Evidence {
			require.NotNil(t, e.Score, "the reranker's own")
			closed := e.NativeID == texts(t, first.Trace.Details["facts_created"])[0]
			require.Equal(t, closed, *e.Superseded, e.Text)
			if closed {
				require.True(t, sameInstant("2026-04-21T08:00:00Z", e.InvalidAt), "until %s", e.InvalidAt)
				require.Equal(t, []string{"seat-1"}, e.SourceEventIDs)
			}
		}
	})
}

// graphitiCoreTypes: a custom type and a fact triple appear in the graph when the configuration says so, and not
// otherwise.
func graphitiCoreTypes(t *testing.T, g *GraphitiCore) {
	for _, configured := range []bool{false, true} {
		extra := map[string]any{"recipe": "NODE_HYBRID_SEARCH_RRF"}
		if configured {
			extra["entity_types"], extra["triplets"] = []string{"Person"}, true
		}
		config := g.Backend().providerConfig(t, "graphiti", extra)
		config.Namespace = map[bool]string{true: "typed-core", false: "untyped-core"}[configured]
		open(t, config, func(slot *host.Slot) {
			scope := abi.MemoryScope{RunID: "live", PersonaID: "ann"}
			_, err := slot.RecordEvent(t.Context(), turn("who", "2026-01-12T08:00:00Z", "I work at Acme."))
			require.NoError(t, err)
			result, err := slot.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "ann Acme", Scope: scope, SessionID: "s2"})
			require.NoError(t, err)
			body, err := firstCall(result.Raw)
			require.NoError(t, err)
			labels := map[string]bool{}
			for _, n := range body.(map[string]any)["nodes"].([]any) {
				for _, label := range n.(map[string]any)["labels"].([]any) {
					labels[label.(string)] = true
				}
			}
			require.Equal(t, configured, labels["Person"], "%v", labels)
			receipt, err := slot.NativeMutation(t.Context(), &abi.NativeMutation{Scope: scope, Name: "add_triplet",
				Reason: "test", Params: map[string]abi.Raw{
					"source": abi.Raw(`"ann"`), "relation": abi.Raw(`"LIVES_IN"`), "fact": abi.Raw(`"ann lives in Rome"`), "target": abi.Raw(`"Rome"`), "valid_at": abi.Raw(`"2026-02-01T00:00:00Z"`)}})
			if !configured {
				require.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Len(t, receipt.NativeIDs, 1)
			provenance, err := slot.Provenance(t.Context(), &abi.ProvenanceRequest{Scope: scope, NativeID: receipt.NativeIDs[0]})
			require.NoError(t, err)
			require.Equal(t, "ann lives in Rome", provenance.Items[0].Evidence.Text)
		})
	}
}

// texts reads a list of strings.
func texts(t *testing.T, raw abi.Raw) []string {
	t.Helper()
	var list []string
	require.NoError(t, json.Unmarshal(raw, &list), "%s", raw)
	return list
}
