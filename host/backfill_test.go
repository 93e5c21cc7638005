package host

import (
	"context"
	"encoding/json"
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
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/plugins"
)

// history is full_history in a namespace: each namespace is a separate memory.
func history(t testing.TB, namespace string) ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("full_history")
	require.True(t, ok)
	return ProviderConfig{Name: "full_history", Module: m.Wasm, Source: "builtin", Namespace: namespace,
		TestSessions: []string{"test-*"}}
}

// turn returns the nth turn of a person.
func turn(person string, n int) *abi.MemoryEvent {
	text := fmt.Sprintf("%s says %d", person, n)
	return &abi.MemoryEvent{EventID: fmt.Sprintf("%s-%05d", person, n), RunID: "r", UserID: person, SessionID: "s",
		TurnID: fmt.Sprint(n), Timestamp: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339),
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func personScope(person string) abi.MemoryScope {
	return abi.MemoryScope{RunID: "r", PersonaID: person}
}

// record records turns of a person, and requires that each is accepted.
func record(t testing.TB, s *Slot, person string, from, to int) {
	t.Helper()
	for ; from < to; from++ {
		r, err := s.RecordEvent(context.Background(), turn(person, from))
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, r.Status)
	}
}

// remembered returns the event ids in a person's memory, in the order in which full_history received them.
func remembered(t testing.TB, s *Slot, person string) []string {
	t.Helper()
	q, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "q", SessionID: "new",
		Scope: personScope(person)})
	require.NoError(t, err)
	var turns []abi.MemoryEvent
	require.NoError(t, json.Unmarshal(q.Raw.Calls[0].Body, &turns))
	ids := []string{}
	for _, e := range turns {
		ids = append(ids, e.EventID)
	}
	return ids
}

func turnIDs(person string, from, to int) []string {
	ids := []string{}
	for ; from < to; from++ {
		ids = append(ids, turn(person, from).EventID)
	}
	return ids
}

// until waits until a condition is true.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(60 * time.Second)
	for !holds() {
		if time.Now().After(end) {
			require.Fail(t, "it took too long: "+what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilState waits until the backfill is in a state.
func untilState(t testing.TB, s *Slot, want report.FollowerState) *report.Backfill {
	t.Helper()
	var last *report.Backfill
	until(t, string(want), func() bool {
		b, err := s.BackfillStatus(context.Background())
		require.NoError(t, err)
		last = b
		return b.State == want
	})
	return last
}

// serves waits until a memory serves, and returns its manifest.
func serves(t testing.TB, s *Slot, namespace string) *report.RunManifest {
	t.Helper()
	var last *report.RunManifest
	until(t, namespace+" serves", func() bool {
		m, err := s.Manifest(context.Background())
		require.NoError(t, err)
		last = m
		return m.Namespace == namespace
	})
	return last
}

func TestABackfillFillsAnotherMemoryInOrderAndThenServes(t *testing.T) {
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, history(t, ""))
	record(t, s, "ann", 0, 120)
	record(t, s, "bob", 0, 20)
	test := turn("ann", 999)
	test.SessionID = "test-1"
	_, err := s.RecordEvent(ctx, test)
	require.NoError(t, err)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: personScope("bob"), EventIDs: []string{"bob-00007"}, Reason: "r"})
	require.NoError(t, err)

	plan, err := s.BackfillPlan(ctx, history(t, "next"), BackfillOptions{})
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
				_, err := s.RecordEvent(ctx, turn("ann", n))
				if err != nil {
					panic(err)
				}
			}
		}
	})
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	m := serves(t, s, "next")
	close(stop)
	writer.Wait()
	require.Equal(t, "backfill", m.Steps[len(m.Steps)-2].Name)
	require.Empty(t, m.Followers)
	list := remembered(t, s, "ann")
	require.Equal(t, turnIDs("ann", 0, len(list)), list, "each once, in order, without a gap at the turn")
	require.Greater(t, len(list), 120)
	want := slices.DeleteFunc(turnIDs("bob", 0, 20), func(id string) bool { return id == "bob-00007" })
	require.Equal(t, want, remembered(t, s, "bob"))
	b, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, report.FollowerNone, b.State)
}

func TestABackfillNeedsAnArchiveAndAnotherMemory(t *testing.T) {
	ctx := context.Background()
	s := openSlot(t, open(t, Options{}), history(t, ""))
	_, err := s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.Equal(t, "archive_off", requireCode(t, err, abi.CodeUnsupported, "memory.archive").Reason)
	_, err = s.BackfillPlan(ctx, history(t, "next"), BackfillOptions{})
	requireCode(t, err, abi.CodeUnsupported, "memory.archive")
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	requireCode(t, err, abi.CodeNotFound)

	s = openSlot(t, open(t, Options{Archive: true}), history(t, ""))
	_, err = s.Backfill(ctx, history(t, ""), BackfillOptions{})
	require.Equal(t, "serves", requireCode(t, err, abi.CodeInvalidArgument, "namespace").Reason)
	broken := history(t, "next")
	broken.Block = abi.Raw(`{"nonsense":1}`)
	_, err = s.Backfill(ctx, broken, BackfillOptions{})
	requireCode(t, err, abi.CodeInvalidArgument, "nonsense")
	require.Empty(t, s.followers.list())
	secret := history(t, "next")
	secret.Block = abi.Raw(`{"api_key":"sk-0123456789abcdef0123456789abcdef"}`)
	_, err = s.Backfill(ctx, secret, BackfillOptions{Inline: true})
	require.Error(t, err)
	record(t, s, "ann", 0, 1)
}

// life opens a host and a slot on a folder, runs within, and closes both.
func life(t *testing.T, dir string, within func(h *Host, s *Slot)) {
	t.Helper()
	ctx := context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true, Durability: "process"})
	require.NoError(t, err)
	s, err := h.Open(ctx, history(t, ""))
	require.NoError(t, err)
	within(h, s)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
}

func TestABackfillGoesOnAfterARestart(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	life(t, dir, func(h *Host, s *Slot) {
		record(t, s, "ann", 0, 120)
		inline := history(t, "next")
		inline.Block = abi.Raw(`{}`)
		_, err := s.Backfill(ctx, inline, BackfillOptions{Rate: 40, Inline: true})
		require.NoError(t, err)
		until(t, "a part is filled", func() bool {
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			return b.Progress.Done > 10
		})
	})
	life(t, dir, func(h *Host, s *Slot) {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, report.FollowerStopped, b.State, "until it is gone on with")
		unfinished, err := s.UnfinishedBackfill(ctx)
		require.NoError(t, err)
		require.Equal(t, &UnfinishedBackfill{Provider: "full_history", Word: "condition", Source: "builtin", Rate: 40,
			Block: abi.Raw("{}")}, unfinished)

		changed := history(t, "next")
		changed.Module = append(slices.Clone(changed.Module), 0, 2, 1, 'x') // one more custom section
		_, err = s.Backfill(ctx, changed, BackfillOptions{Resume: true})
		require.Equal(t, "module_changed", requireCode(t, err, abi.CodeConflict, "--backfill", "discard").Reason)
		record(t, s, "ann", 120, 121)

		_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{Resume: true})
		require.NoError(t, err)
		serves(t, s, "next")
		require.Equal(t, turnIDs("ann", 0, 121), remembered(t, s, "ann"))
	})
}

func TestABackfillCanBeStoppedAndThrownAway(t *testing.T) {
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, history(t, ""))
	record(t, s, "ann", 0, 100)
	_, err := s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 25})
	require.NoError(t, err)
	m, err := s.Manifest(ctx)
	require.NoError(t, err)
	require.Len(t, m.Followers, 1)
	require.Equal(t, report.RoleBackfill, m.Followers[0].Role)
	_, err = s.Backfill(ctx, history(t, "other"), BackfillOptions{})
	requireCode(t, err, abi.CodeConflict, "under way", "stop")
	until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 15
	})
	b, err := s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	require.Equal(t, report.FollowerStopped, b.State)
	require.Empty(t, s.followers.list())
	filled := b.Progress.Done
	b, err = s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, filled, b.Progress.Done, "it says what it has filled")
	unfinished, err := s.UnfinishedBackfill(ctx)
	require.NoError(t, err)
	require.True(t, unfinished.Stopped, "what was stopped does not go on by itself")

	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 1})
	require.NoError(t, err)
	b, err = s.BackfillStop(ctx, &report.BackfillStop{Discard: true})
	require.NoError(t, err)
	require.Empty(t, b.Remains)
	empty := func() {
		b, err = s.BackfillStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, report.FollowerNone, b.State)
		next, err := h.Open(ctx, history(t, "next"))
		require.NoError(t, err)
		require.Empty(t, remembered(t, next, "ann"))
		require.NoError(t, next.Close(ctx))
	}
	empty()

	// A stopped backfill can be discarded without resuming it.
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 25})
	require.NoError(t, err)
	until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 5
	})
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	_, err = s.BackfillStop(ctx, &report.BackfillStop{Discard: true})
	require.Equal(t, "stopped", requireCode(t, err, abi.CodeConflict, "not loaded").Reason)
	_, err = s.BackfillDiscard(ctx, history(t, "other"))
	requireCode(t, err, abi.CodeNotFound, "no backfill")
	b, err = s.BackfillDiscard(ctx, history(t, "next"))
	require.NoError(t, err)
	require.Empty(t, b.Remains)
	require.Empty(t, s.followers.list())
	empty()
}

func TestAResetWhileItIsFilledHoldsForTheNewMemory(t *testing.T) {
	ctx := context.Background()
	s := openSlot(t, open(t, Options{Archive: true}), history(t, ""))
	record(t, s, "ann", 0, 100)
	record(t, s, "bob", 0, 100)
	record(t, s, "cy", 0, 10)
	_, err := s.ResetScope(ctx, personScope("cy")) // before the backfill starts
	require.NoError(t, err)
	record(t, s, "cy", 10, 20)
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 200})
	require.NoError(t, err)
	until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 10
	})
	_, err = s.ResetScope(ctx, personScope("ann"))
	require.NoError(t, err)
	record(t, s, "ann", 100, 105)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: personScope("bob"), EventIDs: []string{"bob-00003", "bob-00099"},
		Reason: "r"})
	require.NoError(t, err)
	serves(t, s, "next")
	require.Equal(t, turnIDs("ann", 100, 105), remembered(t, s, "ann"))
	require.Equal(t, turnIDs("cy", 10, 20), remembered(t, s, "cy"))
	bob := remembered(t, s, "bob")
	require.NotContains(t, bob, "bob-00099")
	require.GreaterOrEqual(t, len(bob), 98)
}

func TestABackfillWaitsBehindTheWall(t *testing.T) {
	ctx := context.Background()
	s := openSlot(t, open(t, Options{Archive: true}), history(t, ""))
	record(t, s, "ann", 0, 200)
	_, err := s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 150})
	require.NoError(t, err)
	until(t, "a part is filled", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Done > 10
	})
	receipt, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	require.Zero(t, receipt.InFlight, "raising the wall waited for its delivery")
	behind := untilState(t, s, report.FollowerReadOnly).Progress.Done
	again, err := s.BackfillStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, behind, again.Progress.Done)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r"})
	require.NoError(t, err)
	scope := personScope("ann")
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &scope})
	require.NoError(t, err)
	untilState(t, s, report.FollowerReadOnly)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r", Scope: &scope})
	require.NoError(t, err)
	serves(t, s, "next")
	require.Equal(t, turnIDs("ann", 0, 200), remembered(t, s, "ann"))
}

// fillable is a backend of the probe; tests set its answer to each part.
type fillable struct {
	*httptest.Server
	posts  atomic.Int64
	answer func(n int64, rw http.ResponseWriter)
}

func newFillable(t testing.TB, answer func(n int64, rw http.ResponseWriter)) *fillable {
	b := &fillable{answer: answer}
	b.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/find" {
			_, _ = rw.Write([]byte("present"))
			return
		}
		b.answer(b.posts.Add(1), rw)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *fillable) config() ProviderConfig {
	c := probeConfig(fmt.Sprintf(`{"url":%q}`, b.URL))
	c.Namespace = "next"
	return c
}

func TestABackfillBacksOffAndGoesOn(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, probeConfig(`{}`))
	for n := range 5 {
		_, err := s.RecordEvent(ctx, event(fmt.Sprint("e", n), "echo x"))
		require.NoError(t, err)
	}
	fill(t, h, 5, 6)
	require.NoError(t, archiveOne(h, event("d1", "deliver a")))
	busy := newFillable(t, func(n int64, rw http.ResponseWriter) {
		if n <= 2 {
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = rw.Write([]byte("ok"))
	})
	_, err := s.Backfill(ctx, busy.config(), BackfillOptions{})
	require.NoError(t, err)
	serves(t, s, "next")
	require.EqualValues(t, 3, busy.posts.Load(), "refused twice, then taken")
}

// While callers record continuously, a backend that processes events later always has a new one.
func TestATurnWaitsForWhatWasFilledAndNotForWhatIsStillComing(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	s := openSlot(t, open(t, Options{Archive: true}), history(t, ""))
	var ready atomic.Pointer[string]
	says := func(answer string) { ready.Store(&answer) }
	says(`{"status":"pending","event_ids":{},"method":"script"}`)
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(*ready.Load()))
	}))
	defer backend.Close()
	tell := func(id string) {
		_, err := s.RecordEvent(ctx, event(id, "echo ask-"+id+"; status queued"))
		require.NoError(t, err)
	}
	tell("e1")
	tell("e2")
	next := probeConfig(fmt.Sprintf(`{"url":%q}`, backend.URL))
	next.Namespace = "next"
	_, err := s.Backfill(ctx, next, BackfillOptions{})
	require.NoError(t, err)
	untilState(t, s, report.FollowerNotReady)
	tell("new")
	until(t, "it has the new one", func() bool {
		b, err := s.BackfillStatus(ctx)
		require.NoError(t, err)
		return b.Progress.Unseen == 3
	})
	require.Equal(t, report.FollowerNotReady, untilState(t, s, report.FollowerNotReady).State)
	says(`{"status":"degraded","event_ids":{"unknown":["new"]},"method":"script"}`) // it has the others
	serves(t, s, "next")
}

// archiveOne adds an event to the archive, as if it had been recorded.
func archiveOne(h *Host, e *abi.MemoryEvent) error {
	_, err := h.Archive().ArchiveAdd(context.Background(), &abi.EventBatch{Events: []abi.MemoryEvent{*e}})
	return err
}

func TestOpenEventsAreListedAndTheTurnAsks(t *testing.T) {
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, history(t, ""))
	record(t, s, "ann", 0, 3)
	require.NoError(t, archiveOne(h, event("bad", "fail invalid_argument never")))
	require.NoError(t, archiveOne(h, event("good", "echo x")))
	c := probeConfig(`{}`)
	c.Namespace = "next"
	_, err := s.Backfill(ctx, c, BackfillOptions{})
	require.NoError(t, err)
	b := untilState(t, s, report.FollowerAsks)
	require.EqualValues(t, 1, b.Progress.Open)
	require.Equal(t, "bad", b.Progress.OpenEvents[0].EventID)
	require.Equal(t, "refused", b.Progress.OpenEvents[0].Outcome)
	require.Contains(t, b.Progress.OpenEvents[0].Why, "never")
	require.EqualValues(t, 5, b.Progress.Events)
	require.EqualValues(t, 4, b.Progress.Done)
	_, err = s.BackfillTurn(ctx, &report.BackfillTurn{})
	require.NoError(t, err)
	untilState(t, s, report.FollowerAsks)
	_, err = s.BackfillTurn(ctx, &report.BackfillTurn{AcceptOpen: true})
	require.NoError(t, err)
	m := serves(t, s, "next")
	require.Contains(t, m.Steps[len(m.Steps)-2].Detail, "1 open")
}

func TestADamagedArchiveStopsABackfillAndNothingElse(t *testing.T) {
	t.Parallel() // it waits more than it computes
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, history(t, ""))
	fill(t, h, 0, 120)
	require.NoError(t, h.archive.Tend(ctx))
	files := segmentFiles(t, h)
	require.NotEmpty(t, files)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], whole[:len(whole)/2], 0o600))
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	b := untilState(t, s, report.FollowerWaiting)
	require.Equal(t, "archive", b.Progress.Error.Reason)
	require.Contains(t, b.Progress.Error.Hint, "archive verify")
	record(t, s, "ann", 0, 3)
	require.Equal(t, turnIDs("ann", 0, 3), remembered(t, s, "ann"))
	require.NoError(t, os.WriteFile(files[0], whole, 0o600))
	serves(t, s, "next")
	require.Len(t, remembered(t, s, "ann"), 3)
}

func TestASwapToAFollowersMemoryHasNoGap(t *testing.T) {
	brief.Leave(t)
	t.Parallel() // it waits more than it computes
	ctx := context.Background()
	h := open(t, Options{Archive: true})
	s := openSlot(t, h, history(t, ""))
	record(t, s, "ann", 0, 120)
	_, err := s.Backfill(ctx, history(t, "next"), BackfillOptions{Rate: 5})
	require.NoError(t, err)
	_, err = s.Swap(ctx, history(t, "next"))
	require.Equal(t, "behind", requireCode(t, err, abi.CodeConflict, "--backfill", "serves on").Reason)
	require.Empty(t, strings.Join(remembered(t, s, "bob"), " "))
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err, "without the limit")
	serves(t, s, "next")
	require.Equal(t, turnIDs("ann", 0, 120), remembered(t, s, "ann"))
}
