package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// rich has a value in every field.
func rich() *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: "e*1", RunID: "run", UserID: "mara", AgentID: "bot", SessionID: "s 1",
		TurnID:    "t1",
		Timestamp: "2026-01-12T09:03:00.25+01:00", Scenario: "food", Context: "work", Attribute: "hot_drink",
		Metadata: map[string]abi.Raw{"device": abi.Raw(`{"kind": "laptop"}`)},
		Messages: []abi.Message{
			{Role: abi.RoleSystem, Content: new("Be brief.")},
			{Role: abi.RoleUser, Content: new("Where is tea?\n"), Name: "Mara"},
			{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "call_1", Name: "search",
				Arguments: `{"q":"tea"}`}}},
			{Role: abi.RoleTool, Content: new("Kitchen, left."), Name: "search", ToolCallID: "call_1"},
			{Role: abi.RoleAssistant, Content: new("In the kitchen 🍵")},
		}}
}

func TestATurnComesBackWhole(t *testing.T) {
	h := newHost(t, "")
	record(t, h, rich())
	result := find(t, h, retrieveRequest(abi.ContextBudget{}))
	require.Len(t, result.Raw.Calls, 1)
	assert.Equal(t, "state", result.Raw.Calls[0].Route)
	assert.Equal(t, "["+string(abi.Marshal(rich()))+"]", string(result.Raw.Calls[0].Body))
}

func TestReceiptOfANewTurn(t *testing.T) {
	h := newHost(t, "")
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, rich())
	require.NoError(t, err)
	const key = "turn/0ff969b554c2cb4177f/ffffffffffff"
	assert.Equal(t, &abi.WriteReceipt{EventID: "e*1", Status: abi.StatusCommitted, NativeIDs: []string{key},
		NativeIDsKind: abi.NativeIDsFinal,
		StoredCount:   new(int64(1)), Markers: []string{}, Warnings: []string{},
		Trace: &abi.Trace{BackendName: "full_history", NativeOperation: "state_put", NativeIDs: []string{key},
			Consistency: "committed",
			Warnings:    []string{}, IO: []abi.IO{}}}, receipt)
}

func TestARepeatedEventStoresNothingTwice(t *testing.T) {
	h := newHost(t, "")
	record(t, h, turnAt("e1", 0, "tea"), turnAt("e2", 1, "coffee"))
	before := h.Keys(scope)
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, turnAt("e1", 0, "tea"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusCommitted, receipt.Status)
	assert.True(t, receipt.Duplicate)
	assert.Equal(t, int64(0), *receipt.StoredCount)
	require.Len(t, receipt.Warnings, 1)
	assert.True(t, strings.HasPrefix(receipt.Warnings[0], "duplicate_event: "))
	assert.Equal(t, before, h.Keys(scope))
	assert.Equal(t, []string{"e1", "e2"}, shownEventIDs(find(t, h, retrieveRequest(abi.ContextBudget{}))))

	_, err = sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, turnAt("e1", 0, "something else"))
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(err), "other content under the same id")
}

func TestABatchStoresEachEventOnceAndAnswersForEach(t *testing.T) {
	h := newHost(t, "")
	record(t, h, turnAt("e1", 0, "tea"))
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*turnAt("e2", 1, "b"), *turnAt("e1", 0, "tea"),
		*turnAt("e1", 0, "changed"),
		*turnAt("e2", 1, "b"), *turnAt("e3", 2, "c")}}
	answer, err := sdktest.Do(h, abi.OpRecordEvents, scope, recordEvents, batch)
	require.NoError(t, err)
	require.Len(t, answer.Receipts, 5)
	var outcomes []string
	for i, r := range answer.Receipts {
		switch {
		case r.Error != nil:
			assert.Equal(t, batch.Events[i].EventID, r.EventID)
			outcomes = append(outcomes, string(r.Error.Code))
		case r.Receipt.Duplicate:
			outcomes = append(outcomes, "duplicate")
		default:
			outcomes = append(outcomes, string(r.Receipt.Status))
		}
	}
	assert.Equal(t, []string{"committed", "duplicate", "conflict", "duplicate", "committed"}, outcomes)
	assert.Equal(t, []string{"e1", "e2", "e3"}, shownEventIDs(find(t, h, retrieveRequest(abi.ContextBudget{}))))
}

func TestIDsOfAnyLengthAndAlphabetAreFoundAgain(t *testing.T) {
	h := newHost(t, "")
	long := strings.Repeat("é", 256)
	for i, id := range []string{"*", "..", "a/b", "event#", long, long[2:] + "x", strings.Repeat("x", 500),
		strings.Repeat("x", 501), `"`, "🍵 tea"} {
		e := turnAt(id, i, id)
		e.TurnID = "t"
		record(t, h, e)
		answer, err := sdktest.Do(h, abi.OpFindEvent, scope, findEvent,
			&abi.FindEventRequest{EventID: id, SentAt: h.Now})
		require.NoError(t, err)
		assert.Equal(t, "present", answer.Found, "%q", id)
	}
	answer, err := sdktest.Do(h, abi.OpFindEvent, scope, findEvent,
		&abi.FindEventRequest{EventID: "other", SentAt: h.Now})
	require.NoError(t, err)
	assert.Equal(t, "absent", answer.Found)
	assert.Len(t, shownEventIDs(find(t, h, retrieveRequest(abi.ContextBudget{}))), 10)
}

func TestScopesShareNothing(t *testing.T) {
	h := newHost(t, "")
	other := abi.MemoryScope{RunID: "run", PersonaID: "jonas"}
	record(t, h, turnAt("e1", 0, "My cat is called Zorvex."))
	r := retrieveRequest(abi.ContextBudget{})
	r.Scope = other
	result, err := sdktest.Do(h, abi.OpRetrieve, other, retrieve, r)
	require.NoError(t, err)
	assert.Empty(t, result.FormattedContext)
	assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
}

func TestResetRemovesTheTurnsAndIsIdempotent(t *testing.T) {
	h := newHost(t, "")
	record(t, h, turnAt("e1", 0, "a"), turnAt("e2", 1, "b"))
	setup, err := sdktest.Do(h, abi.OpSetupScope, scope, setupScope, &abi.Empty{})
	require.NoError(t, err)
	assert.True(t, setup.Ready)
	assert.True(t, *setup.Existed)
	for i, removed := range []int64{2, 0} {
		receipt, err := sdktest.Do(h, abi.OpResetScope, scope, resetScope, &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.ResetDone, receipt.Status)
		assert.Equal(t, removed, *receipt.Removed["turn"])
		assert.Equal(t, []int64{int64(i + 1), int64(i + 2)}, []int64{receipt.OldGeneration, receipt.NewGeneration})
		assert.Empty(t, h.Keys(scope))
		assert.Empty(t, find(t, h, retrieveRequest(abi.ContextBudget{})).FormattedContext)
	}
	record(t, h, turnAt("e1", 0, "again"))
	assert.Equal(t, []string{"e1"}, shownEventIDs(find(t, h, retrieveRequest(abi.ContextBudget{}))))
}

func TestInventoryTellsTwoStatesApart(t *testing.T) {
	h := newHost(t, "")
	h.PageLimit = 2
	digests := map[string]bool{}
	for i, id := range []string{"e1", "e2", "e3", "e4", "e5"} {
		record(t, h, turnAt(id, 9-i, id))
		for range 2 {
			inventory, err := sdktest.Do(h, abi.OpInventory, scope, inventory, &abi.Empty{})
			require.NoError(t, err)
			require.True(t, inventory.Complete && inventory.Quiescent)
			require.Equal(t, int64(i+1), inventory.Kinds[0].Count)
			digests[inventory.Kinds[0].Digest] = true
		}
	}
	assert.Len(t, digests, 5, "equal states have equal digests, different ones have not")
}

func TestHealthAndReadiness(t *testing.T) {
	h := newHost(t, "")
	state, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, state.Status)
	assert.Equal(t, "full_history", state.BackendName)
	ready, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
}

func TestDamagedStateIsAnErrorAndNotAnEmptyResult(t *testing.T) {
	for _, damage := range []string{countKey, "turn/0"} {
		t.Run(damage, func(t *testing.T) {
			h := newHost(t, "")
			require.NoError(t, h.Call(abi.OpRecordEvent, scope).Put(damage, []byte("{nonsense"), -1))
			_, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, retrieveRequest(abi.ContextBudget{}))
			assert.Equal(t, abi.CodeInternal, abi.CodeOf(err))
			assert.Contains(t, err.Error(), damage)
		})
	}
}
