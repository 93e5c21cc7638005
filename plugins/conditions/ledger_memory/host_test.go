package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/testenv/llm"
)

// builtin is the module as it is built, for tests through a host. block is its configuration.
func builtin(t testing.TB, block string) host.ProviderConfig {
	t.Helper()
	m, found := plugins.Find("ledger_memory")
	require.True(t, found, "build it: go run ./internal/toolchain/cmd/plugins build ledger_memory")
	return host.ProviderConfig{Name: "ledger_memory", Module: m.Wasm, Source: "builtin", Block: abi.Raw(block)}
}

// slot opens a slot on the module.
func slot(t testing.TB, block string) *host.Slot {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(t.Context(), builtin(t, block))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// model starts the stub and returns it with the block llm that points to it.
func model(t testing.TB) (*llm.Server, string) {
	t.Helper()
	stub := llm.New(llm.Options{})
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	t.Cleanup(stub.ClearFaults)
	return stub, `"llm":{"base_url":"` + server.URL + `/v1","model":"stub"}`
}

func TestConformance(t *testing.T) {
	_, endpoint := model(t)
	cache := t.TempDir()
	for name, block := range map[string]string{"verbatim": `{}`, "control": `{` + endpoint + `,"profile":"control"}`, "local": `{` + endpoint + `,"profile":"local"}`} {
		t.Run(name, func(t *testing.T) {
			conformance.TestWith(t, conformance.Target{Provider: builtin(t, block)}, conformance.Options{CacheDir: cache})
		})
	}
}

// TestConversations: what the entries say is for a person to judge; here it is that no turn waits, that something was kept, and that the ledger is whole.
// With CHATS_OUT=DIR what a prompt would show is written there, beside the files.
func TestConversations(t *testing.T) {
	_, endpoint := model(t)
	s := slot(t, `{`+endpoint+`,"max_context_tokens":null}`)
	for scope := range nanobottest.Conversations(t, "ledger_memory", s) {
		shown, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "x", Scope: scope, SessionID: "later"})
		require.NoError(t, err)
		assert.NotEmpty(t, shown.Evidence, "%s", scope)
		whole, err := s.NativeQuery(t.Context(), &abi.NativeQuery{Scope: scope, Name: "fsck"})
		require.NoError(t, err)
		assert.Contains(t, string(whole.Result), `"ok":true`)
		if out := os.Getenv("CHATS_OUT"); out != "" {
			path := filepath.Join(out, "ledger_memory", scope.RunID+"-"+scope.PersonaID, "context.txt")
			require.NoError(t, os.WriteFile(path, []byte(shown.FormattedContext), 0o600))
		}
	}
}
