package main

import (
	"fmt"
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// test is a *testing.T or a *rapid.T.
type test interface {
	sdktest.TB
	require.TestingT
}

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func newHost(t test, config string) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "full_history", Config: config, Manifest: manifest})
}

// turnAt is an event of one message; minute orders the events in time.
func turnAt(id string, minute int, text string) *abi.MemoryEvent {
	at := time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	return &abi.MemoryEvent{EventID: id, RunID: "run", UserID: "mara", SessionID: "s1", TurnID: "t-" + id,
		Timestamp: at.Format(time.RFC3339),
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func record(t test, h *sdktest.Host, events ...*abi.MemoryEvent) {
	t.Helper()
	for _, e := range events {
		receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, e)
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, receipt.Status)
	}
}

func retrieveRequest(budget abi.ContextBudget) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: "what do I drink?", Scope: scope, SessionID: "new", Budget: budget}
}

// find retrieves, and checks what holds for every retrieval: the budget, the evidence, and that format_context gives
// the same string.
func find(t test, h *sdktest.Host, r *abi.RetrieveRequest) *abi.RetrieveResult {
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, r)
	require.NoError(t, err)
	c := h.Call(abi.OpRetrieve, scope)
	require.Equal(t, c.CountTokens(result.FormattedContext), *result.Trace.TokenCount)
	if r.Budget.MaxTokens != nil {
		require.LessOrEqual(t, *result.Trace.TokenCount, *r.Budget.MaxTokens)
	}
	if r.Budget.MaxItems != nil {
		require.LessOrEqual(t, *result.Trace.RetrievedCount, *r.Budget.MaxItems)
	}
	require.Equal(t, *result.Trace.RetrievedCount, int64(len(result.Evidence)))
	again, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext,
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: scope})
	require.NoError(t, err)
	require.Equal(t, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	require.Equal(t, *result.Trace.TokenCount, again.TokenCount)
	for i, e := range result.Evidence {
		require.Equal(t, fmt.Sprintf("/calls/0/body/%d", i), e.Pointer)
		require.Equal(t, int64(i+1), e.Rank)
	}
	return result
}

// shownEventIDs returns the event ids of a result, in order.
func shownEventIDs(result *abi.RetrieveResult) []string {
	var ids []string
	for _, e := range result.Evidence {
		ids = append(ids, e.SourceEventIDs...)
	}
	return ids
}

func tokens(n int64) abi.ContextBudget { return abi.ContextBudget{MaxTokens: &n} }
