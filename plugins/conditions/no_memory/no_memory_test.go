package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nothing"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func newHost(t *testing.T, config string) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "no_memory", Config: config, Manifest: manifest})
}

func event() *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "mara", SessionID: "s1", TurnID: "t1",
		Timestamp: "2026-01-12T09:00:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: new("My cat is called Zorvex.")}}}
}

func TestNothingIsRetained(t *testing.T) {
	h := newHost(t, `{"variant":"named"}`)
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, event())
	require.NoError(t, err)
	assert.Equal(t, "e1", receipt.EventID)
	assert.Equal(t, abi.StatusNotRetained, receipt.Status)
	assert.Equal(t, abi.NativeIDsNone, receipt.NativeIDsKind)
	assert.False(t, receipt.Duplicate)
	assert.Empty(t, h.Keys(scope))

	r := &abi.RetrieveRequest{Query: "What is my cat called?", Scope: scope, SessionID: "s2", Context: "home",
		AsOf:   "2026-02-01T00:00:00Z",
		Budget: abi.ContextBudget{MinTokens: new(int64(50)), MaxTokens: new(int64(100))}}
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, r)
	require.NoError(t, err)
	assert.Empty(t, result.FormattedContext)
	assert.Empty(t, result.Evidence)
	assert.Empty(t, result.Raw.Calls)
	assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
	assert.Equal(t, int64(0), *result.Trace.TokenCount)
	assert.Equal(t, int64(50), *result.Trace.BudgetShortfall)
	assert.Equal(t, abi.FilterNone, result.Trace.FilterMode)
	assert.Equal(t, map[string]string{"context": "none"}, result.Trace.FiltersApplied)
	assert.Equal(t, "ignored", result.Trace.AsOfMode)
	assert.Equal(t, abi.Raw(`"named"`), result.Trace.Details["variant"])

	formatted, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext,
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: scope})
	require.NoError(t, err)
	assert.Equal(t, &abi.FormatResult{}, formatted)
}

func TestTheVariantIsAnonymizedUnlessConfigured(t *testing.T) {
	for config, want := range map[string]string{`{}`: `"anonymized"`, `{"variant":"anonymized"}`: `"anonymized"`,
		`{"variant":"named"}`: `"named"`} {
		setup, err := sdktest.Do(newHost(t, config), abi.OpSetupScope, scope, setupScope, &abi.Empty{})
		require.NoError(t, err)
		assert.True(t, setup.Ready)
		assert.Equal(t, want, string(setup.Trace.Details["variant"]), config)
	}
}

func TestResetAndHealth(t *testing.T) {
	h := newHost(t, "")
	for generation := int64(1); generation < 3; generation++ {
		receipt, err := sdktest.Do(h, abi.OpResetScope, scope, resetScope, &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.ResetDone, receipt.Status)
		assert.Empty(t, receipt.Removed)
		assert.Equal(t, []int64{generation, generation + 1}, []int64{receipt.OldGeneration, receipt.NewGeneration})
	}
	state, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, state.Status)
	assert.Equal(t, "no_memory", state.BackendName)
}

func TestItIsReadyAndKeepsNothing(t *testing.T) {
	h := newHost(t, `{}`)
	ready, err := sdktest.Do(h, abi.OpReadiness, scope, nothing.Readiness, &abi.ReadinessMarkers{})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
	assert.Contains(t, ready.Method, "keeps nothing")
	held, err := sdktest.Do(h, abi.OpInventory, scope, nothing.Inventory, &abi.Empty{})
	require.NoError(t, err)
	assert.Empty(t, held.Kinds)
	assert.True(t, held.Complete && held.Quiescent)
}
