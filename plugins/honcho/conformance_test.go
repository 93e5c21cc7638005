package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/timelapse"
	"github.com/memhost/memhost/plugins"
)

// builtin is the built module, for tests through a host.
func builtin(t testing.TB) []byte {
	t.Helper()
	m, ok := plugins.Find("honcho")
	require.True(t, ok, "build it: go run ./internal/authoring/toolchain/cmd/plugins build honcho")
	return m.Wasm
}

// TestConformance runs the kit against the fake in every mode of its deriver in which a server is usable.
func TestConformance(t *testing.T) {
	quick := fake.Mood{Flush: true, RowDelay: 300 * time.Millisecond, WorkDelay: 2 * time.Second, PurgeDelay: time.Second}
	for _, variant := range []struct {
		name  string
		mood  fake.Mood
		block string
		long  bool
	}{
		{"flush", quick, "", false},
		{"at once", fake.Mood{Flush: true}, "", true},
		{"a batch gate that opens early", fake.Mood{BatchTokens: 1, RowDelay: 300 * time.Millisecond}, "", true},
		{"stale caches", fake.Mood{Flush: true, CacheTTL: time.Hour}, "", true},
		{"one workspace for all", quick, `,"fixed_workspace":"lab"`, true},
		{"message search", quick, `,"read":"search"`, true},
		{"all supplements", quick, `,"supplements":["representation","peer_context","conclusions","search","summaries"]`, false},
		{"the model answers", quick, `,"read":"chat"`, true},
		{"peers with names", quick, `,"peer_names":{"users":{"p":"Alice"},"assistant":"Bot"}`, true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			if variant.long {
				brief.Skip(t)
			}
			if variant.name != "flush" {
				brief.Leave(t)
			}
			clock := new(timelapse.Clock)
			backend := fake.New(fake.Options{Mood: variant.mood, Now: clock.Now})
			server := httptest.NewServer(backend)
			t.Cleanup(server.Close)
			conformance.TestWith(t, conformance.Target{
				Provider: host.ProviderConfig{Name: "honcho", Module: builtin(t),
					Block: abi.Raw(fmt.Sprintf(`{"url":%q%s}`, server.URL, variant.block))}},
				conformance.Options{CacheDir: testcache.Dir(), Now: clock.Now, Pause: clock.Pause})
			left := backend.Workspaces()
			if strings.Contains(variant.block, "fixed_workspace") {
				left = nil // it belongs to the operator
			}
			assert.Empty(t, left, "the kit leaves no workspace behind")
		})
	}
}
