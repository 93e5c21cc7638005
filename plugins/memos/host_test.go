package main

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/fakes/memos"
	"github.com/memhost/memhost/plugins"
)

// module is the built module: make plugins.
func module(t testing.TB) []byte {
	t.Helper()
	m, found := plugins.Find("memos")
	require.True(t, found, "the module is not built")
	return m.Wasm
}

// provider is the module with a server behind it.
func provider(t testing.TB, url, fields string) host.ProviderConfig {
	t.Helper()
	return host.ProviderConfig{Name: "memos", Module: module(t), Source: "builtin", Block: abi.Raw(`{"url":"` + url + `",` + fields + `}`)}
}

// TestConformance runs the kit on each write profile and flavour.
func TestConformance(t *testing.T) {
	cache := t.TempDir()
	for _, tt := range []struct {
		name, fields string
		flavour      memos.Flavour
	}{
		{"neo4j sync/fast", `"graph_store":"neo4j","add_mode":"sync/fast"`, memos.Neo4j},
		{"neo4j sync/fine", `"graph_store":"neo4j","add_mode":"sync/fine"`, memos.Neo4j},
		{"neo4j async", `"graph_store":"neo4j","add_mode":"async"`, memos.Neo4j},
		{"neo4j-community sync/fast", `"add_mode":"sync/fast"`, memos.Community},
		{"neo4j-community sync/fine", `"add_mode":"sync/fine"`, memos.Community},
		{"neo4j-community async", `"add_mode":"async"`, memos.Community},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(memos.New(memos.Options{Flavour: tt.flavour, TaskDelay: 20 * time.Millisecond}))
			t.Cleanup(server.Close)
			conformance.TestWith(t, conformance.Target{Provider: provider(t, server.URL, tt.fields),
				ErrorBodies: map[string]string{"": `{"code":500,"message":"boom","data":null}`}}, conformance.Options{CacheDir: cache})
		})
	}
}
