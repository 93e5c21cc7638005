package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
)

// builtin is the module as it is built, for tests through a host.
func builtin(t testing.TB) host.ProviderConfig {
	t.Helper()
	m, found := plugins.Find("ledger_memory")
	require.True(t, found, "build it: go run ./internal/toolchain/cmd/plugins build ledger_memory")
	return host.ProviderConfig{Name: "ledger_memory", Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{}`)}
}

// slot opens a slot on the module.
func slot(t testing.TB) *host.Slot {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(t.Context(), builtin(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

func TestConformance(t *testing.T) {
	conformance.TestWith(t, conformance.Target{Provider: builtin(t)}, conformance.Options{CacheDir: t.TempDir()})
}
