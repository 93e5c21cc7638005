package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/testenv/llm"
)

// cache is the compilation cache that the tests of this package share.
var cache string

func TestMain(m *testing.M) {
	var err error
	if cache, err = os.MkdirTemp("", "memhost-layered-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

func providerOf(t testing.TB, url, more string) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("layered_memory")
	if !ok {
		t.Fatal("layered_memory.wasm is not built: make plugins")
	}
	return host.ProviderConfig{Name: "layered_memory", Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{"llm":{"base_url":"` + url + `/v1","model":"stub"}` + more + `}`)}
}

func serve(t testing.TB) (*llm.Server, string) {
	t.Helper()
	stub := llm.New(llm.Options{})
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	t.Cleanup(stub.ClearFaults)
	return stub, server.URL
}

// slotOf opens a slot. Its clock begins at a fixed time, and jumps when advance is called.
func slotOf(t testing.TB, url, more string) (s *host.Slot, advance func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	now, began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), time.Now()
	h, err := host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: cache, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now.Add(time.Since(began))
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err = h.Open(context.Background(), providerOf(t, url, more))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}

// configs are the profiles. By its own trigger the local one works off a session when it has grown, or rests; the kit wants to find a turn at once.
var configs = map[string]string{"control": `,"profile":"control"`, "local": `,"profile":"local","update_policy":"every_event"`}

func TestConformance(t *testing.T) {
	for _, profile := range []string{"control", "local"} {
		t.Run(profile, func(t *testing.T) {
			_, url := serve(t)
			conformance.TestWith(t, conformance.Target{Provider: providerOf(t, url, configs[profile])}, conformance.Options{CacheDir: cache})
		})
	}
}

func tell(t testing.TB, s *host.Slot, e *abi.MemoryEvent) *abi.WriteReceipt {
	t.Helper()
	r, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	return r
}

func shown(t testing.TB, s *host.Slot) string {
	t.Helper()
	r, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "asking"})
	require.NoError(t, err)
	return r.FormattedContext
}

func TestB26B29ThroughTheHost(t *testing.T) {
	stub, url := serve(t)
	s, _ := slotOf(t, url, `,"update_policy":"every_event"`)
	b := &bench{t: t}
	tell(t, s, b.turn("s1", "I like oolong tea."))
	require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Hold, Times: 1}))
	ready := make(chan error, 1)
	go func() {
		_, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 20000})
		ready <- err
	}()
	require.Eventually(t, func() bool { return stub.Counts().LLM == 1 }, 10*time.Second, 5*time.Millisecond)
	assert.Equal(t, abi.StatusPending, tell(t, s, b.turn("s1", "I live in Oslo.")).Status)
	stub.ClearFaults()
	require.NoError(t, <-ready)
	assert.NotContains(t, stub.Log()[0].Prompt, "Oslo", "check B29: what is recorded while an archive runs stays for the next")
	assert.Contains(t, shown(t, s), "Oslo")

	before, asked := shown(t, s), stub.Counts().LLM
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 10 {
		assert.Equal(t, abi.StatusSkippedReadOnly, tell(t, s, b.turn("s9", "I like coffee.")).Status)
	}
	assert.Equal(t, before, shown(t, s), "check B26")
	assert.Equal(t, asked, stub.Counts().LLM, "check B26: no call")
}

func TestDreamRunsByTheHostsClock(t *testing.T) {
	_, url := serve(t)
	s, advance := slotOf(t, url, `,"profile":"local"`)
	b := &bench{t: t}
	tell(t, s, b.turn("s1", "I like oolong tea."))
	advance(3 * time.Hour)
	require.Eventually(t, func() bool { return strings.Contains(shown(t, s), "User (USER.md)") }, 25*time.Second, 100*time.Millisecond)
	assert.Contains(t, shown(t, s), "oolong")
}

func TestS3S9ThroughTheHost(t *testing.T) {
	stub, url := serve(t)
	s, advance := slotOf(t, url, `,"update_policy":"every_event"`)
	b := &bench{t: t}
	require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Slow, Purpose: "nanobot"}))
	tell(t, s, b.turn("s1", "I like oolong tea."))
	began := time.Now()
	r, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 1000})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, r.Status, "check S9: pending at the deadline")
	assert.Less(t, time.Since(began), 20*time.Second, "check S9: the model never answers, the caller gets one")
	stub.ClearFaults()
	advance(time.Hour)
	r, err = s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 20000})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, r.Status, "check S9: and is done with work that is left")

	before, asked := shown(t, s), stub.Counts().LLM
	_, err = s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 20 {
		assert.Equal(t, abi.StatusSkippedReadOnly, tell(t, s, b.turn("s9", "I like coffee.")).Status, "check S3")
		m, err := s.NativeMutation(context.Background(), &abi.NativeMutation{Scope: scope, Name: "dream", Reason: "test"})
		require.NoError(t, err)
		assert.Equal(t, "skipped_read_only", m.Status, "check S3")
	}
	assert.Equal(t, before, shown(t, s), "check S3")
	assert.Equal(t, asked, stub.Counts().LLM, "check S3: no call")
}

// TestConversations: what the files say is for a person to judge; here it is that nothing is left over, and that the memory is not empty.
func TestConversations(t *testing.T) {
	_, url := serve(t)
	s, _ := slotOf(t, url, "")
	for scope, files := range nanobottest.Conversations(t, "layered_memory", s) {
		assert.NotEmpty(t, files["USER.md"]+files["memory/MEMORY.md"], "%s", scope)
	}
}
