package host_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
)

func TestABackfillFillsAnotherMemoryInOrderAndThenServes(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.History(t, ""))
	host.Record(t, s, "ann", 0, 120)
	host.Record(t, s, "bob", 0, 20)
	test := host.Turn("ann", 999)
	test.SessionID = "test-1"
	_, err := s.RecordEvent(ctx, test)
	require.NoError(t, err)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: host.PersonScope("bob"), EventIDs: []string{"bob-00007"}, Reason: "r"})
	require.NoError(t, err)

	plan, err := s.BackfillPlan(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 139, plan.Events)
	require.EqualValues(t, 2, plan.Scopes)
	require.Positive(t, plan.Tokens)
	require.Zero(t, plan.NativeCalls)

	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { // the slot is in use at the same time
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for n := 120; ; n++ {
			select {
			case <-stop:
				return
			case <-pace.C:
				_, err := s.RecordEvent(ctx, host.Turn("ann", n))
				if err != nil {
					panic(err)
				}
			}
		}
	})
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	m := host.Serves(t, s, "next")
	close(stop)
	writer.Wait()
	require.Equal(t, "backfill", m.Steps[len(m.Steps)-2].Name)
	require.Empty(t, m.Followers)
	list := host.Remembered(t, s, "ann")
	require.Equal(t, host.TurnIDs("ann", 0, len(list)), list, "each once, in order, without a gap at the turn")
	require.Greater(t, len(list), 120)
	want := slices.DeleteFunc(host.TurnIDs("bob", 0, 20), func(id string) bool { return id == "bob-00007" })
	require.Equal(t, want, host.Remembered(t, s, "bob"))
	b, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, report.FollowerNone, b.State)
}

func TestABackfillNeedsAnArchiveAndAnotherMemory(t *testing.T) {
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.History(t, ""))
	_, err := s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.Equal(t, "archive_off", host.RequireCode(t, err, abi.CodeUnsupported, "memory.archive").Reason)
	_, err = s.BackfillPlan(ctx, host.History(t, "next"), host.BackfillOptions{})
	host.RequireCode(t, err, abi.CodeUnsupported, "memory.archive")
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	host.RequireCode(t, err, abi.CodeNotFound)

	s = host.OpenSlot(t, host.Open(t, host.Options{Archive: true}), host.History(t, ""))
	_, err = s.Backfill(ctx, host.History(t, ""), host.BackfillOptions{})
	require.Equal(t, "serves", host.RequireCode(t, err, abi.CodeInvalidArgument, "namespace").Reason)
	broken := host.History(t, "next")
	broken.Block = abi.Raw(`{"nonsense":1}`)
	_, err = s.Backfill(ctx, broken, host.BackfillOptions{})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "nonsense")
	requireNoFollowers(t, s)
	secret := host.History(t, "next")
	secret.Block = abi.Raw(`{"api_key":"sk-0123456789abcdef0123456789abcdef"}`)
	_, err = s.Backfill(ctx, secret, host.BackfillOptions{Inline: true})
	require.Error(t, err)
	host.Record(t, s, "ann", 0, 1)
}

func TestABackfillGoesOnAfterARestart(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	host.RunHistory(t, dir, func(h *host.Host, s *host.Slot) {
		host.Record(t, s, "ann", 0, 120)
		inline := host.History(t, "next")
		inline.Block = abi.Raw(`{}`)
		_, err := s.Backfill(ctx, inline, host.BackfillOptions{Rate: 40, Inline: true})
		require.NoError(t, err)
		host.Until(t, "a part is filled", func() bool {
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			return b.Progress.Done > 10
		})
	})
	host.RunHistory(t, dir, func(h *host.Host, s *host.Slot) {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, report.FollowerStopped, b.State, "until it is gone on with")
		unfinished, err := s.UnfinishedBackfill(ctx)
		require.NoError(t, err)
		require.Equal(t, &host.UnfinishedBackfill{Provider: "full_history", Word: "condition", Source: "builtin", Rate: 40,
			Block: abi.Raw("{}")}, unfinished)

		changed := host.History(t, "next")
		changed.Module = append(slices.Clone(changed.Module), 0, 2, 1, 'x') // one more custom section
		_, err = s.Backfill(ctx, changed, host.BackfillOptions{Resume: true})
		require.Equal(t, "module_changed", host.RequireCode(t, err, abi.CodeConflict, "--backfill", "discard").Reason)
		host.Record(t, s, "ann", 120, 121)

		_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Resume: true})
		require.NoError(t, err)
		host.Serves(t, s, "next")
		require.Equal(t, host.TurnIDs("ann", 0, 121), host.Remembered(t, s, "ann"))
	})
}

func TestABackfillCanBeStoppedAndThrownAway(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.History(t, ""))
	host.Record(t, s, "ann", 0, 100)
	_, err := s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 25})
	require.NoError(t, err)
	m, err := s.Manifest(ctx)
	require.NoError(t, err)
	require.Len(t, m.Followers, 1)
	require.Equal(t, report.RoleBackfill, m.Followers[0].Role)
	_, err = s.Backfill(ctx, host.History(t, "other"), host.BackfillOptions{})
	host.RequireCode(t, err, abi.CodeConflict, "under way", "stop")
	host.Until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 15
	})
	b, err := s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	require.Equal(t, report.FollowerStopped, b.State)
	requireNoFollowers(t, s)
	filled := b.Progress.Done
	b, err = s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, filled, b.Progress.Done, "it says what it has filled")
	unfinished, err := s.UnfinishedBackfill(ctx)
	require.NoError(t, err)
	require.True(t, unfinished.Stopped, "what was stopped does not go on by itself")

	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 1})
	require.NoError(t, err)
	b, err = s.BackfillStop(ctx, &report.BackfillStop{Discard: true})
	require.NoError(t, err)
	require.Empty(t, b.Remains)
	empty := func() {
		b, err = s.BackfillStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, report.FollowerNone, b.State)
		next, err := h.Open(ctx, host.History(t, "next"))
		require.NoError(t, err)
		require.Empty(t, host.Remembered(t, next, "ann"))
		require.NoError(t, next.Close(ctx))
	}
	empty()

	// A stopped backfill can be discarded without resuming it.
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 25})
	require.NoError(t, err)
	host.Until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 5
	})
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	_, err = s.BackfillStop(ctx, &report.BackfillStop{Discard: true})
	require.Equal(t, "stopped", host.RequireCode(t, err, abi.CodeConflict, "not loaded").Reason)
	_, err = s.BackfillDiscard(ctx, host.History(t, "other"))
	host.RequireCode(t, err, abi.CodeNotFound, "no backfill")
	b, err = s.BackfillDiscard(ctx, host.History(t, "next"))
	require.NoError(t, err)
	require.Empty(t, b.Remains)
	requireNoFollowers(t, s)
	empty()
}

func TestAResetWhileItIsFilledHoldsForTheNewMemory(t *testing.T) {
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{Archive: true}), host.History(t, ""))
	host.Record(t, s, "ann", 0, 100)
	host.Record(t, s, "bob", 0, 100)
	host.Record(t, s, "cy", 0, 10)
	_, err := s.ResetScope(ctx, host.PersonScope("cy")) // before the backfill starts
	require.NoError(t, err)
	host.Record(t, s, "cy", 10, 20)
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 200})
	require.NoError(t, err)
	host.Until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 10
	})
	_, err = s.ResetScope(ctx, host.PersonScope("ann"))
	require.NoError(t, err)
	host.Record(t, s, "ann", 100, 105)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: host.PersonScope("bob"), EventIDs: []string{"bob-00003", "bob-00099"},
		Reason: "r"})
	require.NoError(t, err)
	host.Serves(t, s, "next")
	require.Equal(t, host.TurnIDs("ann", 100, 105), host.Remembered(t, s, "ann"))
	require.Equal(t, host.TurnIDs("cy", 10, 20), host.Remembered(t, s, "cy"))
	bob := host.Remembered(t, s, "bob")
	require.NotContains(t, bob, "bob-00099")
	require.GreaterOrEqual(t, len(bob), 98)
}

func TestABackfillWaitsBehindTheWall(t *testing.T) {
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{Archive: true}), host.History(t, ""))
	host.Record(t, s, "ann", 0, 200)
	_, err := s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 150})
	require.NoError(t, err)
	host.Until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 10
	})
	receipt, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	require.Zero(t, receipt.InFlight, "raising the wall waited for its delivery")
	behind := host.UntilState(t, s, report.FollowerReadOnly).Progress.Done
	again, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, behind, again.Progress.Done)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r"})
	require.NoError(t, err)
	scope := host.PersonScope("ann")
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &scope})
	require.NoError(t, err)
	host.UntilState(t, s, report.FollowerReadOnly)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r", Scope: &scope})
	require.NoError(t, err)
	host.Serves(t, s, "next")
	require.Equal(t, host.TurnIDs("ann", 0, 200), host.Remembered(t, s, "ann"))
}

func TestABackfillBacksOffAndGoesOn(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	for n := range 5 {
		_, err := s.RecordEvent(ctx, host.Event(fmt.Sprint("e", n), "echo x"))
		require.NoError(t, err)
	}
	host.Fill(t, h, 5, 6)
	require.NoError(t, archiveOne(h, host.Event("d1", "deliver a")))
	busy := host.NewFillable(t, func(n int64, rw http.ResponseWriter) {
		if n <= 2 {
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = rw.Write([]byte("ok"))
	})
	_, err := s.Backfill(ctx, busy.Config(), host.BackfillOptions{})
	require.NoError(t, err)
	host.Serves(t, s, "next")
	require.EqualValues(t, 3, busy.Posts.Load(), "refused twice, then taken")
}

// While callers record continuously, a backend that processes events later always has a new one.
func TestATurnWaitsForWhatWasFilledAndNotForWhatIsStillComing(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{Archive: true}), host.History(t, ""))
	var ready atomic.Pointer[string]
	says := func(answer string) { ready.Store(&answer) }
	says(`{"status":"pending","event_ids":{},"method":"script"}`)
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(*ready.Load()))
	}))
	defer backend.Close()
	tell := func(id string) {
		_, err := s.RecordEvent(ctx, host.Event(id, "echo ask-"+id+"; status queued"))
		require.NoError(t, err)
	}
	tell("e1")
	tell("e2")
	next := host.ProbeConfig(fmt.Sprintf(`{"url":%q}`, backend.URL))
	next.Namespace = "next"
	_, err := s.Backfill(ctx, next, host.BackfillOptions{})
	require.NoError(t, err)
	host.UntilState(t, s, report.FollowerNotReady)
	tell("new")
	host.Until(t, "it has the new one", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Unseen == 3
	})
	require.Equal(t, report.FollowerNotReady, host.UntilState(t, s, report.FollowerNotReady).State)
	says(`{"status":"degraded","event_ids":{"unknown":["new"]},"method":"script"}`) // it has the others
	host.Serves(t, s, "next")
}

// archiveOne adds an event to the archive, as if it had been recorded.
func archiveOne(h *host.Host, e *abi.MemoryEvent) error {
	_, err := h.Archive().ArchiveAdd(context.Background(), &abi.EventBatch{Events: []abi.MemoryEvent{*e}})
	return err
}

func TestOpenEventsAreListedAndTheTurnAsks(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.History(t, ""))
	host.Record(t, s, "ann", 0, 3)
	require.NoError(t, archiveOne(h, host.Event("bad", "fail invalid_argument never")))
	require.NoError(t, archiveOne(h, host.Event("good", "echo x")))
	c := host.ProbeConfig(`{}`)
	c.Namespace = "next"
	_, err := s.Backfill(ctx, c, host.BackfillOptions{})
	require.NoError(t, err)
	b := host.UntilState(t, s, report.FollowerAsks)
	require.EqualValues(t, 1, b.Progress.Open)
	require.Equal(t, "bad", b.Progress.OpenEvents[0].EventID)
	require.Equal(t, "refused", b.Progress.OpenEvents[0].Outcome)
	require.Contains(t, b.Progress.OpenEvents[0].Why, "never")
	require.EqualValues(t, 5, b.Progress.Events)
	require.EqualValues(t, 4, b.Progress.Done)
	_, err = s.BackfillServe(ctx, &report.BackfillServe{})
	require.NoError(t, err)
	host.UntilState(t, s, report.FollowerAsks)
	_, err = s.BackfillServe(ctx, &report.BackfillServe{AcceptOpen: true})
	require.NoError(t, err)
	m := host.Serves(t, s, "next")
	require.Contains(t, m.Steps[len(m.Steps)-2].Detail, "1 open")
}

func TestADamagedArchiveStopsABackfillAndNothingElse(t *testing.T) {
	t.Parallel() // it waits more than it computes
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.History(t, ""))
	host.Fill(t, h, 0, 120)
	host.Tend(t, h)
	files := host.SegmentFiles(t, h)
	require.NotEmpty(t, files)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], whole[:len(whole)/2], 0o600))
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	b := host.UntilState(t, s, report.FollowerWaiting)
	require.Equal(t, "archive", b.Progress.Error.Reason)
	require.Contains(t, b.Progress.Error.Hint, "archive verify")
	host.Record(t, s, "ann", 0, 3)
	require.Equal(t, host.TurnIDs("ann", 0, 3), host.Remembered(t, s, "ann"))
	require.NoError(t, os.WriteFile(files[0], whole, 0o600))
	host.Serves(t, s, "next")
	require.Len(t, host.Remembered(t, s, "ann"), 3)
}

func TestASwapToAFollowersMemoryHasNoGap(t *testing.T) {
	brief.Leave(t)
	t.Parallel() // it waits more than it computes
	ctx := context.Background()
	h := host.Open(t, host.Options{Archive: true})
	s := host.OpenSlot(t, h, host.History(t, ""))
	host.Record(t, s, "ann", 0, 120)
	_, err := s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{Rate: 5})
	require.NoError(t, err)
	_, err = s.Swap(ctx, host.History(t, "next"))
	require.Equal(t, "behind", host.RequireCode(t, err, abi.CodeConflict, "--backfill", "serves on").Reason)
	require.Empty(t, strings.Join(host.Remembered(t, s, "bob"), " "))
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err, "without the limit")
	host.Serves(t, s, "next")
	require.Equal(t, host.TurnIDs("ann", 0, 120), host.Remembered(t, s, "ann"))
}

func requireNoFollowers(t testing.TB, s *host.Slot) {
	t.Helper()
	counts, err := s.FollowerCounts(t.Context())
	require.NoError(t, err)
	require.Empty(t, counts)
}
