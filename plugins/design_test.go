package plugins_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins"
)

// TestTheConfigurationsOfTheDesignLoadAsWritten adds only a URL, and the model's address if one is needed. Each
// provider then serves, and uses the design's names in the server.
func TestTheConfigurationsOfTheDesignLoadAsWritten(t *testing.T) {
	documents, err := txtar.ParseFile("testdata/design.txtar")
	require.NoError(t, err)
	texts := map[string]string{}
	for _, f := range documents.Files {
		texts[f.Name] = string(f.Data)
	}
	requireVerbatim(t, texts)
	var dream struct {
		Agents struct{ Defaults json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(texts["dream.json"]), &dream))
	texts["dream.json"] = `{"memory":{"condition":"layered_memory","conditions":{"layered_memory":` +
		string(dream.Agents.Defaults) + `}}}`

	for _, c := range []struct {
		name, text, backend, url string
		server                   func() http.Handler
		// native is what set-up reports about the scope in the server, or a part of it.
		native   map[string]string
		warnings int
	}{
		{"mem0", "swap.yaml", "", "memory.backends.mem0.url", func() http.Handler {
			return mem0.New(mem0.Options{Gateway: &mem0.Gateway{Reranker: "llm_reranker"}})
		}, nil, 0},
		{"graphiti", "swap.yaml", "graphiti", "memory.backends.graphiti.url", func() http.Handler {
			return graphiti.New(graphiti.Options{}).Gateway()
		}, map[string]string{"group_id": "userz5faz5fc1_userz5fa"}, 0},
		{"honcho", "swap.yaml", "honcho", "memory.backends.honcho.url", func() http.Handler {
			return honcho.New(honcho.Options{Mood: honcho.Mood{Flush: true}})
		}, map[string]string{"workspace": "userz5faz5fc1"}, 0},
		{"memos", "swap.yaml", "memos", "memory.backends.memos.url", func() http.Handler {
			return memos.New(memos.Options{Flavour: memos.Community})
		}, map[string]string{"cube_id": "userz5faz5fc1_userz5fa"}, 0},
		{"graphiti, by the registry", "registry.yaml", "", "memory.backends.graphiti.url", func() http.Handler {
			return graphiti.New(graphiti.Options{}).Gateway()
		}, map[string]string{"group_id": "userz5faz5fc1_default"}, 0},
		{"the control", "control.yaml", "", "memory.conditions.rolling_summary.llm.base_url", func() http.Handler {
			return llm.New(llm.Options{})
		}, nil, 0},
		{"Dream", "dream.json", "", "memory.conditions.layered_memory.llm.base_url", func() http.Handler {
			return llm.New(llm.Options{})
		}, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.server())
			t.Cleanup(server.Close)
			flags := map[string]any{c.url: server.URL}
			if model, asks := strings.CutSuffix(c.url, "base_url"); asks {
				flags[model+"model"] = "stub"
			}
			if c.backend != "" {
				flags["memory.backend"] = c.backend
			}
			loaded, err := config.Load(config.Options{File: "memhost" + filepath.Ext(c.text), Text: []byte(texts[c.text]),
				Dir: t.TempDir(), Environ: []string{}, Flags: flags})
			require.NoError(t, err)
			assert.Len(t, loaded.Warnings(), c.warnings)
			name, _, _ := loaded.Block()
			m, found := plugins.Find(name)
			require.True(t, found)
			serves(t, cli.ProviderConfig(loaded, &cli.Module{Wasm: m.Wasm, Source: cli.SourceBuiltin}), loaded.Scope(),
				c.native)
		})
	}
}

// serves opens a slot, and records and retrieves a turn in a scope.
func serves(t *testing.T, p host.ProviderConfig, scope abi.MemoryScope, native map[string]string) {
	t.Helper()
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(ctx)) })
	slot, err := h.Open(ctx, p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slot.Close(ctx)) })
	setup, err := slot.SetupScope(ctx, scope)
	require.NoError(t, err)
	for key, want := range native {
		assert.Equal(t, want, setup.NativeScope[key], key)
	}
	text := "I drink green tea."
	_, err = slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: "e1", RunID: scope.RunID, UserID: scope.PersonaID,
		SessionID: "s1", TurnID: "t1", Timestamp: "2026-03-01T09:00:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	require.NoError(t, err)
	_, err = slot.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: 10_000})
	require.NoError(t, err)
	_, err = slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "s2"})
	require.NoError(t, err)
}

// requireVerbatim compares the texts with the documents, if these are available.
func requireVerbatim(t *testing.T, texts map[string]string) {
	t.Helper()
	for name, document := range map[string]string{"swap.yaml": "000_adapter_design.txt",
		"registry.yaml": "000_adapter_design.txt", "control.yaml": "000_adapter_design.txt", "dream.json": "004.txt"} {
		require.NotEmpty(t, texts[name])
		whole, err := os.ReadFile(filepath.Join("..", "..", "shared", "source", document))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		assert.Contains(t, string(whole), texts[name], name)
	}
}
