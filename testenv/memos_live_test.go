//go:build live

package testenv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// TestLive_memos is `make test-live BACKEND=memos`: both graph flavours, each with the three ways to write.
func TestLive_memos(t *testing.T) {
	for _, graph := range []string{"neo4j", "neo4j-community"} {
		t.Run(graph, func(t *testing.T) {
			m, err := newForTest(t).StartMemOS(t.Context(), graph)
			require.NoError(t, err)
			for _, mode := range []string{"sync/fast", "sync/fine", "async"} {
				t.Run("kit/"+mode, func(t *testing.T) { conform(t, m.Backend(), "memos", 60*time.Second, map[string]any{"add_mode": mode}) })
			}
			for _, mode := range []string{"sync/fast", "sync/fine"} {
				t.Run("parity/"+mode, func(t *testing.T) { memosParity(t, m, mode) })
			}
		})
	}
}

// memosParity compares with a direct request of POST /product/search in mode fast, with the provider's default limits.
func memosParity(t *testing.T, m *MemOS, mode string) {
	parity(t, m.Backend().providerConfig(t, "memos", map[string]any{"add_mode": mode}), firstCall, func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any {
		var answers []any
		for _, q := range asked {
			answers = append(answers, postJSON(t, m.URL+"/product/search", map[string]any{"user_id": scopes[q.scope]["user_id"], "readable_cube_ids": []string{scopes[q.scope]["cube_id"]},
				"query": q.text, "mode": "fast", "session_id": "parity", "top_k": 10, "pref_top_k": 6, "tool_mem_top_k": 6, "skill_mem_top_k": 3,
				"include_preference": true, "search_tool_memory": true, "include_skill_memory": true, "dedup": "mmr", "rerank": true, "relativity": 0, "internet_search": false}))
		}
		return answers
	}, func(row any) any {
		item, _ := row.(map[string]any)
		metadata, _ := item["metadata"].(map[string]any)
		return metadata["relativity"]
	})
}
