package host_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// emptyingSlot is a slot with a MemOS whose model answered in prose, so that nothing was kept of event e.
func emptyingSlot(t *testing.T, mode string, options ...func(*host.Options, *host.ProviderConfig)) (*host.Slot, *memos.Server) {
	t.Helper()
	fake := memos.New(memos.Options{})
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	s := builtinWith(t, "memos", `{"url":"`+server.URL+`","graph_store":"neo4j","add_mode":"`+mode+`"}`, options...)
	fake.Break(memos.Faults{LLMProse: true})
	_, err := s.RecordEvent(t.Context(), eventAt("e", "2026-01-02T00:00:00Z", "My cat is called Zorvex."))
	require.NoError(t, err)
	fake.Break(memos.Faults{})
	return s, fake
}

func readiness(t *testing.T, s *host.Slot, retry bool) *abi.BackendReadiness {
	t.Helper()
	ready, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"},
		TimeoutMS: 10_000, RetryEmpty: retry})
	require.NoError(t, err)
	return ready
}

// adds counts the adds that the backend received.
func adds(fake *memos.Server) (n int) {
	for _, r := range fake.Requests() {
		if r.Path == "/product/add" && bytes.Contains(r.Body, []byte("Zorvex")) {
			n++
		}
	}
	return n
}

// TestWhatKeptNothingIsToldUntilSomebodyDecides: readiness keeps listing empty events. Earlier only the first look did:
// later ones said ready, and a background poll could consume the answer.
func TestWhatKeptNothingIsToldUntilSomebodyDecides(t *testing.T) {
	for _, mode := range []string{"async", "sync/fine"} {
		t.Run(mode, func(t *testing.T) {
			s, fake := emptyingSlot(t, mode)
			for range 3 {
				ready := readiness(t, s, false)
				assert.Equal(t, []string{"e"}, ready.EventIDs.Empty)
				assert.Contains(t, ready.Warnings, "kept_nothing: the backend kept nothing of 1 events; memhost readiness "+
					"--retry sends them again")
			}
			again, err := s.RecordEvent(t.Context(), eventAt("e", "2026-01-02T00:00:00Z", "My cat is called Zorvex."))
			require.NoError(t, err)
			assert.Equal(t, abi.StatusNotRetained, again.Status)
			assert.True(t, again.Duplicate)
			assert.Equal(t, 1, adds(fake), "by default it is sent once")

			ready := readiness(t, s, true)
			assert.Equal(t, []string{"e"}, ready.EventIDs.Failed, "without an archive whoever has it records it again")
			again, err = s.RecordEvent(t.Context(), eventAt("e", "2026-01-02T00:00:00Z", "My cat is called Zorvex."))
			require.NoError(t, err)
			assert.False(t, again.Duplicate)
			assert.Contains(t, strings.Join(again.Warnings, "\n"), "sent_again: ")
			ready = readiness(t, s, false)
			assert.Equal(t, abi.ReadinessReady, ready.Status)
			assert.Empty(t, ready.EventIDs.Empty)
			result, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "cat", SessionID: "s2",
				Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"}})
			require.NoError(t, err)
			assert.Contains(t, result.FormattedContext, "Zorvex")
		})
	}
}

func TestARetrySendsWhatTheArchiveHas(t *testing.T) {
	brief.Leave(t)
	s, fake := emptyingSlot(t, "async", func(o *host.Options, _ *host.ProviderConfig) { o.Archive = true })
	assert.Equal(t, []string{"e"}, readiness(t, s, false).EventIDs.Empty)
	ready := readiness(t, s, true)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
	assert.Empty(t, append(ready.EventIDs.Empty, ready.EventIDs.Failed...))
	assert.Equal(t, 2, adds(fake))
	stats, err := host.HostOf(s).Archive().ArchiveStats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Events, "it is archived once")
}

func TestRetryOnce(t *testing.T) {
	brief.Leave(t)
	s, fake := emptyingSlot(t, "async", func(_ *host.Options, p *host.ProviderConfig) { p.RetryEmpty = host.RetryOnce })
	require.Equal(t, []string{"e"}, readiness(t, s, false).EventIDs.Empty)
	record := func() *abi.WriteReceipt {
		receipt, err := s.RecordEvent(t.Context(), eventAt("e", "2026-01-02T00:00:00Z", "My cat is called Zorvex."))
		require.NoError(t, err)
		return receipt
	}
	fake.Break(memos.Faults{LLMProse: true})
	assert.False(t, record().Duplicate)
	require.Equal(t, []string{"e"}, readiness(t, s, false).EventIDs.Empty, "and empty again")
	assert.True(t, record().Duplicate, "once")
	assert.Equal(t, 2, adds(fake))
}

// TestARetryMeetsTheWall, and then changes nothing.
func TestARetryMeetsTheWall(t *testing.T) {
	s, _ := emptyingSlot(t, "sync/fine")
	_, err := s.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"},
		RetryEmpty: true})
	host.RequireCode(t, err, abi.CodeReadOnly, "nothing is sent again")
	assert.Equal(t, []string{"e"}, readiness(t, s, false).EventIDs.Empty)
}

// TestARetryThatFailsStaysNoted: if a backend rejects the second attempt, nothing is lost.
func TestARetryThatFailsStaysNoted(t *testing.T) {
	s, b, _ := host.ScriptedSlot(t, host.Options{})
	record := func(text string) (*abi.WriteReceipt, error) { return s.RecordEvent(t.Context(), host.Event("e", text)) }
	_, err := record("deliver a; status not_retained")
	require.NoError(t, err)
	readiness := func(retry bool) *abi.BackendReadiness {
		b.Set(func() { b.Ready = `{"status":"ready","event_ids":{},"method":"script"}` })
		ready, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: host.TestScope, RetryEmpty: retry})
		require.NoError(t, err)
		return ready
	}
	require.Equal(t, []string{"e"}, readiness(false).EventIDs.Empty)
	require.Equal(t, []string{"e"}, readiness(true).EventIDs.Failed)
	b.Set(func() { b.Post = func(string) int { return 400 } })
	_, err = record("deliver a; status not_retained")
	require.Error(t, err)
	assert.Equal(t, []string{"e"}, readiness(false).EventIDs.Failed)
}

// TestARetrySendsWhatDidNotArrive: lost and failed events, and an empty one whose second attempt failed.
func TestARetrySendsWhatDidNotArrive(t *testing.T) {
	s, b, _ := host.ScriptedSlot(t, host.Options{Archive: true})
	readiness := func(answer string, retry bool) *abi.BackendReadiness {
		t.Helper()
		b.Set(func() { b.Ready = answer })
		ready, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: host.TestScope, RetryEmpty: retry})
		require.NoError(t, err)
		return ready
	}
	for _, id := range []string{"empty", "failed", "kept", "lost"} {
		_, err := s.RecordEvent(t.Context(), host.Event(id, "deliver "+id+"; echo ask-"+id+"; status queued"))
		require.NoError(t, err)
	}
	judged := readiness(`{"status":"failed","event_ids":{"lost":["lost"],"failed":["failed"],"empty":["empty"],`+
		`"pending":["kept"]},"method":"script"}`, false)
	require.Equal(t, []string{"empty"}, judged.EventIDs.Empty)

	const ready = `{"status":"ready","event_ids":{},"method":"script"}`
	b.Set(func() { b.Post = func(string) int { return 400 } })
	stuck := readiness(ready, true)
	assert.Equal(t, abi.ReadinessFailed, stuck.Status)
	assert.ElementsMatch(t, []string{"failed", "empty", "lost"}, append(stuck.EventIDs.Failed, stuck.EventIDs.Lost...))

	b.Set(func() { b.Post = nil })
	before := len(b.Sent())
	assert.Equal(t, abi.ReadinessReady, readiness(ready, true).Status)
	assert.Equal(t, []string{"empty/empty", "failed/failed", "lost/lost"}, b.Sent()[before:])
	assert.Equal(t, abi.ReadinessReady, readiness(ready, true).Status)
	assert.Len(t, b.Sent(), before+3, "and once")
	stats, err := host.HostOf(s).Archive().ArchiveStats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4, stats.Events, "each is archived once")
}
