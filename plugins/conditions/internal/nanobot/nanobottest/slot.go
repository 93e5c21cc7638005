package nanobottest

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins"
)

// Key is the model's key, a secret that the host keeps.
const Key = "sk-of-the-test"

// Serve starts the stub.
func Serve(t testing.TB) (stub *llm.Server, url string) {
	t.Helper()
	stub = llm.New(llm.Options{})
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	t.Cleanup(stub.ClearFaults)
	return stub, server.URL
}

// ProviderConfig is a built module with a config block.
func ProviderConfig(t testing.TB, module, block string) host.ProviderConfig {
	t.Helper()
	m, found := plugins.Find(module)
	require.True(t, found, "build it: go run ./internal/authoring/toolchain/cmd/plugins build "+module)
	return host.ProviderConfig{Name: module, Module: m.Wasm, Source: "builtin", Block: abi.Raw(block)}
}

// Provider is the built module with a model; config is the rest of the block after llm.
func (m Module) Provider(t testing.TB, url, config string) host.ProviderConfig {
	t.Helper()
	p := ProviderConfig(t, m.Name, `{"llm":{"base_url":"`+url+`/v1","model":"stub","api_key":{"secret":"K"}}`+moreMembers(config)+`}`)
	p.Secrets = map[string]host.Secret{"K": {Value: func() (string, error) { return Key, nil }, Origin: url}}
	return p
}

// Slot is a built module on its own host, which schedules. Its clock starts at a fixed time and moves only by Advance.
type Slot struct {
	*host.Slot
	Turns
	Stub *llm.Server
	t    testing.TB

	mu  sync.Mutex
	now time.Time
}

// Open opens a slot with the stub as the module's model; config is the rest of the block after llm.
func (m Module) Open(t testing.TB, config string) *Slot {
	t.Helper()
	stub, url := Serve(t)
	s := Open(t, m.Provider(t, url, config))
	s.Stub = stub
	return s
}

// Open opens a slot on a provider.
func Open(t testing.TB, p host.ProviderConfig) *Slot {
	t.Helper()
	s, began := &Slot{Turns: Turns{Scope: Scope}, t: t, now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}, time.Now()
	h, err := host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.now.Add(time.Since(began))
		}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s.Slot, err = h.Open(context.Background(), p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// Advance moves the clock.
func (s *Slot) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Record records an event.
func (s *Slot) Record(e *abi.MemoryEvent) *abi.WriteReceipt {
	s.t.Helper()
	r, err := s.RecordEvent(context.Background(), e)
	require.NoError(s.t, err)
	return r
}

// Wait waits until the scope is ready, or the time is over; 0 checks once.
func (s *Slot) Wait(timeout time.Duration) *abi.BackendReadiness {
	s.t.Helper()
	r, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: s.Scope,
		TimeoutMS: timeout.Milliseconds()})
	require.NoError(s.t, err)
	return r
}

// Context returns the context of a new session in a scope.
func (s *Slot) Context(scope abi.MemoryScope) string {
	s.t.Helper()
	r, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "asking"})
	require.NoError(s.t, err)
	return r.FormattedContext
}
