package host_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
)

func TestForgettingWithAProviderThatCannot(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true,
		Engines: []host.Engine{extism.Engine()}})
	require.NoError(t, err)
	host.AddSlack(h)
	s, err := h.Open(ctx, host.ProbeConfig(`{}`))
	require.NoError(t, err)
	text, first := "zorvex", host.Event("e1", "echo one")
	first.Messages = append(first.Messages, abi.Message{Role: abi.RoleAssistant, Content: &text}) // the probe keeps none
	_, err = s.RecordEvent(ctx, first)
	require.NoError(t, err)
	host.RunCommands(t, s, "e2", "echo two")
	require.NotEmpty(t, host.DataHas(t, dir, "zorvex"))
	r, err := s.Forget(ctx, host.ForgetEvents("e1", "unknown"))
	require.NoError(t, err)
	require.Equal(t, abi.ForgetPartial, r.Status)
	require.Equal(t, map[string][]string{host.NativeArchived: {"e1"}}, r.Removed)
	require.Len(t, r.DerivedMayRemain, 1)
	require.Contains(t, r.DerivedMayRemain[0], "probe has no forget")
	require.Equal(t, abi.OpForget, r.Trace.Operation)
	require.Empty(t, host.DataHas(t, dir, "zorvex"))
	kept := host.LedgerEntry(t, s, "e1")
	require.Equal(t, delivery.Hash{}, kept.Hash, "no digest of a text that could be guessed")

	again, err := s.Forget(ctx, host.ForgetEvents("e1", "unknown"))
	require.NoError(t, err)
	require.Equal(t, abi.ForgetUnsupported, again.Status, "there is nothing more to remove")

	refused := func(s *host.Slot) {
		for _, id := range []string{"e1", "unknown"} {
			_, err = s.RecordEvent(ctx, host.Event(id, "echo one"))
			host.RequireCode(t, err, abi.CodeConflict, "was forgotten")
			require.Equal(t, "forgotten", abi.AsError(err).Reason)
		}
	}
	refused(s)
	_, err = s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
	refused(s) // in the next generation
	added, err := h.Archive().ArchiveAdd(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("e1", "echo one"),
		*host.Event("e2", "echo two"), *host.Event("e3", "echo three")}})
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveReceipt{Added: 2}, added, "the reset erased e2, and forgot nothing")
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))

	h = host.Open(t, host.Options{DataDir: dir, Archive: true})
	s = host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	refused(s) // after a restart
	other := host.Event("e1", "echo one")
	other.UserID = "somebody else"
	_, err = s.RecordEvent(ctx, other)
	require.NoError(t, err)
}

func TestForgettingASessionAndARangeOfTime(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	at := func(id, session, when string) *abi.MemoryEvent {
		e := host.Event(id, "echo x")
		e.SessionID, e.Timestamp = session, when
		return e
	}
	for _, e := range []*abi.MemoryEvent{at("e1", "a", "2026-01-01T10:00:00Z"), at("e2", "b", "2026-01-02T10:00:00Z"),
		at("e3", "b", "2026-01-03T10:00:00Z")} {
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, SessionID: "a", Reason: "x"})
	require.NoError(t, err)
	require.Equal(t, []string{"e1"}, r.Removed[host.NativeArchived])
	r, err = s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, From: "2026-01-02T12:00:00+02:00",
		To: "2026-01-02T10:00:00Z", Reason: "x"}) // a single moment, inclusive at both ends
	require.NoError(t, err)
	require.Equal(t, []string{"e2"}, r.Removed[host.NativeArchived])
	for _, e := range []*abi.MemoryEvent{at("e1", "a", "2026-01-01T10:00:00Z"), at("new", "a", "2026-01-01T10:00:00Z"),
		at("e2", "c", "2026-01-02T10:00:00Z")} {
		_, err := s.RecordEvent(ctx, e)
		host.RequireCode(t, err, abi.CodeConflict, "was forgotten")
	}
	_, err = s.RecordEvent(ctx, at("later", "a", "2099-01-01T10:00:00Z"))
	require.NoError(t, err, "the session goes on")
	left := host.AllArchived(t, h, 0)
	require.Len(t, left, 2)
	require.Equal(t, "e3", left[0].EventID)
}

func TestForgettingASessionWithoutAnArchive(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{})
	before := host.ProbeConfig(`{}`)
	before.Namespace = "before"
	old, s := host.OpenSlot(t, h, before), host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	for id, session := range map[string]string{"e1": "a", "e2": "b"} {
		e := host.Event(id, "echo x")
		e.SessionID = session
		for _, slot := range []*host.Slot{old, s} {
			_, err := slot.RecordEvent(ctx, e)
			require.NoError(t, err)
		}
	}
	forget := func(session string) *abi.ForgetReceipt {
		r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, SessionID: session, Reason: "x"})
		require.NoError(t, err)
		return r
	}
	require.Len(t, forget("c").DerivedMayRemain, 1, "no provider had anything of that session")
	r := forget("a")
	require.Equal(t, abi.ForgetUnsupported, r.Status)
	require.Len(t, r.DerivedMayRemain, 2)
	require.Contains(t, r.DerivedMayRemain[1], `namespace "before"`)
	for _, slot := range []*host.Slot{old, s} {
		for id, forgotten := range map[string]bool{"e1": true, "e2": false} {
			kept := host.LedgerEntry(t, slot, id)
			require.Equal(t, forgotten, kept.Hash == delivery.Hash{}, id)
		}
	}

	own := host.OpenSlot(t, h, host.History(t, "own"))
	host.RunCommands(t, own, "e3", "I like tea")
	r, err := own.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, SessionID: host.Event("e3", "").SessionID, Reason: "x"})
	require.NoError(t, err)
	require.Len(t, r.Removed, 1)
	kept := host.LedgerEntry(t, own, "e3")
	require.Nil(t, kept, "the provider removed it, and the ledger knew its session")
}

func TestForgettingIsRefusedBehindTheWallAndByNativeIDsWithoutAProvider(t *testing.T) {
	ctx := context.Background()
	s := host.ProbeSlot(t, `{}`)
	host.RunCommands(t, s, "e1", "echo one")
	_, err := s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, NativeIDs: []string{"m1"}, Reason: "x"})
	host.RequireCode(t, err, abi.CodeUnsupported, "has no forget")
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, Reason: "x"})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "exactly one of")
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Forget(ctx, host.ForgetEvents("e1"))
	host.RequireCode(t, err, abi.CodeReadOnly, "nothing is forgotten")
	require.Empty(t, host.Stored(t, s, "forgotten"))
}

func TestForgettingNamesProvidersThatDoNotServe(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{})
	before := host.ProbeConfig(`{}`)
	before.Namespace = "before"
	old := host.OpenSlot(t, h, before)
	host.RunCommands(t, old, "e1", "echo one")
	c := host.ProbeConfig(`{}`)
	c.Namespace = "now"
	s := host.OpenSlot(t, h, c)
	r, err := s.Forget(ctx, host.ForgetEvents("e1"))
	require.NoError(t, err)
	require.Len(t, r.DerivedMayRemain, 2)
	require.Contains(t, r.DerivedMayRemain[1], `namespace "before"`)
	kept := host.LedgerEntry(t, old, "e1")
	require.Equal(t, delivery.Hash{}, kept.Hash)
	r, err = s.Forget(ctx, host.ForgetEvents("e2"))
	require.NoError(t, err)
	require.Len(t, r.DerivedMayRemain, 1, "it never had that one")
}
