package main

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
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
