//go:build live

package testenv

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// TestLive_memos is `tools/live memos`: both graph flavours, each with the three ways to write.
func TestLive_memos(t *testing.T) {
	for _, graph := range []string{"neo4j", "neo4j-community"} {
		t.Run(graph, func(t *testing.T) {
			m, err := newForTest(t).StartMemOS(t.Context(), graph)
			require.NoError(t, err)
			for _, mode := range []string{"sync/fast", "sync/fine", "async"} {
				t.Run("kit/"+mode, func(t *testing.T) {
					conform(t, m.Backend(), "memos", 2*time.Minute, map[string]any{"add_mode": mode})
				})
			}
			t.Run("kit/source-design", func(t *testing.T) {
				conformAsDesigned(t, m.Backend(), "memos", 2*time.Minute, nil)
			})
			if graph == "neo4j" {
				for _, mode := range []string{"sync/fine", "async"} {
					t.Run("kept nothing/"+mode, func(t *testing.T) {
						keptNothing(t, m.Backend(), "memos", map[string]any{"add_mode": mode}, map[string]llm.Fault{
							"prose":              {Purpose: "memos.extract", Mode: llm.Prose},
							"an empty list":      {Purpose: "memos.extract", Mode: llm.Say, Content: `{"memory list":[],"summary":""}`},
							"cut JSON":           {Purpose: "memos.extract", Mode: llm.CutAnswer},
							"the embedder fails": {Purpose: "embeddings", Mode: llm.Status, Status: 400},
						})
					})
				}
			}
			if graph == "neo4j-community" { // the other flavour loses a batch with a skill in it
				t.Run("four groups", func(t *testing.T) { memosFourGroups(t, m) })
			}
			for _, mode := range []string{"sync/fast", "sync/fine"} {
				t.Run("parity/"+mode, func(t *testing.T) {
					memosParity(t, m, m.Backend().providerConfig(t, "memos", map[string]any{"add_mode": mode}))
				})
			}
			t.Run("parity/source-design", func(t *testing.T) {
				memosParity(t, m, m.Backend().designedConfig(t, "memos", map[string]any{"add_mode": "sync/fast"}))
			})
		})
	}
}

// memosParity compares with a direct request of POST /product/search in mode fast, with the provider's default limits, or
// with those that the design names.
func memosParity(t *testing.T, m *MemOS, config host.ProviderConfig) {
	more := map[string]any{"pref_top_k": 6, "tool_mem_top_k": 6, "skill_mem_top_k": 3, "include_skill_memory": true,
		"dedup": "mmr", "rerank": true, "relativity": 0}
	if config.Profile == abi.ProfileSourceDesign {
		config.Namespace, more = "parity-design", nil
	}
	parity(t, config, firstCall,
		func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any {
			var answers []any
			for _, q := range asked {
				body := map[string]any{"user_id": scopes[q.scope]["user_id"],
					"readable_cube_ids": []string{scopes[q.scope]["cube_id"]}, "query": q.text, "mode": "fast",
					"session_id": "parity", "top_k": 10, "include_preference": true, "search_tool_memory": true,
					"internet_search": false}
				maps.Copy(body, more)
				answers = append(answers, postJSON(t, m.URL+"/product/search", body))
			}
			return answers
		}, func(row any) any {
			item, _ := row.(map[string]any)
			metadata, _ := item["metadata"].(map[string]any)
			return metadata["relativity"]
		})
}

// memosFourGroups: a turn with a wish and several tool calls gives memories of all four kinds, and the context has each
// under its own heading.
func memosFourGroups(t *testing.T, m *MemOS) {
	event := turn("groups-1", "2026-05-01T10:00:00Z",
		"I always prefer an aisle seat. Book me one again on flights AF1 to AF5.")
	for i := range 5 { // fewer tool messages make no skill

		id, arguments, seat := fmt.Sprintf("call_%d", i), fmt.Sprintf(`{"flight":"AF%d","kind":"aisle"}`, i+1),
			fmt.Sprintf(`{"seat":"%dC"}`, 10+i)
		event.Messages = append(event.Messages, abi.Message{Role: abi.RoleAssistant,
			ToolCalls: []abi.ToolCall{{ID: id, Name: "book_seat", Arguments: arguments}}},
			abi.Message{Role: abi.RoleTool, ToolCallID: id, Content: &seat})
	}
	done := "Done: 10C to 14C, all on the aisle."
	event.Messages = append(event.Messages, abi.Message{Role: abi.RoleAssistant, Content: &done})
	config := m.Backend().providerConfig(t, "memos", map[string]any{"add_mode": "sync/fine", "dedup": "no"})
	config.Namespace = "four-groups"
	result := tell(t, config, "Which aisle seat do I like, and how is one booked with book_seat?", event)
	groups := map[string]int{}
	for _, e := range result.Evidence {
		groups[e.Group]++
	}
	for _, group := range []string{"text_mem", "pref_mem", "tool_mem", "skill_mem"} {
		require.Positive(t, groups[group], "%s in %v\n%s", group, groups, result.FormattedContext)
	}
}
