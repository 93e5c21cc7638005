package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
)

// lifeOf opens a host with options and a slot, runs within, and closes both.
func lifeOf(t *testing.T, o Options, within func(h *Host, s *Slot)) {
	t.Helper()
	ctx := context.Background()
	o.Durability, o.CacheDir = "process", testcache.Dir()
	h, err := New(ctx, o)
	require.NoError(t, err)
	s, err := h.Open(ctx, History(t, ""))
	require.NoError(t, err)
	within(h, s)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
}

// give brings turns of a person, to fill another memory from.
func give(t testing.TB, s *Slot, first bool, person string, from, to int) *report.ArchiveReceipt {
	t.Helper()
	request := &report.BackfillEvents{First: first}
	for ; from < to; from++ {
		request.Events = append(request.Events, *Turn(person, from))
	}
	receipt, err := s.BackfillEvents(context.Background(), request)
	require.NoError(t, err)
	return receipt
}

// Given events come first, in order, followed by what is recorded, even while nothing is filled and no archive is kept.
func TestAMemoryIsFilledFromAFileWithoutAnArchive(t *testing.T) {
	for _, archived := range []bool{false, true} {
		ctx, dir := context.Background(), t.TempDir()
		o := Options{DataDir: dir, Archive: archived}
		lifeOf(t, o, func(h *Host, s *Slot) {
			Record(t, s, "ann", 0, 10)
			Record(t, s, "bob", 900, 901)
			_, err := s.Forget(ctx, &abi.ForgetRequest{Scope: PersonScope("ann"), EventIDs: []string{"ann-00101"}, Reason: "r"})
			require.NoError(t, err)
			require.EqualValues(t, 3, give(t, s, true, "cy", 0, 3).Added)
			receipt := give(t, s, true, "ann", 100, 500) // what was given before is dropped
			require.Equal(t, report.ArchiveReceipt{Added: 399}, *receipt, "one was forgotten")
			require.Equal(t, report.ArchiveReceipt{Added: 300, Present: 0}, *give(t, s, false, "bob", 0, 300))
			require.Equal(t, report.ArchiveReceipt{Present: 10}, *give(t, s, false, "bob", 0, 10))

			plan, err := s.BackfillPlan(ctx, History(t, "next"), BackfillOptions{Given: true})
			require.NoError(t, err)
			require.EqualValues(t, 699, plan.Events)
			_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{Given: true, Rate: 400})
			require.NoError(t, err)
			Record(t, s, "ann", 610, 615)
			Until(t, "a part is filled", func() bool {
				b, err := s.BackfillStatus(ctx)
				require.NoError(t, err)
				return b.Progress.Done > 30
			})
			_, err = s.ResetScope(ctx, PersonScope("bob")) // while it is being filled
			require.NoError(t, err)
			Record(t, s, "bob", 901, 902)
		})
		lifeOf(t, o, func(h *Host, s *Slot) {
			Record(t, s, "ann", 615, 617) // before it is resumed
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			require.Equal(t, report.FollowerStopped, b.State)
			unfinished, err := s.UnfinishedBackfill(ctx)
			require.NoError(t, err)
			require.True(t, unfinished.Given)
			_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{Given: true, Resume: true})
			require.NoError(t, err)
			Serves(t, s, "next")
			want := append(append(TurnIDs("ann", 100, 101), TurnIDs("ann", 102, 500)...), TurnIDs("ann", 610, 617)...)
			require.Equal(t, want, Remembered(t, s, "ann"))
			require.Equal(t, TurnIDs("bob", 901, 902), Remembered(t, s, "bob"))
			require.Empty(t, Remembered(t, s, "cy"))

			stats, err := h.given.ArchiveStats(ctx)
			require.NoError(t, err)
			require.Zero(t, stats.Events, "what was given is removed")
			files, _ := filepath.Glob(filepath.Join(dir, "given", "*"))
			require.Empty(t, files)
			require.Equal(t, archived, h.archives(), "nothing waits for anybody any more")
			if !archived {
				require.Zero(t, h.archive.OpenBytes())
			}
		})
	}
}

func TestGivenEventsAreRefusedForgottenAndThrownAway(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{})
	s := OpenSlot(t, h, History(t, ""))
	_, err := s.Backfill(ctx, History(t, "next"), BackfillOptions{Given: true})
	require.Equal(t, "nothing_given", RequireCode(t, err, abi.CodeInvalidArgument).Reason)
	_, err = s.BackfillEvents(ctx, &report.BackfillEvents{Events: []abi.MemoryEvent{{EventID: "x"}}})
	RequireCode(t, err, abi.CodeInvalidArgument, "events[0]")

	give(t, s, true, "ann", 0, 300)
	_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{Given: true, Rate: 20})
	require.NoError(t, err)
	_, err = s.BackfillEvents(ctx, &report.BackfillEvents{First: true, Events: []abi.MemoryEvent{*Turn("ann", 1)}})
	require.Equal(t, "backfill", RequireCode(t, err, abi.CodeConflict, "discard").Reason)

	receipt, err := s.Forget(ctx, &abi.ForgetRequest{Scope: PersonScope("ann"), EventIDs: TurnIDs("ann", 299, 300),
		Reason: "r"})
	require.NoError(t, err)
	require.Contains(t, receipt.Removed[NativeArchived], "ann-00299")
	require.NoError(t, h.given.EachAfter(ctx, 0, func(_ *archive.Entry, e *abi.MemoryEvent) error {
		require.NotEqual(t, "ann-00299", e.EventID)
		return nil
	}))

	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{Given: true})
	require.Equal(t, "backfill", RequireCode(t, err, abi.CodeConflict, "goes on", "discard").Reason)
	_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{Rate: 20})
	require.NoError(t, err, "it goes on with what it was given")
	_, err = s.BackfillStop(ctx, &report.BackfillStop{Discard: true})
	require.NoError(t, err)
	stats, err := h.given.ArchiveStats(ctx)
	require.NoError(t, err)
	require.Zero(t, stats.Events)
	_, err = os.Stat(filepath.Join(h.options.DataDir, "archive"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A person who is erased while another memory is being filled is in neither memory afterwards.
func TestAPersonErasedWhileAMemoryIsFilledIsNotFilled(t *testing.T) {
	brief.Leave(t)
	for _, given := range []bool{false, true} {
		ctx := context.Background()
		h := Open(t, Options{Archive: !given})
		s := OpenSlot(t, h, History(t, ""))
		Record(t, s, "ann", 0, 200)
		Record(t, s, "bob", 0, 200)
		if given {
			give(t, s, true, "ann", 0, 200)
			give(t, s, false, "bob", 0, 200)
		}
		_, err := s.Backfill(ctx, History(t, "next"), BackfillOptions{Rate: 300, Given: given})
		require.NoError(t, err)
		Until(t, "a part is filled", func() bool {
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			return b.Progress.Done > 20
		})
		_, err = s.ErasePersona(ctx, &report.PersonaRequest{PersonaID: "ann", Reason: "asked"}, nil)
		require.NoError(t, err)
		Serves(t, s, "next")
		require.Empty(t, Remembered(t, s, "ann"), "given: %v", given)
		require.Equal(t, TurnIDs("bob", 0, 200), Remembered(t, s, "bob"))
	}
}
