package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/fakes/bolt"
	"github.com/memhost/memhost/internal/fakes/graphiti"
	"github.com/memhost/memhost/plugins"
)

// compiled is the compilation cache that all tests share.
var compiled string

func TestMain(m *testing.M) {
	var err error
	if compiled, err = os.MkdirTemp("", "memhost-graphiti-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(compiled)
	os.Exit(code)
}

// setUp is one way to configure the provider.
type setUp struct {
	surface string
	bolt    bool
}

func (u setUp) String() string {
	if u.bolt {
		return u.surface + "+bolt"
	}
	return u.surface
}

var setUps = []setUp{{"rest", true}, {"mcp", true}, {"mcp", false}, {"rest", false}}

const password = "correct horse"

// backend is a fake Graphiti with servers that listen.
type backend struct {
	*graphiti.Server
	db     *bolt.Server
	config host.ProviderConfig
}

// start runs the fake behind sockets, and configures the built module for it.
func start(t testing.TB, u setUp, o graphiti.Options, more string) *backend {
	t.Helper()
	module, ok := plugins.Find("graphiti")
	require.True(t, ok, "plugins/graphiti has not been built: make plugins")
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	b := &backend{Server: graphiti.New(o)}
	handler := b.REST()
	if u.surface == surfaceMCP {
		handler = b.MCP()
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	block := fmt.Sprintf(`{"url":%q,"surface":%q%s`, server.URL, u.surface, more)
	b.config = host.ProviderConfig{Name: "graphiti", Module: module.Wasm, Source: "builtin"}
	if u.bolt {
		b.db = bolt.Start(t, bolt.Options{Password: password})
		require.NoError(t, b.Serve(b.db, manifest))
		block += fmt.Sprintf(`,"bolt":%q,"bolt_password":{"secret":"neo4j"}`, b.db.URL("bolt"))
		b.config.Secrets = map[string]host.Secret{"neo4j": {Origin: b.db.URL("bolt"), Value: func() (string, error) { return password, nil }}}
	}
	b.config.Block = abi.Raw(block + "}")
	return b
}

// TestConformance is the kit against the fakes, in every way to configure the provider.
func TestConformance(t *testing.T) {
	for _, u := range setUps {
		t.Run(u.String(), func(t *testing.T) {
			t.Parallel()
			b := start(t, u, graphiti.Options{Delay: 5 * time.Millisecond}, `,"stall_s":2`)
			conformance.TestWith(t, conformance.Target{Provider: b.config, ReadyWithin: 10 * time.Second,
				ErrorBodies: map[string]string{}}, conformance.Options{CacheDir: compiled})
		})
	}
}
