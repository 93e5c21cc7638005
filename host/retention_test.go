package host

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
)

// Events that the archive's retention removes before a slow backfill has them are counted, and the backfill asks before
// it serves.
func TestRetentionCountsWhatALateBackfillNeverGets(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	clock := new(FakeClock)
	h := Open(t, Options{Archive: true, ArchiveRetention: 24 * time.Hour, Now: clock.Now})
	s := OpenSlot(t, h, History(t, ""))
	const events = 800 // three pages and a few more
	Record(t, s, "ann", 0, events)
	_, err := s.Backfill(ctx, History(t, "next"), BackfillOptions{Rate: 500})
	require.NoError(t, err)
	Until(t, "a page is filled", func() bool { return s.followers.list()[0].work.Record().Position > 0 })
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	stopped, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	left := events - stopped.Progress.Done
	require.Positive(t, left)

	clock.Add(25 * time.Hour)
	Record(t, s, "ann", events, events+3)
	Tend(t, h)
	require.Len(t, AllArchived(t, h, 0), 3, "retention holds nothing back")
	b, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, left, b.Progress.Dropped)
	require.EqualValues(t, events+3, b.Progress.Events)

	_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	b = UntilState(t, s, report.FollowerAsks)
	require.Equal(t, left, b.Progress.Dropped)
	_, err = s.Swap(ctx, History(t, "next"))
	RequireCode(t, err, abi.CodeConflict, fmt.Sprint(left, " were dropped"), "--accept-open")
	_, err = s.BackfillServe(ctx, &report.BackfillServe{AcceptOpen: true})
	require.NoError(t, err)
	m := Serves(t, s, "next")
	require.Contains(t, m.Steps[len(m.Steps)-2].Detail, fmt.Sprint(left, " dropped"))
	list := Remembered(t, s, "ann")
	filled := len(list) - 3 // events of the page that was interrupted by the stop are among the dropped ones
	require.GreaterOrEqual(t, filled, int(stopped.Progress.Done))
	require.Equal(t, append(TurnIDs("ann", 0, filled), TurnIDs("ann", events, events+3)...), list)
}

// If a shadow's backend is down while retention removes events, the shadow counts what it never gets, including what
// waits for a read-only scope.
func TestRetentionCountsWhatAShadowNeverGets(t *testing.T) {
	ctx := context.Background()
	clock := new(FakeClock)
	h := Open(t, Options{Archive: true, ArchiveRetention: 24 * time.Hour, Now: clock.Now})
	s := OpenSlot(t, h, History(t, ""))
	Record(t, s, "ann", 0, 5)
	Record(t, s, "bob", 0, 5)
	bob := PersonScope("bob")
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &bob})
	require.NoError(t, err)
	require.NoError(t, s.Shadow(ctx, History(t, "next"), ShadowOptions{}))
	Until(t, "bob's are held", func() bool { return ShadowOf(t, s).Progress.Held == 5 })
	require.EqualValues(t, 5, ShadowOf(t, s).Progress.Done)
	clock.Add(25 * time.Hour)
	Tend(t, h)
	require.EqualValues(t, 5, ShadowOf(t, s).Progress.Dropped)
	require.Zero(t, ShadowOf(t, s).Progress.Held)
	require.EqualValues(t, 10, ShadowOf(t, s).Progress.Events)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r", Scope: &bob})
	require.NoError(t, err)
	Record(t, s, "bob", 5, 6)
	Until(t, "it goes on", func() bool { return ShadowOf(t, s).Progress.Done == 6 })
	require.EqualValues(t, 5, ShadowOf(t, s).Progress.Dropped)
}

// The archive's numbers continue after retention has removed all entries, so an earlier reset erases nothing that is
// recorded after a restart.
func TestAnArchiveThatWasEmptiedGoesOnWithItsNumbers(t *testing.T) {
	ctx := context.Background()
	dir, clock := t.TempDir(), new(FakeClock)
	for life := range 2 {
		h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true, Now: clock.Now,
			ArchiveRetention: 24 * time.Hour})
		require.NoError(t, err)
		s, err := h.Open(ctx, History(t, ""))
		require.NoError(t, err)
		Record(t, s, "ann", 10*life, 10*life+5)
		if life == 0 {
			_, err = s.ResetScope(ctx, PersonScope("ann"))
			require.NoError(t, err)
			clock.Add(25 * time.Hour)
			Tend(t, h)
			require.Empty(t, AllArchived(t, h, 0))
		} else {
			plan, err := s.BackfillPlan(ctx, History(t, "next"), BackfillOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 5, plan.Events)
			require.Zero(t, plan.LeftOut)
		}
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
	}
}
