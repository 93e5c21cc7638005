package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/sdk/sdktest"
)

func hasWarning(warnings []string, code string) bool {
	for _, w := range warnings {
		if strings.HasPrefix(w, code+": ") {
			return true
		}
	}
	return false
}

// TestReadiness is trap 8: rows appear after the response, failures look completed, and the threshold may hold rows for
// 30 minutes.
func TestReadiness(t *testing.T) {
	start := func(t *testing.T, fault fake.Mood, block string) (*bench, string) {
		b := newBench(t, fault, block)
		b.setup(t)
		require.Equal(t, abi.ReadinessReady, b.ready(t).Status, "nothing was posted")
		receipt := b.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex.", "Noted."))
		assert.Equal(t, abi.StatusQueued, receipt.Status, "queued is not committed")
		return b, receipt.Markers[0]
	}
	t.Run("trap 8: no row yet is no green light", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true, RowDelay: time.Second}, "")
		r := b.ready(t, m)
		assert.Equal(t, abi.ReadinessPending, r.Status)
		assert.Equal(t, []string{"e1"}, r.EventIDs.Pending)
		assert.True(t, hasWarning(r.Warnings, "rows_expected"))
		b.pass(1100 * time.Millisecond)
		assert.Equal(t, abi.ReadinessReady, b.ready(t, m).Status)
	})
	t.Run("trap 8: all rows there and done is ready at once", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true}, "")
		r := b.ready(t, m)
		assert.Equal(t, abi.ReadinessReady, r.Status)
		assert.Empty(t, r.Warnings)
		assert.Empty(t, r.EventIDs.Empty)
	})
	t.Run("trap 8: a default server holds a short turn for 30 minutes, and readiness says what to set",
		func(t *testing.T) {
			b, m := start(t, fake.Mood{}, "")
			b.pass(10 * time.Second)
			r := b.ready(t, m)
			assert.Equal(t, abi.ReadinessPending, r.Status)
			assert.True(t, hasWarning(r.Warnings, "batch_threshold"))
			assert.Contains(t, strings.Join(r.Warnings, " "), "DERIVER_FLUSH_ENABLED=true")
			assert.Empty(t, r.StalledSince)
			b.pass(2 * time.Minute)
			r = b.ready(t, m)
			assert.Equal(t, abi.ReadinessPending, r.Status)
			assert.NotEmpty(t, r.StalledSince)
			assert.True(t, hasWarning(r.Warnings, "deriver_stalled"))
			b.pass(30 * time.Minute)
			assert.Equal(t, abi.ReadinessReady, b.ready(t, m).Status)
		})
	t.Run("trap 8: enough tokens open the gate", func(t *testing.T) {
		b, _ := start(t, fake.Mood{}, "")
		receipt := b.mustRecord(t, turn("e2", "s1", strings.Repeat("I like green tea. ", 200)))
		assert.Equal(t, abi.ReadinessReady, b.ready(t, receipt.Markers...).Status)
	})
	t.Run("trap 8: no deriver looks like the gate, but with flush known it is called stalled", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true, DeriverDown: true}, `,"server":{"flush":true}`)
		b.pass(2 * time.Minute)
		r := b.ready(t, m)
		assert.Equal(t, abi.ReadinessPending, r.Status)
		assert.False(t, hasWarning(r.Warnings, "batch_threshold"))
		assert.True(t, hasWarning(r.Warnings, "deriver_stalled"))
		assert.Equal(t, abi.HealthOK, b.health(t).Status, "health cannot see it")
	})
	t.Run("trap 8: work in progress is pending, never stalled", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true, WorkDelay: time.Hour}, "")
		b.pass(5 * time.Minute)
		b.ready(t, m)
		b.pass(5 * time.Minute)
		r := b.ready(t, m)
		assert.Equal(t, abi.ReadinessPending, r.Status)
		assert.Empty(t, r.Warnings)
	})
	t.Run("trap 8: a failed derivation counts as completed, and is no pass", func(t *testing.T) {
		for name, fault := range map[string]fake.Mood{"LLM": {Flush: true, LLMDown: true},
			"embeddings": {Flush: true, EmbedDown: true}} {
			b, m := start(t, fault, "")
			b.pass(5 * time.Second)
			r := b.ready(t, m)
			assert.Equal(t, abi.ReadinessDegraded, r.Status, name)
			assert.Equal(t, []string{"e1"}, r.EventIDs.Empty, name)
			assert.True(t, hasWarning(r.Warnings, "derivation_empty"), name)
		}
	})
	t.Run("trap 8: later failures are listed as empty", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true}, "")
		require.Equal(t, abi.ReadinessReady, b.ready(t, m).Status)
		b.pass(time.Minute)
		b.server.Set(func(m *fake.Mood) { m.LLMDown = true })
		receipt := b.mustRecord(t, turn("e2", "s1", "I moved to Bergen."))
		b.pass(5 * time.Second)
		r := b.ready(t, receipt.Markers...)
		assert.Equal(t, abi.ReadinessReady, r.Status)
		assert.Equal(t, []string{"e2"}, r.EventIDs.Empty)
		assert.True(t, hasWarning(r.Warnings, "derivation_empty"))
	})
	t.Run("trap 8: rows that were never inserted are missed", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true, EnqueueFails: true}, "")
		b.pass(5 * time.Second)
		assert.Equal(t, abi.ReadinessPending, b.ready(t, m).Status, "it may have landed late")
		b.pass(2 * time.Minute)
		r := b.ready(t, m)
		assert.Equal(t, abi.ReadinessDegraded, r.Status)
		assert.Equal(t, []string{"e1"}, r.EventIDs.Unknown)
		assert.True(t, hasWarning(r.Warnings, "rows_missing"))
	})
	t.Run("rows that are missing are those of a session", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true}, "")
		b.pass(5 * time.Second)
		b.server.Set(func(m *fake.Mood) { m.EnqueueFails = true })
		lost := b.mustRecord(t, turn("e2", "s2", "I moved to Bergen."))
		b.pass(3 * time.Minute)
		r := b.ready(t, m, lost.Markers[0])
		assert.Equal(t, []string{"e2"}, r.EventIDs.Unknown)
		assert.Contains(t, strings.Join(r.Warnings, "\n"), "in 1 sessions (s-s2)")
	})
	t.Run("one workspace for all: another scope's queue is not waited for", func(t *testing.T) {
		b := newBench(t, fake.Mood{}, `,"fixed_workspace":"lab"`)
		other := abi.MemoryScope{RunID: "run1", PersonaID: "bob"}
		e := turn("e1", "s1", "I wait.")
		e.UserID = "bob"
		_, err := sdktest.Do(b.Host, abi.OpRecordEvent, other, withBackend(recordEvent), e)
		require.NoError(t, err)
		b.pass(time.Minute)
		assert.Equal(t, abi.ReadinessReady, b.ready(t).Status)
	})
	t.Run("an outage is an error", func(t *testing.T) {
		b, m := start(t, fake.Mood{Flush: true}, "")
		b.server.Set(func(m *fake.Mood) { m.DBDown = true })
		_, err := sdktest.Do(b.Host, abi.OpReadiness, scope, withBackend(readiness),
			&abi.ReadinessMarkers{Markers: []string{m}})
		assert.Equal(t, abi.CodeBackend, abi.CodeOf(err))
		h := b.health(t)
		assert.Equal(t, abi.HealthUnavailable, h.Status)
		assert.True(t, hasWarning(h.Warnings, "database_down"))
	})
}
