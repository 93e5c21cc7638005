package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/sdk/sdktest"
)

func (r *rig) forget(request abi.ForgetRequest) *abi.ForgetReceipt {
	r.t.Helper()
	request.Scope, request.Reason = scope, "asked"
	receipt, err := sdktest.Do(r.Host, abi.OpForget, scope, forget, &request)
	require.NoError(r.t, err)
	return receipt
}

// onEach runs a test on every surface: the servers with and without bolt, and core with each way to write.
func onEach(t *testing.T, run func(t *testing.T, r *rig, u providerSetup)) {
	t.Helper()
	each(t, run)
	for _, more := range []string{"", `,"receipts":"queued"`, `,"receipts":"queued","bulk":"native"`} {
		t.Run("core"+more, func(t *testing.T) {
			run(t, onCore(t, more, graphiti.Options{}), providerSetup{surfaceCore, false})
		})
	}
}

// recordInSession records a turn of a session, and processes the queue.
func (r *rig) recordInSession(day int, id, session, text string) {
	r.t.Helper()
	e := turnOn(day, id, text)
	e.SessionID = session
	receipt, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, recordEvent, e)
	require.NoError(r.t, err)
	r.markers = append(r.markers, receipt.Markers...)
	r.later(time.Second)
	r.ready()
}

func TestForgottenEpisodesGoWithTheirFacts(t *testing.T) {
	for name, request := range map[string]abi.ForgetRequest{
		"by event":   {EventIDs: []string{"e1", "unknown"}},
		"by session": {SessionID: "s1"},
		"by time":    {From: "2025-03-01T10:30:00+01:00", To: "2025-03-01T09:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, r *rig, u providerSetup) {
				r.recordInSession(1, "e1", "s1", "My cat is called Zorvex.")
				r.recordInSession(2, "e2", "s2", "I like oolong tea.")
				before := r.count()
				receipt := r.forget(request)
				if u.surface == surfaceMCP && !u.bolt && request.From != "" {
					assert.Equal(t, abi.ForgetUnsupported, receipt.Status)
					assert.Contains(t, receipt.DerivedMayRemain[0], "does not give their times")
					return
				}
				assert.Equal(t, abi.ForgetDone, receipt.Status)
				assert.Len(t, receipt.Removed["episode"], 1)
				assert.Len(t, receipt.Removed["fact"], 1)
				found := r.ask("the cat Zorvex, oolong tea")
				assert.NotContains(t, found.FormattedContext, "Zorvex")
				assert.Contains(t, found.FormattedContext, "oolong")
				after := r.count()
				for i := range after.Kinds {
					if kind := after.Kinds[i]; kind.Kind == "episode" || kind.Kind == "fact" {
						assert.Equal(t, before.Kinds[i].Count-1, kind.Count, kind.Kind)
					}
				}
				again := r.forget(request)
				assert.Equal(t, abi.ForgetDone, again.Status)
				assert.Empty(t, again.Trace.NativeIDs, "the second time there is nothing left")
			})
		})
	}
}

func TestNobodyWaitsForALastTurnThatWasForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig, u providerSetup) {
		r.recordInSession(1, "e1", "s1", "I like oolong tea.")
		r.recordInSession(2, "e2", "s1", "My cat is called Zorvex.")
		r.forget(abi.ForgetRequest{EventIDs: []string{"e2"}})
		assert.True(t, r.count().Quiescent)
		assert.Equal(t, abi.ResetDone, r.reset().Status, "it is not waited for")
	})
}

func TestAFactThatOthersSaidTooIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig, u providerSetup) {
		r.recordInSession(1, "e1", "s1", "I like oolong tea.")
		r.recordInSession(2, "e2", "s1", "I like oolong tea.")
		receipt := r.forget(abi.ForgetRequest{EventIDs: []string{"e1"}})
		assert.Contains(t, fmt.Sprint(receipt.DerivedMayRemain), "1 facts that other events")
		if u.surface == surfaceMCP && !u.bolt {
			assert.Len(t, receipt.Removed["fact"], 1, "delete_episode takes it")
			return
		}
		assert.Empty(t, receipt.Removed["fact"])
		assert.Contains(t, r.ask("oolong tea").FormattedContext, "oolong")
		receipt = r.forget(abi.ForgetRequest{EventIDs: []string{"e2"}})
		assert.Len(t, receipt.Removed["fact"], 1, "now nothing else says it")
		assert.NotContains(t, r.ask("oolong tea").FormattedContext, "oolong")
	})
}

// TestASharedFactStaysOnALaterServer: since 0.31 delete_episode deletes only what no other episode asserts.
func TestASharedFactStaysOnALaterServer(t *testing.T) {
	r := plugTo(t, providerSetup{surfaceMCP, false}, graphiti.Options{Head: true}, "")
	r.recordInSession(1, "e1", "s1", "I like oolong tea.")
	r.recordInSession(2, "e2", "s1", "I like oolong tea.")
	receipt := r.forget(abi.ForgetRequest{EventIDs: []string{"e1"}})
	assert.Contains(t, receipt.DerivedMayRemain, "1 facts that other events said too")
	assert.Empty(t, receipt.Removed["fact"])
	assert.Contains(t, r.ask("oolong tea").FormattedContext, "oolong")
	assert.Len(t, r.forget(abi.ForgetRequest{EventIDs: []string{"e2"}}).Removed["fact"], 1)
	assert.NotContains(t, r.ask("oolong tea").FormattedContext, "oolong")
}

func TestAFactThatAnotherEventClosedIsForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig, u providerSetup) {
		r.recordInSession(1, "e1", "s1", "I prefer window seats.")
		r.recordInSession(2, "e2", "s1", "I now prefer aisle seats.")
		receipt := r.forget(abi.ForgetRequest{EventIDs: []string{"e1"}})
		if u.surface == surfaceREST && !u.bolt {
			assert.Contains(t, receipt.DerivedMayRemain[0], "does not tell which")
			return
		}
		assert.Len(t, receipt.Removed["fact"], 1)
		assert.NotContains(t, r.ask("seats").FormattedContext, "window")
		assert.Contains(t, r.ask("seats").FormattedContext, "aisle")
	})
}

func TestAFactIsForgottenByItsIDInItsScopeAlone(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig, u providerSetup) {
		r.recordInSession(1, "e1", "s1", "My cat is called Zorvex.")
		id := r.ask("the cat Zorvex").Evidence[0].NativeID
		other := abi.MemoryScope{RunID: "other", PersonaID: "user_a"}
		receipt, err := sdktest.Do(r.Host, abi.OpForget, other, forget, &abi.ForgetRequest{Scope: other,
			NativeIDs: []string{id}, Reason: "asked"})
		require.NoError(t, err)
		assert.Empty(t, receipt.Trace.NativeIDs, "the servers delete by UUID in any group")
		receipt = r.forget(abi.ForgetRequest{NativeIDs: []string{id, "no uuid"}})
		assert.Equal(t, []string{id}, receipt.Removed["fact"])
		assert.Empty(t, receipt.Removed["episode"])
		assert.NotContains(t, r.ask("the cat Zorvex").FormattedContext, "Zorvex")
	})
}

func TestAForgottenEventsJobIsTakenOutOfTheJournal(t *testing.T) {
	r := onCore(t, `,"receipts":"queued","bulk":"native"`)
	r.batch(turnOn(1, "e1", "My cat is called Zorvex."), turnOn(2, "e2", "I like oolong tea."))
	r.later(time.Second)
	r.ready()
	r.fake.Hold(true)
	r.recordTurn(3, "e3", "Zorvex sleeps.")
	r.forget(abi.ForgetRequest{EventIDs: []string{"e1", "e3"}})
	r.fake.Hold(false)
	r.later(time.Second)
	assert.NotContains(t, r.ask("the cat Zorvex").FormattedContext, "Zorvex", "e3 never came")
	assert.Len(t, r.sentBy("core_forget_job"), 3, "two by their ids, and the batch")
}
