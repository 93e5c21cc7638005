package compat_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// openedFolder is an old data folder, opened by the present host.
type openedFolder struct {
	t       *testing.T
	told    *expectedContents
	backend *backend
	slot    *host.Slot
}

// newVisit opens a data folder with the first of some modules, and swaps to the others.
func newVisit(t *testing.T, u providerSetup, told *expectedContents, dir string, modules [][]byte) *openedFolder {
	t.Helper()
	b := newBackend(u, told.Ended)
	for _, r := range told.Requests { // the fake begins empty: it gets all that it got then
		b.stopAt(r.At)
		b.send(r)
	}
	b.at(told.Ended.Add(time.Minute))
	u.block = string(told.Block)
	h, err := host.New(t.Context(), options(dir, b))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(t.Context(), u.config(modules[0], backendURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	for _, wasm := range modules[1:] {
		_, err := s.Swap(t.Context(), u.config(wasm, backendURL))
		require.NoError(t, err)
	}
	return &openedFolder{t: t, told: told, backend: b, slot: s}
}

// findsWhatWasRecorded: each question finds every line that it found then, in the generation of then, and nothing from
// before a reset.
func (v *openedFolder) findsWhatWasRecorded() {
	var forgotten []string
	for _, f := range v.told.Forgotten {
		forgotten = append(forgotten, decode[abi.MemoryEvent](v.t, f.Event).EventID)
	}
	for _, a := range v.told.Asked {
		result, err := v.slot.Retrieve(v.t.Context(), decode[abi.RetrieveRequest](v.t, a.Request))
		require.NoError(v.t, err)
		assert.Equal(v.t, a.Generation, result.Trace.Generation)
		now := strings.Join(texts(result), "\n")
		for line := range strings.Lines(strings.Join(a.Texts, "\n")) {
			assert.Contains(v.t, now, strings.TrimSpace(line))
		}
		assert.Equal(v.t, len(a.Texts) > 0, result.FormattedContext != "")
		for _, e := range result.Evidence {
			for _, id := range e.SourceEventIDs {
				assert.NotContains(v.t, forgotten, id)
			}
		}
	}
}

// keepsTheScopeReadOnly: the scope that was read-only still is. Afterwards it is not.
func (v *openedFolder) keepsTheScopeReadOnly() {
	scope := *decode[abi.MemoryScope](v.t, v.told.ReadOnly)
	assert.Equal(v.t, abi.StatusSkippedReadOnly, v.record(v.fresh(scope)).Status)
	_, err := v.slot.ResetScope(v.t.Context(), scope)
	assert.Equal(v.t, abi.CodeReadOnly, abi.CodeOf(err))
	_, err = v.slot.SetMode(v.t.Context(), &abi.AdapterMode{Reason: "the example is over", Scope: &scope})
	require.NoError(v.t, err)
}

// knowsDuplicates: an event that has arrived is a duplicate, with its first receipt, and is not sent again. An event
// whose answer got lost is not sent again, either.
func (v *openedFolder) knowsDuplicates() {
	before := v.backend.wrote()
	for _, said := range v.told.Said {
		first, again := decode[abi.WriteReceipt](v.t, said.Receipt), v.record(decode[abi.MemoryEvent](v.t, said.Event))
		assert.True(v.t, again.Duplicate, first.EventID)
		assert.Equal(v.t, first.EventID, again.EventID)
		assert.Contains(v.t, []abi.WriteStatus{first.Status, abi.StatusCommitted}, again.Status, first.EventID)
		if first.Status != again.Status { // readiness was asked since, and the receipt is the backend's last word
			continue
		}
		assert.Equal(v.t, first.NativeIDs, again.NativeIDs, first.EventID)
		assert.Equal(v.t, first.StoredCount, again.StoredCount, first.EventID)
		assert.Equal(v.t, first.Markers, again.Markers, first.EventID)
	}
	if v.told.Unanswered != nil {
		e := decode[abi.MemoryEvent](v.t, v.told.Unanswered)
		assert.Equal(v.t, e.EventID, v.record(e).EventID)
	}
	assert.Equal(v.t, before, v.backend.wrote(), "calls of class write")
}

// goesOn: new events are recorded, those from before a reset are new, and resets count on.
func (v *openedFolder) goesOn() {
	for _, f := range v.told.Forgotten {
		assert.False(v.t, v.record(decode[abi.MemoryEvent](v.t, f.Event)).Duplicate)
	}
	for _, a := range v.told.Asked {
		scope := decode[abi.RetrieveRequest](v.t, a.Request).Scope
		receipt := v.record(v.fresh(scope))
		assert.False(v.t, receipt.Duplicate)
		assert.Equal(v.t, a.Generation, receipt.Trace.Generation)
		ready(v.t, v.slot, scope)
		reset, err := v.slot.ResetScope(v.t.Context(), scope)
		require.NoError(v.t, err)
		assert.Equal(v.t, a.Generation, reset.OldGeneration)
		assert.Equal(v.t, a.Generation+1, reset.NewGeneration)
	}
}

func (v *openedFolder) record(e *abi.MemoryEvent) *abi.WriteReceipt {
	v.t.Helper()
	receipt, err := v.slot.RecordEvent(v.t.Context(), e)
	require.NoError(v.t, err)
	return receipt
}

// fresh is an event that was not recorded then.
func (v *openedFolder) fresh(scope abi.MemoryScope) *abi.MemoryEvent {
	e := decode[abi.MemoryEvent](v.t, v.told.Said[0].Event)
	e.EventID, e.RunID, e.UserID, e.AgentID = "fresh", scope.RunID, scope.PersonaID, scope.AgentID
	return e
}
