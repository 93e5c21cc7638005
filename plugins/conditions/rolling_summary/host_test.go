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
	if cache, err = os.MkdirTemp("", "memhost-rolling-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

const key = "sk-of-the-test"

// providerOf is the configuration of the built module in front of a model.
func providerOf(t testing.TB, name, url, more string) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("rolling_summary")
	if !ok {
		t.Fatal("rolling_summary.wasm is not built: make plugins")
	}
	return host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin",
		Block:   abi.Raw(`{"llm":{"base_url":"` + url + `/v1","model":"stub","api_key":{"secret":"K"}}` + more + `}`),
		Secrets: map[string]host.Secret{"K": {Value: func() (string, error) { return key, nil }, Origin: url}}}
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
	s, err = h.Open(context.Background(), providerOf(t, "rolling_summary", url, more))
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
	for _, c := range []struct{ name, profile string }{{"rolling_summary", "control"}, {"rolling_summary", "local"}, {"nanobot_file_summary", "control"}} {
		t.Run(c.name+" "+c.profile, func(t *testing.T) {
			_, url := serve(t)
			conformance.TestWith(t, conformance.Target{Provider: providerOf(t, c.name, url, configs[c.profile])}, conformance.Options{CacheDir: cache})
		})
	}
}

func tell(t testing.TB, s *host.Slot, e *abi.MemoryEvent) *abi.WriteReceipt {
	t.Helper()
	r, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	return r
}

func ready(t testing.TB, s *host.Slot, timeout time.Duration) *abi.BackendReadiness {
	t.Helper()
	r, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: timeout.Milliseconds()})
	require.NoError(t, err)
	return r
}

func shown(t testing.TB, s *host.Slot, scope abi.MemoryScope) string {
	t.Helper()
	r, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "asking"})
	require.NoError(t, err)
	return r.FormattedContext
}

func TestReadinessWorksOffWhatIsRecorded(t *testing.T) {
	_, url := serve(t)
	s, _ := slotOf(t, url, "")
	b := &bench{t: t}
	e := b.turn("s1", "I like oolong tea.")
	assert.Equal(t, abi.StatusPending, tell(t, s, e).Status)
	assert.Equal(t, []string{"e1"}, ready(t, s, 0).EventIDs.Pending, "one look does no work")
	assert.Equal(t, abi.ReadinessReady, ready(t, s, 10*time.Second).Status)
	assert.Contains(t, shown(t, s, scope), "oolong")
	again := tell(t, s, e)
	assert.True(t, again.Duplicate, "check S5")
	assert.Equal(t, abi.StatusCommitted, again.Status)
	other := abi.MemoryScope{RunID: "run", PersonaID: "Mara"}
	assert.Empty(t, shown(t, s, other), "check S1: another scope shows nothing")
}

func TestReadOnlyAsksNoModel(t *testing.T) {
	stub, url := serve(t)
	s, _ := slotOf(t, url, `,"update_policy":"every_event"`)
	b := &bench{t: t}
	tell(t, s, b.turn("s1", "I like oolong tea."))
	require.Equal(t, abi.ReadinessReady, ready(t, s, 10*time.Second).Status)
	tell(t, s, b.turn("s1", "I live in Oslo."))
	before, asked := shown(t, s, scope), stub.Counts().LLM
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 20 {
		assert.Equal(t, abi.StatusSkippedReadOnly, tell(t, s, b.turn("s9", "I like coffee.")).Status, "check S3")
	}
	assert.Equal(t, abi.ReadinessPending, ready(t, s, 100*time.Millisecond).Status)
	assert.Equal(t, before, shown(t, s, scope))
	assert.Equal(t, asked, stub.Counts().LLM, "check S3: no call")
}

// TestA9A10A12ThroughTheHost holds the model while other things happen.
func TestA9A10A12ThroughTheHost(t *testing.T) {
	stub, url := serve(t)
	s, _ := slotOf(t, url, `,"profile":"local","include_tail":false,"memory_window":4`)
	b := &bench{t: t}
	for range 4 {
		tell(t, s, b.turn("s1", "I like oolong tea."))
	}
	require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Hold}))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { assert.Equal(t, abi.ReadinessReady, ready(t, s, 20*time.Second).Status) })
	}
	require.Eventually(t, func() bool { return stub.Counts().LLM == 1 }, 10*time.Second, 5*time.Millisecond)
	for range 3 {
		assert.Equal(t, abi.StatusPending, tell(t, s, b.turn("s1", "My cat is called Zorvex.")).Status, "recording goes on while the model works")
	}
	cleared := make(chan error, 1)
	go func() {
		_, err := s.NativeMutation(context.Background(), &abi.NativeMutation{Scope: scope, Name: "consolidate", Reason: "test",
			Params: map[string]abi.Raw{"session_id": abi.Raw(`"s1"`), "archive_all": abi.Raw(`true`)}})
		cleared <- err
	}()
	stub.ClearFaults()
	both.Wait()
	require.NoError(t, <-cleared)
	log := stub.Log()
	var asked []string
	for _, entry := range log {
		if entry.Purpose == "nanobot.consolidate" {
			asked = append(asked, entry.Prompt)
		}
	}
	lines := 0
	for _, prompt := range asked {
		lines += strings.Count(prompt, "] USER: ")
	}
	assert.Equal(t, 7, lines, "check A12: archive_all waited, and no message was summarised twice")
	assert.NotContains(t, asked[0], "Zorvex", "check A9: the range was fixed before the call")
	text := shown(t, s, scope)
	assert.Contains(t, text, "oolong")
	assert.Contains(t, text, "Zorvex")
	assert.LessOrEqual(t, len(asked), 3, "check A10: two that wait at once make one call for one range")
}

func TestBackgroundWorkEndsSessionsByTheHostsClock(t *testing.T) {
	stub, url := serve(t)
	s, advance := slotOf(t, url, "")
	b := &bench{t: t}
	tell(t, s, b.turn("s1", "I like oolong tea."))
	tell(t, s, b.turn("s2", "I live in Oslo."))
	advance(time.Hour)
	require.Eventually(t, func() bool { return strings.Contains(shown(t, s, scope), "oolong") }, 25*time.Second, 100*time.Millisecond)
	assert.Equal(t, 1, stub.Counts().LLM, "the open session waits until somebody waits for it")
	assert.NotContains(t, shown(t, s, scope), "Oslo")
}

func TestASlowModelIsToldFromWithin(t *testing.T) {
	stub, url := serve(t)
	s, advance := slotOf(t, url, `,"update_policy":"every_event"`)
	require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Slow, Purpose: "nanobot"}))
	b := &bench{t: t}
	tell(t, s, b.turn("s1", "I like oolong tea."))
	r := ready(t, s, 1500*time.Millisecond)
	assert.Equal(t, abi.ReadinessPending, r.Status, "check S9")
	stub.ClearFaults()
	advance(time.Hour)
	assert.Equal(t, abi.ReadinessReady, ready(t, s, 10*time.Second).Status)
	for _, entry := range stub.Log() {
		assert.NotContains(t, entry.Prompt, key, "check S11")
	}
}

func TestResetRemovesTheScopeAlone(t *testing.T) {
	_, url := serve(t)
	s, _ := slotOf(t, url, `,"update_policy":"every_event"`)
	b := &bench{t: t}
	other := abi.MemoryScope{RunID: "run", PersonaID: "jonas"}
	e := b.turn("s1", "I live in Oslo.")
	e.UserID = "jonas"
	tell(t, s, b.turn("s1", "I like oolong tea."))
	tell(t, s, e)
	for _, who := range []abi.MemoryScope{scope, other} {
		_, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: who, TimeoutMS: 10000})
		require.NoError(t, err)
	}
	before := shown(t, s, other)
	r, err := s.ResetScope(context.Background(), scope)
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, r.Status)
	assert.EqualValues(t, 1, *r.Removed["message"])
	assert.Empty(t, shown(t, s, scope))
	assert.Equal(t, before, shown(t, s, other), "check S2")
	tell(t, s, b.turn("s1", "My cat is called Zorvex."))
	require.Equal(t, abi.ReadinessReady, ready(t, s, 10*time.Second).Status)
	assert.Contains(t, shown(t, s, scope), "Zorvex", "check S2: it works again")
}

// TestConversations: what the files say is for a person to judge; here it is that nothing is left over, and that the memory is not empty.
func TestConversations(t *testing.T) {
	_, url := serve(t)
	s, _ := slotOf(t, url, "")
	for scope, files := range nanobottest.Conversations(t, "rolling_summary", s) {
		assert.NotEmpty(t, files["memory/MEMORY.md"], "%s", scope)
	}
}
