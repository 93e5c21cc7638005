package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

// configs are the profiles. The local one archives a session when it has grown or is idle, but the kit needs to find a
// turn at once.
var configs = map[string]string{"control": `"profile":"control"`,
	"local": `"profile":"local","update_policy":"every_event"`}

func TestConformance(t *testing.T) {
	for _, profile := range []string{"control", "local"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			if profile != "control" {
				brief.Leave(t)
			}
			_, url := nanobottest.Serve(t)
			conformance.TestWith(t, conformance.Target{Provider: module.Provider(t, url, configs[profile])},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

func TestB26B29ThroughTheHost(t *testing.T) {
	s := module.Open(t, `"update_policy":"every_event"`)
	s.Record(s.Turn("s1", "I like oolong tea."))
	require.NoError(t, s.Stub.Fail(llm.Fault{Mode: llm.Hold, Times: 1}))
	ready := make(chan error, 1)
	go func() {
		_, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 20000})
		ready <- err
	}()
	require.Eventually(t, func() bool { return s.Stub.Counts().LLM == 1 }, 10*time.Second, 5*time.Millisecond)
	assert.Equal(t, abi.StatusPending, s.Record(s.Turn("s1", "I live in Oslo.")).Status)
	s.Stub.ClearFaults()
	require.NoError(t, <-ready)
	assert.NotContains(t, s.Stub.Log()[0].Prompt, "Oslo",
		"check B29: what is recorded while an archive runs stays for the next")
	assert.Contains(t, s.Context(scope), "Oslo")

	before, asked := s.Context(scope), s.Stub.Counts().LLM
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 10 {
		assert.Equal(t, abi.StatusSkippedReadOnly, s.Record(s.Turn("s9", "I like coffee.")).Status)
	}
	assert.Equal(t, before, s.Context(scope), "check B26")
	assert.Equal(t, asked, s.Stub.Counts().LLM, "check B26: no call")
}

func TestDreamRunsByTheHostsClock(t *testing.T) {
	brief.Leave(t)
	s := module.Open(t, `"profile":"local"`)
	s.Record(s.Turn("s1", "I like oolong tea."))
	s.Advance(3 * time.Hour)
	require.Eventually(t, func() bool { return strings.Contains(s.Context(scope), "User (USER.md)") }, 25*time.Second,
		100*time.Millisecond)
	assert.Contains(t, s.Context(scope), "oolong")
}

func TestS3S9ThroughTheHost(t *testing.T) {
	s := module.Open(t, `"update_policy":"every_event"`)
	require.NoError(t, s.Stub.Fail(llm.Fault{Mode: llm.Slow, Purpose: "nanobot"}))
	s.Record(s.Turn("s1", "I like oolong tea."))
	began := time.Now()
	r, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 1000})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, r.Status, "check S9: pending at the deadline")
	assert.Less(t, time.Since(began), 20*time.Second, "check S9: the model never answers, the caller gets one")
	s.Stub.ClearFaults()
	s.Advance(time.Hour)
	r, err = s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 20000})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, r.Status, "check S9: and is done with work that is left")

	before, asked := s.Context(scope), s.Stub.Counts().LLM
	_, err = s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 20 {
		assert.Equal(t, abi.StatusSkippedReadOnly, s.Record(s.Turn("s9", "I like coffee.")).Status, "check S3")
		m, err := s.NativeMutation(context.Background(),
			&abi.NativeMutation{Scope: scope, Name: "dream", Reason: "test"})
		require.NoError(t, err)
		assert.Equal(t, "skipped_read_only", m.Status, "check S3")
	}
	assert.Equal(t, before, s.Context(scope), "check S3")
	assert.Equal(t, asked, s.Stub.Counts().LLM, "check S3: no call")
}

// TestConversations checks that no work is left and that the memory is not empty. Whether the texts are good is for a
// person to judge.
func TestConversations(t *testing.T) {
	s := module.Open(t, "")
	for scope, files := range nanobottest.Conversations(t, "layered_memory", s.Slot) {
		assert.NotEmpty(t, files["USER.md"]+files["memory/MEMORY.md"], "%s", scope)
	}
}
