package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/sdk/sdktest"
)

// forget calls until the answer is not in_progress, as the host does.
func (b *bench) forget(t testing.TB, r abi.ForgetRequest) *abi.ForgetReceipt {
	t.Helper()
	r.Scope, r.Reason = scope, "asked"
	for range 5 {
		receipt, err := sdktest.Do(b.Host, abi.OpForget, scope, withBackend(forget), &r)
		require.NoError(t, err)
		if receipt.Status != abi.ForgetInProgress {
			return receipt
		}
		b.pass(time.Second)
	}
	t.Fatal("still in progress")
	return nil
}

func TestASessionOfForgottenEventsIsDeleted(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`, `,"read":"search"`} {
		for name, request := range map[string]abi.ForgetRequest{
			"by event":   {EventIDs: []string{"e1", "e2", "unknown"}},
			"by session": {SessionID: "s1"},
			"by time":    {From: "2026-03-01T10:00:00+01:00", To: "2026-03-01T09:00:00Z"},
		} {
			t.Run(name+block, func(t *testing.T) {
				b := newBench(t, fake.Mood{Flush: true, PurgeDelay: time.Second}, block)
				b.setup(t)
				b.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex.", "Noted."))
				b.mustRecord(t, turn("e2", "s1", "Zorvex sleeps a lot.", "Noted.", "Really."))
				kept := turn("e3", "s2", "I like oolong tea.", "Noted.")
				kept.Timestamp = "2026-03-02T10:00:00+01:00"
				b.mustRecord(t, kept)
				b.pass(time.Minute)
				receipt := b.forget(t, request)
				assert.Equal(t, abi.ForgetDone, receipt.Status)
				assert.Len(t, receipt.Removed["session"], 1)
				assert.Empty(t, receipt.DerivedMayRemain)
				assert.Empty(t, b.messages(t, "s1"))
				found := b.mustAsk(t, "the cat Zorvex, oolong tea")
				assert.NotContains(t, found.FormattedContext, "Zorvex")
				assert.Contains(t, found.FormattedContext, "oolong")
				assert.Empty(t, b.forget(t, request).Removed["session"], "the second time there is nothing left")
				last := b.mustRecord(t, turn("e4", "s1", "My dog is called Bello."))
				ready := b.ready(t, last.Markers...)
				assert.Equal(t, abi.ReadinessReady, ready.Status, "rows that went with their session are not waited for: %v",
					ready.Warnings)
			})
		}
	}
}

func TestForgettingIsInProgressUntilTheSessionIsPurged(t *testing.T) {
	b := newBench(t, fake.Mood{Flush: true, PurgeDelay: time.Minute}, "")
	b.setup(t)
	b.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex."))
	b.pass(time.Second)
	for _, request := range []abi.ForgetRequest{{EventIDs: []string{"e1"}}, {EventIDs: []string{"e1"}},
		{SessionID: "s1"}} {
		request.Scope, request.Reason = scope, "asked"
		receipt, err := sdktest.Do(b.Host, abi.OpForget, scope, withBackend(forget), &request)
		require.NoError(t, err)
		assert.Equal(t, abi.ForgetInProgress, receipt.Status)
		assert.Len(t, receipt.Removed["session"], 1, "also of the earlier call")
	}
	b.pass(time.Minute)
	receipt := b.forget(t, abi.ForgetRequest{EventIDs: []string{"e1"}})
	assert.Equal(t, abi.ForgetDone, receipt.Status)
	assert.Len(t, receipt.Removed["session"], 1)
}

func TestASessionWithOtherEventsStaysAndIsNamed(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex.", "Noted."))
	b.mustRecord(t, turn("e2", "s1", "I like oolong tea."))
	b.pass(time.Minute)
	receipt := b.forget(t, abi.ForgetRequest{EventIDs: []string{"e1"}})
	assert.Equal(t, abi.ForgetPartial, receipt.Status)
	assert.Empty(t, receipt.Removed["session"])
	require.Len(t, receipt.DerivedMayRemain, 1)
	assert.Contains(t, receipt.DerivedMayRemain[0], "2 messages")
	assert.Contains(t, receipt.DerivedMayRemain[0], "s-s1")
	assert.Len(t, b.messages(t, "s1"), 3, "nothing else went either")
	receipt = b.forget(t, abi.ForgetRequest{NativeIDs: []string{"s-s1", "*", "no id"}})
	assert.Equal(t, []string{"s-s1"}, receipt.Removed["session"])
	assert.Empty(t, b.messages(t, "s1"))
}

func TestAConclusionIsForgottenByItsIDInItsScopeAlone(t *testing.T) {
	b := newBench(t, quick, `,"fixed_workspace":"lab"`)
	b.setup(t)
	id := b.mutate(t, "conclusion_create", `{"content":"Alice has a cat called Zorvex."}`).NativeIDs[0]
	b.mutate(t, "card_set", `{"lines":["has a cat"]}`)
	other := abi.MemoryScope{RunID: "run1", PersonaID: "bob"}
	request := abi.ForgetRequest{Scope: other, NativeIDs: []string{id}, Reason: "asked"}
	receipt, err := sdktest.Do(b.Host, abi.OpForget, other, withBackend(forget), &request)
	require.NoError(t, err)
	assert.Empty(t, receipt.Removed["conclusion"])
	receipt = b.forget(t, abi.ForgetRequest{NativeIDs: []string{id}})
	assert.Equal(t, []string{id}, receipt.Removed["conclusion"])
	assert.Contains(t, receipt.DerivedMayRemain, "the user's card, 1 lines")
	assert.Empty(t, b.forget(t, abi.ForgetRequest{NativeIDs: []string{id}}).Removed["conclusion"])
}

func TestATurnDerivedAgainIsForgottenToo(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex."))
	b.pass(time.Minute)
	require.Equal(t, "applied", b.mutate(t, "derive_again", `{"event_id":"e1"}`).Status)
	b.pass(time.Minute)
	assert.Len(t, b.forget(t, abi.ForgetRequest{SessionID: "s1"}).Removed["session"], 2)
	assert.NotContains(t, b.mustAsk(t, "cat").FormattedContext, "Zorvex")
}
