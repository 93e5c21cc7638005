package host

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What no test from outside the package can see or bring about.

func TestScopeKeysAreInjective(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.StringMatching(`[a\x00-\x02]{0,2}`)
		draw := func(which string) scopeName {
			p := rapid.SliceOfN(part, 6, 6).Draw(rt, which)
			return scopeName{p[0], p[1], p[2], p[3], p[4], p[5]}
		}
		a, b := draw("a"), draw("b")
		require.Equal(rt, a == b, a.key() == b.key())
	})
}

func TestAServersFailureInSetUpMayBeTriedAgain(t *testing.T) {
	for status, want := range map[int64]bool{500: true, 502: true, 422: false} {
		failed := abi.NewError(abi.CodeBackend, "peer: the backend failed")
		failed.Native = &abi.NativeError{Status: &status}
		assert.Equal(t, want, abi.AsError(repeatable(failed)).Retryable, status)
	}
	assert.False(t, abi.AsError(repeatable(abi.NewError(abi.CodeConflict, "renamed"))).Retryable)
}

func TestAProviderThatCannotServeNamesTheReasonFirst(t *testing.T) {
	err := cannotServe("memos", &abi.BackendHealth{Warnings: []string{"write_profile: async", "unauthenticated: liveness"}},
		401)
	e := RequireCode(t, err, abi.CodeUnauthenticated, "unavailable: unauthenticated: liveness; write_profile: async")
	assert.Contains(t, e.Hint, "credentials")
}

func TestFeedbackIsOffUnlessConfigured(t *testing.T) {
	s := ProbeSlot(t, `{}`)
	m := s.current.Load().provider.module
	m.Exports = append(m.Exports, abi.OpApplyFeedback) // like a module that has it
	_, err := s.ApplyFeedback(context.Background(),
		&abi.MemoryFeedback{FeedbackID: "f", Scope: TestScope, SessionID: "s", Timestamp: "2026-01-01T00:00:00Z",
			Text: "t"})
	require.Equal(t, "feedback_off", RequireCode(t, err, abi.CodeUnsupported, "memory.feedback").Reason)
}

func TestHostileModuleThatWritesStateForever(t *testing.T) {
	s := OpenSlot(t, Open(t, Options{Limits: Limits{StateWriteBytes: 1000}}), ProbeConfig(`{}`))
	half := strings.Repeat("x", 500)
	for _, commands := range []string{"put a " + half + ";put b " + half, "append a " + half + ";append a " + half,
		strings.Repeat("del x;", 20)} {
		_, err := s.RecordEvent(t.Context(), Event("too much", commands))
		e := RequireCode(t, err, abi.CodeTooLarge, "the limit is 1000", "limits.state_write_bytes")
		assert.Equal(t, "state_writes", e.Reason)
	}
	assert.Zero(t, s.host.stateWrites.Load())
	RunCommands(t, s, "the same key", "put a "+half+";put a "+half+";put a 2")
	assert.Equal(t, []string{"2"}, Retrieved(t, s, "get a"))
	assert.Zero(t, s.host.stateWrites.Load())

	s.host.stateWrites.Store(stateWritesInFlight) // as if other operations held it
	_, err := s.RecordEvent(t.Context(), Event("too many", "put a 1"))
	e := RequireCode(t, err, abi.CodeRateLimited, "134217728")
	assert.Equal(t, "state_writes_in_flight", e.Reason)
	s.host.stateWrites.Store(0)
	RequireUsable(t, s, "afterwards")
}

func TestOneBackupIsMadeAtATime(t *testing.T) {
	h := Open(t, Options{})
	h.backingUp.Lock()
	err := h.Backup(t.Context(), io.Discard)
	h.backingUp.Unlock()
	require.Equal(t, "backup_running", abi.AsError(err).Reason)
}

func TestWhatAProviderRemovedLeavesTheLedger(t *testing.T) {
	ctx := context.Background()
	s := ProbeSlot(t, `{}`)
	RunCommands(t, s, "e1", "echo one")
	RunCommands(t, s, "e2", "echo two")
	space := SpaceOf(t, s)
	for id, native := range map[string][]string{"e1": {"m1"}, "e2": {"m1", "m2"}} {
		e, err := s.host.ledger.Entry(ctx, space, id)
		require.NoError(t, err)
		e.Receipt.NativeIDs = native
		var b state.Batch
		b.PutRecord(delivery.TableEntries, delivery.Key(space, id), e.Encode())
		require.NoError(t, s.host.commit(ctx, &b))
	}
	var b state.Batch
	require.NoError(t, s.host.ledger.ForgetByNativeIDs(ctx, &b, space, map[string][]string{"memory": {"m1"}}))
	RunCommands(t, s, "e3", "status queued")
	for id, want := range map[string]bool{"unknown": false, "e3": true} {
		unseen, err := s.host.ledger.Forget(ctx, &b, space, id, true)
		require.NoError(t, err)
		require.Equal(t, want, unseen, id)
	}
	require.NoError(t, s.host.commit(ctx, &b))
	for id, left := range map[string]bool{"e1": false, "e2": true, "e3": true} {
		e, err := s.host.ledger.Entry(ctx, space, id)
		require.NoError(t, err)
		require.Equal(t, left, e != nil, id)
	}
}
