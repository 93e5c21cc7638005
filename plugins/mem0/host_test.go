package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/fakes/mem0"
	"github.com/memhost/memhost/plugins"
)

// cache is the compilation cache that the tests of this package share.
var cache string

func TestMain(m *testing.M) {
	var err error
	if cache, err = os.MkdirTemp("", "memhost-mem0-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

const key = "admin-key-of-the-test"

// providerOf is the configuration of the built module in front of a server. more is added to the block: `,"infer":false`.
func providerOf(t testing.TB, name, url, more string) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("mem0")
	require.True(t, ok, "mem0.wasm is not built: make plugins")
	return host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{"url":"` + url + `","api_key":{"secret":"K"}` + more + `}`),
		Secrets: map[string]host.Secret{"K": {Value: func() (string, error) { return key, nil }, Origin: url}}}
}

// serve puts a handler on a port of its own.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// slotOf opens a slot with the built module.
func slotOf(t testing.TB, name, url, more string) *host.Slot {
	t.Helper()
	h, err := host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: cache})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(context.Background(), providerOf(t, name, url, more))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name, provider, more string
		server               func() http.Handler
	}{
		{"mem0 on the self-hosted server", "mem0", `,"add_timeout_s":2`, func() http.Handler { return mem0.New(mem0.Options{AdminKey: key}) }},
		{"simple_rag on the self-hosted server", "simple_rag", `,"add_timeout_s":2`, func() http.Handler { return mem0.New(mem0.Options{AdminKey: key}) }},
		{"mem0 on the platform", "mem0", `,"add_timeout_s":2,"settle_ms":0`, func() http.Handler { return &mem0.Platform{Token: key} }},
		{"simple_rag on the platform", "simple_rag", `,"add_timeout_s":2,"settle_ms":0`, func() http.Handler { return &mem0.Platform{Token: key} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			conformance.TestWith(t, conformance.Target{Provider: providerOf(t, c.provider, serve(t, c.server()), c.more)}, conformance.Options{CacheDir: cache})
		})
	}
}
