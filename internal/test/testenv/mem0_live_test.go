//go:build live

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// TestLive_mem0 is `tools/live mem0`. With MEM0_URL (and MEM0_KEY) the kit runs against that server
// instead; the gateway's own recordings and the parity with the library need the one that is started here.
func TestLive_mem0(t *testing.T) {
	if url := os.Getenv("MEM0_URL"); url != "" {
		b := &Backend{Name: "mem0", Provider: "mem0", Config: map[string]any{"url": url}, Secrets: map[string]Secret{}}
		if key := os.Getenv("MEM0_KEY"); key != "" {
			b.Config["api_key"] = map[string]any{"secret": "mem0"}
			b.Secrets["mem0"] = Secret{Value: key, Origin: url}
		}
		t.Run("kit/mem0", func(t *testing.T) { conform(t, b, "mem0", 30*time.Second, nil) })
		t.Run("kit/simple_rag", func(t *testing.T) { conform(t, b, "simple_rag", 30*time.Second, nil) })
		return
	}
	m := Mem0Server(t)
	b := m.Backend()
	b.Env = m.Env
	t.Run("gateway/recordings", func(t *testing.T) {
		gatewayTests(t, "mem0", m.Python, m.Environment, "tests/test_recordings.py", "tests/test_parity.py")
	})
	t.Run("ghost ids of 2.0.18", mem0Ghosts)
	t.Run("kit/mem0", func(t *testing.T) { conform(t, b, "mem0", 30*time.Second, nil) })
	t.Run("kit/mem0, reranked", func(t *testing.T) {
		conform(t, b, "mem0", 30*time.Second, map[string]any{"rerank": true, "rerank_pool": 20})
	})
	t.Run("kit/simple_rag", func(t *testing.T) { conform(t, b, "simple_rag", 30*time.Second, nil) })
	t.Run("kit/mem0, source-design", func(t *testing.T) { conformAsDesigned(t, b, "mem0", 30*time.Second, nil) })
	t.Run("kit/simple_rag, source-design", func(t *testing.T) {
		conformAsDesigned(t, b, "simple_rag", 30*time.Second, nil)
	})
	for _, c := range []struct {
		name   string
		config host.ProviderConfig
	}{{"mem0", b.providerConfig(t, "mem0", nil)},
		{"mem0, reranked", b.providerConfig(t, "mem0", map[string]any{"rerank": true})},
		{"mem0, source-design", b.designedConfig(t, "mem0", nil)},
		{"simple_rag", b.providerConfig(t, "simple_rag", nil)}} {
		t.Run("parity/"+c.name, func(t *testing.T) { mem0Parity(t, m, c.config) })
	}
}

// mem0Parity compares with Memory.search of mem0ai, asked for the provider's default top_k and threshold; with the
// reranker if the configuration asks for it, and with explained scores unless it is that of the design.
func mem0Parity(t *testing.T, m *Mem0, config host.ProviderConfig) {
	rerank := strings.Contains(string(config.Block), `"rerank":true`)
	designed := config.Profile == abi.ProfileSourceDesign
	if designed {
		config.Namespace = "parity-design"
	}
	results := func(raw abi.RawResult) (any, error) {
		picked, err := firstCall(raw)
		if answer, ok := picked.(map[string]any); ok {
			delete(answer, "rerank") // the gateway's own word on its reranker
		}
		return picked, err
	}
	parity(t, config, results,
		func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any {
			var lines []any
			for _, q := range asked {
				lines = append(lines, map[string]any{"query": q.text, "filters": scopes[q.scope], "top_k": 20,
					"threshold": 0.1, "explain": !designed, "rerank": rerank})
			}
			return askPython(t, m.Python, "mem0_search.py", m.Environment, lines)
		}, func(row any) any {
			item, _ := row.(map[string]any)
			if rerank {
				return item["rerank_score"]
			}
			return item["score"]
		})
}

// mem0Ghosts: before 2.2.1 the library answered ids of rows that the store had refused, here for the wrong dimension of
// their vectors. The server says 200 and ADD; memhost looks for the rows and never calls such a write committed.
func mem0Ghosts(t *testing.T) {
	m, err := newForTest(t).StartMem0(t.Context(), "mem0ai==2.0.18")
	require.NoError(t, err)
	b := m.Backend()
	for _, fault := range []bool{true, false} {
		if fault {
			// The transcript's embedding is right, those of the extracted facts are not.
			require.NoError(t, m.Env.Stub.Fail(llm.Fault{Purpose: "embeddings", Mode: llm.Dimension, Dimension: 8,
				After: 1, Times: 1}))
		}
		h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
		require.NoError(t, err)
		slot, err := h.Open(t.Context(), b.providerConfig(t, "mem0", nil))
		require.NoError(t, err)
		receipt, err := slot.RecordEvent(t.Context(),
			turn(fmt.Sprintf("ghost-%t", fault), "2026-01-12T08:00:00Z",
				fmt.Sprintf("My anniversary is on the third of May, %t.", fault)))
		if fault {
			require.False(t, err == nil && receipt.Status == abi.StatusCommitted, "a lost write is called committed")
		} else {
			require.NoError(t, err)
			require.Equal(t, abi.StatusCommitted, receipt.Status)
		}
		t.Logf("lost %t: %+v %v", fault, receipt, err)
		m.Env.Stub.ClearFaults()
		require.NoError(t, slot.Close(t.Context()))
		require.NoError(t, h.Close(t.Context()))
	}
}

// TestLive_mem0_wordllama: with the small embedding model a question in other words finds its memory, also after a
// restart on the same data folder.
func TestLive_mem0_wordllama(t *testing.T) {
	data := t.TempDir()
	require.NoError(t, os.Chmod(data, 0o711))
	// PostgreSQL does not run as root, and must reach the folder.
	require.NoError(t, os.Chmod(filepath.Dir(data), 0o711))
	start := func() *Backend {
		e, err := New(Options{Out: os.Stderr, Data: data, Embedder: "wordllama"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		b, err := Start(t.Context(), e, "mem0")
		require.NoError(t, err)
		return b
	}
	found := func(result *abi.RetrieveResult) {
		require.NotEmpty(t, result.Evidence)
		require.Contains(t, result.Evidence[0].Text, "Zorvex")
	}
	question := "What pet does she have?"
	b := start()
	config := b.providerConfig(t, "mem0", nil)
	found(tell(t, config, question, turn("pet-1", "2026-01-12T08:00:00Z", "My dog Zorvex barks at night."),
		turn("pet-2", "2026-01-12T08:01:00Z", "I work as a nurse in a hospital.")))
	require.NoError(t, b.Env.Close())
	open(t, start().providerConfig(t, "mem0", nil), func(slot *host.Slot) {
		result, err := slot.Retrieve(t.Context(), &abi.RetrieveRequest{Query: question,
			Scope: abi.MemoryScope{RunID: "live", PersonaID: "ann"}, SessionID: "s3"})
		require.NoError(t, err)
		found(result)
	})
}
