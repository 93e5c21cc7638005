package main

import (
	"context"
	"strings"
	"sync"
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
	for _, c := range []struct{ name, profile string }{{"rolling_summary", "control"}, {"rolling_summary", "local"},
		{"nanobot_file_summary", "control"}} {
		t.Run(c.name+" "+c.profile, func(t *testing.T) {
			t.Parallel()
			if c.name == "nanobot_file_summary" {
				brief.Skip(t)
			}
			if c.profile != "control" {
				brief.Leave(t)
			}
			_, url := nanobottest.Serve(t)
			provider := module.Provider(t, url, configs[c.profile])
			provider.Name = c.name
			conformance.TestWith(t, conformance.Target{Provider: provider},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

func TestReadinessWorksOffWhatIsRecorded(t *testing.T) {
	s := module.Open(t, "")
	e := s.Turn("s1", "I like oolong tea.")
	assert.Equal(t, abi.StatusPending, s.Record(e).Status)
	assert.Equal(t, []string{"e1"}, s.Wait(0).EventIDs.Pending, "one look does no work")
	assert.Equal(t, abi.ReadinessReady, s.Wait(10*time.Second).Status)
	assert.Contains(t, s.Context(scope), "oolong")
	again := s.Record(e)
	assert.True(t, again.Duplicate, "check S5")
	assert.Equal(t, abi.StatusCommitted, again.Status)
	other := abi.MemoryScope{RunID: "run", PersonaID: "Mara"}
	assert.Empty(t, s.Context(other), "check S1: another scope shows nothing")
}

func TestReadOnlyAsksNoModel(t *testing.T) {
	s := module.Open(t, `"update_policy":"every_event"`)
	s.Record(s.Turn("s1", "I like oolong tea."))
	require.Equal(t, abi.ReadinessReady, s.Wait(10*time.Second).Status)
	s.Record(s.Turn("s1", "I live in Oslo."))
	before, asked := s.Context(scope), s.Stub.Counts().LLM
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for range 20 {
		assert.Equal(t, abi.StatusSkippedReadOnly, s.Record(s.Turn("s9", "I like coffee.")).Status, "check S3")
	}
	assert.Equal(t, abi.ReadinessPending, s.Wait(100*time.Millisecond).Status)
	assert.Equal(t, before, s.Context(scope))
	assert.Equal(t, asked, s.Stub.Counts().LLM, "check S3: no call")
}

// TestA9A10A12ThroughTheHost delays the model while other things happen.
func TestA9A10A12ThroughTheHost(t *testing.T) {
	s := module.Open(t, `"profile":"local","include_tail":false,"memory_window":4`)
	for range 4 {
		s.Record(s.Turn("s1", "I like oolong tea."))
	}
	require.NoError(t, s.Stub.Fail(llm.Fault{Mode: llm.Hold}))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { assert.Equal(t, abi.ReadinessReady, s.Wait(20*time.Second).Status) })
	}
	require.Eventually(t, func() bool { return s.Stub.Counts().LLM == 1 }, 10*time.Second, 5*time.Millisecond)
	for range 3 {
		assert.Equal(t, abi.StatusPending, s.Record(s.Turn("s1", "My cat is called Zorvex.")).Status,
			"recording goes on while the model works")
	}
	cleared := make(chan error, 1)
	go func() {
		_, err := s.NativeMutation(context.Background(), &abi.NativeMutation{Scope: scope, Name: "consolidate",
			Reason: "test",
			Params: map[string]abi.Raw{"session_id": abi.Raw(`"s1"`), "archive_all": abi.Raw(`true`)}})
		cleared <- err
	}()
	s.Stub.ClearFaults()
	both.Wait()
	require.NoError(t, <-cleared)
	log := s.Stub.Log()
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
	text := s.Context(scope)
	assert.Contains(t, text, "oolong")
	assert.Contains(t, text, "Zorvex")
	assert.LessOrEqual(t, len(asked), 3, "check A10: two that wait at once make one call for one range")
}

func TestBackgroundWorkEndsSessionsByTheHostsClock(t *testing.T) {
	brief.Leave(t)
	s := module.Open(t, "")
	s.Record(s.Turn("s1", "I like oolong tea."))
	s.Record(s.Turn("s2", "I live in Oslo."))
	s.Advance(time.Hour)
	require.Eventually(t, func() bool { return strings.Contains(s.Context(scope), "oolong") }, 25*time.Second,
		100*time.Millisecond)
	assert.Equal(t, 1, s.Stub.Counts().LLM, "the open session waits until somebody waits for it")
	assert.NotContains(t, s.Context(scope), "Oslo")
}

func TestASlowModelIsToldFromWithin(t *testing.T) {
	s := module.Open(t, `"update_policy":"every_event"`)
	require.NoError(t, s.Stub.Fail(llm.Fault{Mode: llm.Slow, Purpose: "nanobot"}))
	s.Record(s.Turn("s1", "I like oolong tea."))
	r := s.Wait(1500 * time.Millisecond)
	assert.Equal(t, abi.ReadinessPending, r.Status, "check S9")
	s.Stub.ClearFaults()
	s.Advance(time.Hour)
	assert.Equal(t, abi.ReadinessReady, s.Wait(10*time.Second).Status)
	for _, entry := range s.Stub.Log() {
		assert.NotContains(t, entry.Prompt, nanobottest.Key, "check S11")
	}
}

func TestResetRemovesTheScopeAlone(t *testing.T) {
	s := module.Open(t, `"update_policy":"every_event"`)
	other := abi.MemoryScope{RunID: "run", PersonaID: "jonas"}
	e := s.Turn("s1", "I live in Oslo.")
	e.UserID = "jonas"
	s.Record(s.Turn("s1", "I like oolong tea."))
	s.Record(e)
	for _, who := range []abi.MemoryScope{scope, other} {
		_, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: who, TimeoutMS: 10000})
		require.NoError(t, err)
	}
	before := s.Context(other)
	r, err := s.ResetScope(context.Background(), scope)
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, r.Status)
	assert.EqualValues(t, 1, *r.Removed["message"])
	assert.Empty(t, s.Context(scope))
	assert.Equal(t, before, s.Context(other), "check S2")
	s.Record(s.Turn("s1", "My cat is called Zorvex."))
	require.Equal(t, abi.ReadinessReady, s.Wait(10*time.Second).Status)
	assert.Contains(t, s.Context(scope), "Zorvex", "check S2: it works again")
}

// TestConversations checks that no work is left and that the memory is not empty. Whether the texts are good is for a
// person to judge.
func TestConversations(t *testing.T) {
	s := module.Open(t, "")
	for scope, files := range nanobottest.Conversations(t, "rolling_summary", s.Slot) {
		assert.NotEmpty(t, files["memory/MEMORY.md"], "%s", scope)
	}
}
