package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/testcache"
)

func forgetEvents(ids ...string) *abi.ForgetRequest {
	return &abi.ForgetRequest{Scope: TestScope, EventIDs: ids, Reason: "asked"}
}

func TestForgettingWithAProviderThatCannot(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true,
		Engines: []Engine{extism.Engine()}})
	require.NoError(t, err)
	Patient(h)
	s, err := h.Open(ctx, ProbeConfig(`{}`))
	require.NoError(t, err)
	text, first := "zorvex", Event("e1", "echo one")
	first.Messages = append(first.Messages, abi.Message{Role: abi.RoleAssistant, Content: &text}) // the probe keeps none
	_, err = s.RecordEvent(ctx, first)
	require.NoError(t, err)
	Told(t, s, "e2", "echo two")
	require.NotEmpty(t, DataHas(t, dir, "zorvex"))
	r, err := s.Forget(ctx, forgetEvents("e1", "unknown"))
	require.NoError(t, err)
	require.Equal(t, abi.ForgetPartial, r.Status)
	require.Equal(t, map[string][]string{NativeArchived: {"e1"}}, r.Removed)
	require.Len(t, r.DerivedMayRemain, 1)
	require.Contains(t, r.DerivedMayRemain[0], "probe has no forget")
	require.Equal(t, abi.OpForget, r.Trace.Operation)
	require.Empty(t, DataHas(t, dir, "zorvex"))
	kept, err := h.ledger.Entry(ctx, spaceOf(t, s), "e1")
	require.NoError(t, err)
	require.Equal(t, delivery.Hash{}, kept.Hash, "no digest of a text that could be guessed")

	again, err := s.Forget(ctx, forgetEvents("e1", "unknown"))
	require.NoError(t, err)
	require.Equal(t, abi.ForgetUnsupported, again.Status, "there is nothing more to remove")

	refused := func(s *Slot) {
		for _, id := range []string{"e1", "unknown"} {
			_, err = s.RecordEvent(ctx, Event(id, "echo one"))
			RequireCode(t, err, abi.CodeConflict, "was forgotten")
			require.Equal(t, "forgotten", abi.AsError(err).Reason)
		}
	}
	refused(s)
	_, err = s.ResetScope(ctx, TestScope)
	require.NoError(t, err)
	refused(s) // in the next generation
	added, err := h.Archive().ArchiveAdd(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*Event("e1", "echo one"),
		*Event("e2", "echo two"), *Event("e3", "echo three")}})
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveReceipt{Added: 2}, added, "the reset erased e2, and forgot nothing")
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))

	h = Open(t, Options{DataDir: dir, Archive: true})
	s = OpenSlot(t, h, ProbeConfig(`{}`))
	refused(s) // after a restart
	other := Event("e1", "echo one")
	other.UserID = "somebody else"
	_, err = s.RecordEvent(ctx, other)
	require.NoError(t, err)
}

func TestForgettingASessionAndARangeOfTime(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{Archive: true})
	s := OpenSlot(t, h, ProbeConfig(`{}`))
	at := func(id, session, when string) *abi.MemoryEvent {
		e := Event(id, "echo x")
		e.SessionID, e.Timestamp = session, when
		return e
	}
	for _, e := range []*abi.MemoryEvent{at("e1", "a", "2026-01-01T10:00:00Z"), at("e2", "b", "2026-01-02T10:00:00Z"),
		at("e3", "b", "2026-01-03T10:00:00Z")} {
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, SessionID: "a", Reason: "x"})
	require.NoError(t, err)
	require.Equal(t, []string{"e1"}, r.Removed[NativeArchived])
	r, err = s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, From: "2026-01-02T12:00:00+02:00",
		To: "2026-01-02T10:00:00Z", Reason: "x"}) // a single moment, inclusive at both ends
	require.NoError(t, err)
	require.Equal(t, []string{"e2"}, r.Removed[NativeArchived])
	for _, e := range []*abi.MemoryEvent{at("e1", "a", "2026-01-01T10:00:00Z"), at("new", "a", "2026-01-01T10:00:00Z"),
		at("e2", "c", "2026-01-02T10:00:00Z")} {
		_, err := s.RecordEvent(ctx, e)
		RequireCode(t, err, abi.CodeConflict, "was forgotten")
	}
	_, err = s.RecordEvent(ctx, at("later", "a", "2099-01-01T10:00:00Z"))
	require.NoError(t, err, "the session goes on")
	left := AllArchived(t, h, 0)
	require.Len(t, left, 2)
	require.Equal(t, "e3", left[0].EventID)
}

func TestForgettingASessionWithoutAnArchive(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{})
	before := ProbeConfig(`{}`)
	before.Namespace = "before"
	old, s := OpenSlot(t, h, before), OpenSlot(t, h, ProbeConfig(`{}`))
	for id, session := range map[string]string{"e1": "a", "e2": "b"} {
		e := Event(id, "echo x")
		e.SessionID = session
		for _, slot := range []*Slot{old, s} {
			_, err := slot.RecordEvent(ctx, e)
			require.NoError(t, err)
		}
	}
	forget := func(session string) *abi.ForgetReceipt {
		r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, SessionID: session, Reason: "x"})
		require.NoError(t, err)
		return r
	}
	require.Len(t, forget("c").DerivedMayRemain, 1, "no provider had anything of that session")
	r := forget("a")
	require.Equal(t, abi.ForgetUnsupported, r.Status)
	require.Len(t, r.DerivedMayRemain, 2)
	require.Contains(t, r.DerivedMayRemain[1], `namespace "before"`)
	for _, slot := range []*Slot{old, s} {
		for id, forgotten := range map[string]bool{"e1": true, "e2": false} {
			kept, err := h.ledger.Entry(ctx, spaceOf(t, slot), id)
			require.NoError(t, err)
			require.Equal(t, forgotten, kept.Hash == delivery.Hash{}, id)
		}
	}

	own := OpenSlot(t, h, History(t, "own"))
	Told(t, own, "e3", "I like tea")
	r, err := own.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, SessionID: Event("e3", "").SessionID, Reason: "x"})
	require.NoError(t, err)
	require.Len(t, r.Removed, 1)
	kept, err := h.ledger.Entry(ctx, spaceOf(t, own), "e3")
	require.NoError(t, err)
	require.Nil(t, kept, "the provider removed it, and the ledger knew its session")
}

func TestForgettingIsRefusedBehindTheWallAndByNativeIDsWithoutAProvider(t *testing.T) {
	ctx := context.Background()
	s := ProbeSlot(t, `{}`)
	Told(t, s, "e1", "echo one")
	_, err := s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, NativeIDs: []string{"m1"}, Reason: "x"})
	RequireCode(t, err, abi.CodeUnsupported, "has no forget")
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, Reason: "x"})
	RequireCode(t, err, abi.CodeInvalidArgument, "exactly one of")
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Forget(ctx, forgetEvents("e1"))
	RequireCode(t, err, abi.CodeReadOnly, "nothing is forgotten")
	records, err := s.host.store.Records(ctx, tableForgotten, nil, nil, 0)
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestForgettingNamesProvidersThatDoNotServe(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{})
	before := ProbeConfig(`{}`)
	before.Namespace = "before"
	old := OpenSlot(t, h, before)
	Told(t, old, "e1", "echo one")
	c := ProbeConfig(`{}`)
	c.Namespace = "now"
	s := OpenSlot(t, h, c)
	r, err := s.Forget(ctx, forgetEvents("e1"))
	require.NoError(t, err)
	require.Len(t, r.DerivedMayRemain, 2)
	require.Contains(t, r.DerivedMayRemain[1], `namespace "before"`)
	kept, err := h.ledger.Entry(ctx, spaceOf(t, old), "e1")
	require.NoError(t, err)
	require.Equal(t, delivery.Hash{}, kept.Hash)
	r, err = s.Forget(ctx, forgetEvents("e2"))
	require.NoError(t, err)
	require.Len(t, r.DerivedMayRemain, 1, "it never had that one")
}

func TestWhatAProviderRemovedLeavesTheLedger(t *testing.T) {
	ctx := context.Background()
	s := ProbeSlot(t, `{}`)
	Told(t, s, "e1", "echo one")
	Told(t, s, "e2", "echo two")
	space := spaceOf(t, s)
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
	Told(t, s, "e3", "status queued")
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
