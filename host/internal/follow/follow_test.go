package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/state"
)

// notebook is a memory that records what it receives.
type notebook struct {
	mu sync.Mutex
	// pages has each person's event ids in order of arrival; batches has the sizes of deliveries.
	pages   map[string][]string
	batches []int
	resets  []string
	// readOnly has the persons whose scopes are read-only; "" means all.
	readOnly map[string]bool
	// operations are its operations besides record_event.
	operations []string
	// answer returns the answer to the nth delivery; nil, or a nil result, means committed.
	answer func(n int, e *abi.MemoryEvent) *abi.ReceiptOrError
	sent   int // number of events in all deliveries
	// unseen is how many events are not ready; awaited is how many of them were already there when it had everything.
	unseen, awaited int64
	// looks counts how often it was asked what is not ready; each time takes slow.
	looks int
	slow  time.Duration
	// notReady is why it cannot be opened.
	notReady error
	turn     func(ctx context.Context) (bool, error)
}

func (m *notebook) Open(context.Context) error { return m.notReady }

func (m *notebook) Has(op string) bool { return slices.Contains(m.operations, op) }

func (m *notebook) Scope(e *abi.MemoryEvent) (abi.MemoryScope, error) {
	return abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID}, nil
}

func (m *notebook) TestSession(session string) bool { return session == "test" }

func (m *notebook) ReadOnly(e *abi.MemoryEvent) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readOnly[""] || e != nil && m.readOnly[e.UserID], nil
}

func (m *notebook) Busy() bool { return false }

func (m *notebook) RecordEvents(_ context.Context, list *abi.EventBatch) (*abi.BatchReceipts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	receipts := new(abi.BatchReceipts)
	m.batches = append(m.batches, len(list.Events))
	for i := range list.Events {
		e := &list.Events[i]
		m.sent++
		var answer *abi.ReceiptOrError
		if m.answer != nil {
			answer = m.answer(m.sent, e)
		}
		if answer == nil {
			answer = &abi.ReceiptOrError{Receipt: &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}}
			if !slices.Contains(m.pages[e.UserID], e.EventID) { // it behaves like a ledger
				m.pages[e.UserID] = append(m.pages[e.UserID], e.EventID)
			}
		}
		receipts.Receipts = append(receipts.Receipts, *answer)
	}
	return receipts, nil
}

func (m *notebook) Reset(_ context.Context, scope abi.MemoryScope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pages, scope.PersonaID)
	m.resets = append(m.resets, scope.PersonaID)
	return nil
}

func (m *notebook) Outstanding(_ context.Context, listed []report.OpenEvent) ([]report.OpenEvent, int64, error) {
	m.mu.Lock()
	m.looks++
	m.mu.Unlock()
	if m.slow > 0 {
		<-time.After(m.slow)
	}
	return listed, m.unseen, nil
}

func (m *notebook) Awaited(context.Context, []report.OpenEvent) (int64, error) { return m.awaited, nil }

func (m *notebook) Retrieve(_ context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	if r.Query == "fail" {
		return nil, abi.NewError(abi.CodeTimeout, "too slow")
	}
	return result("b", "c", "d"), nil
}

func (m *notebook) TakeTurn(ctx context.Context) (bool, error) { return m.turn(ctx) }

// result is based on events, one item each.
func result(events ...string) *abi.RetrieveResult {
	r := &abi.RetrieveResult{FormattedContext: "text"}
	for _, id := range events {
		r.Evidence = append(r.Evidence, abi.Evidence{SourceEventIDs: []string{id}})
	}
	return r
}

// room is a data folder with a notebook that is filled from its archive.
type room struct {
	*Store
	memory *notebook
	// failing is why the next commit of a follower fails.
	failing error
}

func newRoom(t *testing.T, archived bool) *room {
	dir := t.TempDir()
	store, err := state.Open(dir, state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	kept, err := archive.Open(t.Context(), archive.Options{On: archived, Dir: filepath.Join(dir, "archive"), Store: store,
		Now: time.Now, Warn: hclog.NewNullLogger().Warn,
		Forgotten: func(context.Context, *abi.MemoryEvent) (bool, error) { return false, nil }})
	require.NoError(t, err)
	t.Cleanup(func() {
		kept.Close()
		require.NoError(t, store.Close())
	})
	r := &room{memory: &notebook{pages: map[string][]string{}, readOnly: map[string]bool{}}}
	commit := func(ctx context.Context, b *state.Batch) error {
		if err := r.failing; err != nil {
			r.failing = nil
			return err
		}
		_, err := store.Commit(ctx, b)
		return err
	}
	r.Store = NewStore(Options{State: store, Commit: commit, Archive: kept, Logger: hclog.NewNullLogger(), Now: time.Now,
		QueueBytes: 8 << 10})
	return r
}

// testEvent returns the nth event of a person.
func testEvent(person string, n int) abi.MemoryEvent {
	text := fmt.Sprintf("%s says %d", person, n)
	return abi.MemoryEvent{EventID: fmt.Sprintf("%s-%03d", person, n), RunID: "r", UserID: person, SessionID: "s",
		Timestamp: "2026-01-01T00:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

// ids returns the ids of a person's events in a range of numbers.
func ids(person string, from, to int) (list []string) {
	for ; from < to; from++ {
		list = append(list, testEvent(person, from).EventID)
	}
	return list
}

// accept adds events of a person to the archive, as if the serving memory had accepted them.
func (r *room) accept(t *testing.T, person string, from, to int) {
	var events []abi.MemoryEvent
	for ; from < to; from++ {
		events = append(events, testEvent(person, from))
	}
	r.acceptAll(t, events...)
}

func (r *room) acceptAll(t *testing.T, events ...abi.MemoryEvent) {
	var entries []archive.Entry
	for i := range events {
		entries = append(entries, archive.Entry{Provider: "serving", Queued: !r.Archive.On,
			Event: json.RawMessage(abi.Marshal(&events[i]))})
	}
	var b state.Batch
	done, err := r.Archive.Add(&b, entries)
	require.NoError(t, err)
	_, err = r.State.Commit(t.Context(), &b)
	done(err == nil)
	require.NoError(t, err)
}

// follower creates a follower of the room's memory, or resumes where an earlier one was.
func (r *room) follower(t *testing.T, role string) *Follower {
	key := Key{1}
	record, err := r.Record(t.Context(), key)
	require.NoError(t, err)
	if record == nil {
		record, err = r.Begin(t.Context(), Record{Role: role, Provider: "notebook"}, false)
		require.NoError(t, err)
	}
	f, err := New(t.Context(), r.Store, Config{Key: key, Memory: r.memory, Record: *record, Lanes: 2, SamplePercent: 50})
	require.NoError(t, err)
	return f
}

// fill runs a follower until nothing is left.
func fill(t *testing.T, f *Follower) {
	for more := true; more; {
		var err error
		more, err = f.work(t.Context())
		require.NoError(t, err)
		record := f.Record()
		if _, people := record.waitingEvents(); people > 0 && !more {
			at, _ := f.nextDue()
			require.NoError(t, pause.For(t.Context(), time.Until(at)))
			more = true
		}
	}
}

// stateOf runs the checks of a follower that has caught up, and returns its state and progress.
func stateOf(t *testing.T, f *Follower) (report.FollowerState, report.FollowerProgress) {
	f.caughtUp(t.Context())
	now, progress, err := f.Progress(t.Context())
	require.NoError(t, err)
	return now, progress
}

func TestEachScopesEventsArriveInOrderAndOnce(t *testing.T) {
	r := newRoom(t, true)
	r.memory.operations = []string{abi.OpRecordEvents}
	for n := range 150 {
		r.accept(t, "ann", n, n+1)
		r.accept(t, "bob", n, n+1)
	}
	test := testEvent("ann", 999)
	test.SessionID = "test"
	r.acceptAll(t, test)
	f := r.follower(t, report.RoleShadow)
	more, err := f.work(t.Context()) // one page; the next one is delivered by another follower
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, slices.Concat(r.memory.pages["ann"], r.memory.pages["bob"]), PageEvents)
	f = r.follower(t, report.RoleShadow)
	fill(t, f)
	r.accept(t, "ann", 150, 160)
	fill(t, f)
	require.Equal(t, ids("ann", 0, 160), r.memory.pages["ann"])
	require.Equal(t, ids("bob", 0, 150), r.memory.pages["bob"])
	require.Equal(t, batchEvents, slices.Max(r.memory.batches))
	now, p := stateOf(t, f)
	require.Equal(t, report.FollowerReady, now)
	require.EqualValues(t, 311, p.Events)
	require.EqualValues(t, 310, p.Done)
	require.EqualValues(t, 1, p.LeftOut, "of a test session")
}

func TestAPageWhosePositionWasNotKeptIsDeliveredAgain(t *testing.T) {
	r := newRoom(t, true)
	r.accept(t, "ann", 0, 40)
	f := r.follower(t, report.RoleBackfill)
	r.failing = errors.New("killed")
	_, err := f.work(t.Context())
	require.EqualError(t, err, "killed")
	require.Zero(t, f.Record().Position)
	fill(t, f)
	require.Equal(t, ids("ann", 0, 40), r.memory.pages["ann"])
	require.Equal(t, 80, r.memory.sent)
	require.EqualValues(t, 40, f.Record().Done)
}

func TestAScopeThatIsReadOnlyHoldsBackItsOwnEvents(t *testing.T) {
	r := newRoom(t, true)
	r.memory.readOnly["ann"] = true
	r.accept(t, "ann", 0, PageEvents)
	r.accept(t, "bob", 0, 10)
	r.accept(t, "ann", PageEvents, PageEvents+10)
	f := r.follower(t, report.RoleBackfill)
	fill(t, f)
	require.Empty(t, r.memory.pages["ann"])
	require.Equal(t, ids("bob", 0, 10), r.memory.pages["bob"])
	now, p := stateOf(t, f)
	require.Equal(t, report.FollowerReadOnly, now)
	require.EqualValues(t, PageEvents+10, p.Held)
	require.EqualValues(t, PageEvents+20, p.Events)

	f = r.follower(t, report.RoleBackfill)
	r.memory.readOnly["ann"] = false
	fill(t, f)
	require.Equal(t, ids("ann", 0, PageEvents+10), r.memory.pages["ann"])
	require.Empty(t, f.Record().Held)
	require.EqualValues(t, PageEvents+20, f.Record().Done)
}

func TestAMemoryThatServesWithoutHeldEventsSaysWhose(t *testing.T) {
	r := newRoom(t, true)
	r.memory.readOnly["ann"] = true
	r.accept(t, "bob", 0, 3)
	r.accept(t, "ann", 0, 5)
	f := r.follower(t, report.RoleBackfill)
	fill(t, f)
	_, err := f.Finish(t.Context())
	require.Equal(t, "open", abi.AsError(err).Reason)
	var detail string
	r.memory.turn = func(ctx context.Context) (served bool, err error) {
		caught, err := f.CatchUp(ctx)
		require.True(t, caught)
		require.NoError(t, err)
		detail, err = f.Finish(ctx)
		return true, err
	}
	f.WantTurn(true)
	now, _ := stateOf(t, f)
	require.Equal(t, report.FollowerServes, now)
	require.Contains(t, detail, `3 events since`)
	require.Contains(t, detail, `5 not delivered because their scopes are read-only: 5 of run "r", user "ann" from `+
		`number 4 on`)
	records, err := r.Records(t.Context())
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestWhatIsRefusedOrUncertainIsOpenUntilItArrives(t *testing.T) {
	r := newRoom(t, true)
	none := int64(0)
	r.memory.operations = []string{abi.OpFindEvent}
	r.memory.answer = func(_ int, e *abi.MemoryEvent) *abi.ReceiptOrError {
		switch e.EventID {
		case "ann-001":
			return &abi.ReceiptOrError{EventID: e.EventID, Error: abi.NewError(abi.CodeInvalidArgument, "never")}
		case "ann-002":
			return &abi.ReceiptOrError{Receipt: &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain,
				RetryAfterMS: &none, Warnings: []string{"who knows"}}}
		}
		return nil
	}
	r.accept(t, "ann", 0, 4)
	f := r.follower(t, report.RoleBackfill)
	fill(t, f)
	require.Equal(t, 1+1+mostTries+1, r.memory.sent, "what is uncertain was tried again")
	now, p := stateOf(t, f)
	require.Equal(t, report.FollowerAsks, now)
	require.EqualValues(t, 4, p.Events)
	require.EqualValues(t, 2, p.Open)
	require.Equal(t, "refused", p.OpenEvents[0].Outcome)
	require.Equal(t, "invalid_argument: never", p.OpenEvents[0].Why)
	require.Equal(t, "uncertain", p.OpenEvents[1].Outcome)
	require.Equal(t, "who knows", p.OpenEvents[1].Why)
	stopped, err := r.Stopped(t.Context(), f.Key(), &Record{Done: 2, Position: 4})
	require.NoError(t, err)
	require.EqualValues(t, 2, stopped.Open, "though its memory is not loaded")

	r.memory.answer = nil
	now, p = stateOf(t, f)
	require.Equal(t, report.FollowerAsks, now, "what was refused is not tried again by itself")
	require.EqualValues(t, 1, p.Open)
	r.memory.turn = func(context.Context) (bool, error) { return false, nil }
	f.WantTurn(false)
	now, p = stateOf(t, f)
	require.Equal(t, report.FollowerReady, now)
	require.Zero(t, p.Open)
	require.EqualValues(t, 4, p.Done)
	require.ElementsMatch(t, ids("ann", 0, 4), r.memory.pages["ann"])
}

func TestAMemoryThatRefusesForNowIsAskedAgain(t *testing.T) {
	for name, refusal := range map[string]abi.Error{
		"too many requests": {Code: abi.CodeRateLimited}, "no credentials": {Code: abi.CodeUnauthenticated},
		"an answer of 503": {Code: abi.CodeBackend, Native: &abi.NativeError{Status: status(503)}},
		"an answer of 429": {Code: abi.CodeBackend, Native: &abi.NativeError{Status: status(429)}}} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, true)
			refusal.RetryAfterMS = new(int64)
			r.memory.answer = func(n int, e *abi.MemoryEvent) *abi.ReceiptOrError {
				if n > 2*mostTries {
					return nil
				}
				return &abi.ReceiptOrError{EventID: e.EventID, Error: &refusal}
			}
			r.accept(t, "ann", 0, 3)
			fill(t, r.follower(t, report.RoleBackfill))
			require.Equal(t, ids("ann", 0, 3), r.memory.pages["ann"])
		})
	}
}

func TestATurnDoesNotWaitForEventsThatAreStillComing(t *testing.T) {
	r := newRoom(t, true)
	r.memory.unseen, r.memory.awaited = 3, 1
	served := 0
	r.memory.turn = func(context.Context) (bool, error) { served++; return true, nil }
	r.accept(t, "ann", 0, 3)
	f := r.follower(t, report.RoleBackfill)
	fill(t, f)
	now, p := stateOf(t, f)
	require.Equal(t, report.FollowerNotReady, now)
	require.EqualValues(t, 3, p.Unseen)
	require.Zero(t, served)
	r.memory.awaited = 0
	f.nextLook = time.Time{}
	f.caughtUp(t.Context())
	require.Equal(t, 1, served, "what is not ready was recorded since")
}

// Checking a hundred thousand events that are not ready takes a while, and each record wakes the follower.
func TestAMemoryThatIsNotReadyIsNotLookedAtByEachRecord(t *testing.T) {
	r := newRoom(t, true)
	r.memory.unseen, r.memory.awaited, r.memory.slow = 3, 3, 500*time.Millisecond
	r.memory.turn = func(context.Context) (bool, error) { return true, nil }
	f := r.follower(t, report.RoleBackfill)
	var idle time.Duration
	for n := range 20 {
		r.accept(t, "ann", n, n+1)
		fill(t, f)
		_, idle = f.caughtUp(t.Context())
	}
	require.Equal(t, 1, r.memory.looks)
	require.Greater(t, idle, time.Second, "twenty times what the look took, less what has gone by since")
	require.Equal(t, ids("ann", 0, 20), r.memory.pages["ann"])
	f.nextLook = time.Time{}
	r.memory.slow = 0
	_, idle = f.caughtUp(t.Context())
	require.Equal(t, 2, r.memory.looks)
	require.LessOrEqual(t, idle, time.Second)
}

// A backend that is restarting cannot say whether it has what it was just sent.
func TestWhatIsUncertainWaitsForABackendThatCannotBeReached(t *testing.T) {
	r := newRoom(t, true)
	r.memory.operations = []string{abi.OpFindEvent}
	down := abi.Marshal(abi.NewError(abi.CodeUnavailable, "connection refused"))
	now := int64(0)
	r.memory.answer = func(n int, e *abi.MemoryEvent) *abi.ReceiptOrError {
		if n > 2*mostTries {
			return nil
		}
		return &abi.ReceiptOrError{Receipt: &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain,
			RetryAfterMS: &now, Trace: &abi.Trace{Details: map[string]abi.Raw{"error": down}}}}
	}
	r.accept(t, "ann", 0, 3)
	f := r.follower(t, report.RoleBackfill)
	fill(t, f)
	require.Equal(t, ids("ann", 0, 3), r.memory.pages["ann"], "in order")
	_, p, err := f.Progress(t.Context())
	require.NoError(t, err)
	require.Zero(t, p.Open)
	require.EqualValues(t, 3, p.Done)
}

func status(n int64) *int64 { return &n }

func TestAResetHoldsForAFollowerToo(t *testing.T) {
	r := newRoom(t, true)
	r.accept(t, "ann", 0, 5)
	require.NoError(t, r.Archive.NoteErased(t.Context(), abi.MemoryScope{RunID: "r", PersonaID: "ann"}))
	f := r.follower(t, report.RoleBackfill)
	r.accept(t, "ann", 5, 8)
	r.accept(t, "bob", 0, 3)
	fill(t, f)
	require.Equal(t, ids("ann", 5, 8), r.memory.pages["ann"])
	require.Empty(t, r.memory.resets, "it began after that, and had nothing")
	require.NoError(t, r.Archive.NoteErased(t.Context(), abi.MemoryScope{RunID: "r", PersonaID: "ann"}))
	r.accept(t, "ann", 8, 10)
	fill(t, f)
	require.Equal(t, []string{"ann"}, r.memory.resets)
	require.Equal(t, ids("ann", 8, 10), r.memory.pages["ann"])
	require.Equal(t, ids("bob", 0, 3), r.memory.pages["bob"])
}

func TestWithoutAnArchiveTheQueueIsEmptiedAndBounded(t *testing.T) {
	r := newRoom(t, false)
	f := r.follower(t, report.RoleShadow)
	r.accept(t, "ann", 0, 10)
	fill(t, f)
	require.Zero(t, r.Archive.OpenBytes(), "it has everything")

	r.memory.notReady = errors.New("it does not run")
	for n := 10; !r.TooLong(); n++ {
		r.accept(t, "ann", n, n+1)
	}
	_, err := f.work(t.Context())
	require.EqualError(t, err, "it does not run")
	behind, err := f.Behind(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Cut(t.Context(), []*Follower{f}))
	require.LessOrEqual(t, r.Archive.OpenBytes(), r.QueueBytes)
	_, p := stateOf(t, f)
	require.Positive(t, p.Dropped)
	require.Equal(t, 10+behind, p.Events, "what was dropped is counted")
	r.memory.notReady = nil
	fill(t, f)
	require.EqualValues(t, 10+behind, f.Record().Done+f.Record().Dropped)
	require.Len(t, r.memory.pages["ann"], int(f.Record().Done))
	detail, err := f.Finish(t.Context())
	require.NoError(t, err)
	require.Contains(t, detail, fmt.Sprintf("%d dropped from the queue", p.Dropped))
}

func TestAFollowerStopsAndGoesOn(t *testing.T) {
	r := newRoom(t, true)
	r.accept(t, "ann", 0, 3)
	f := r.follower(t, report.RoleShadow)
	f.Start()
	ready := func() bool {
		now, _, err := f.Progress(t.Context())
		require.NoError(t, err)
		return now == report.FollowerReady && f.Record().Position == r.Archive.Settled()
	}
	require.Eventually(t, ready, 30*time.Second, time.Millisecond)
	f.End(t.Context())
	now, _, err := f.Progress(t.Context())
	require.NoError(t, err)
	require.Equal(t, report.FollowerStopped, now)
	r.accept(t, "ann", 3, 6)
	f.Wake()
	f.Start()
	require.Eventually(t, ready, 30*time.Second, time.Millisecond)
	f.End(t.Context())
	require.Equal(t, ids("ann", 0, 6), r.memory.pages["ann"])
}

func TestAShadowIsAskedItsShareAndItsAnswersAreCompared(t *testing.T) {
	r := newRoom(t, true)
	now := time.Now()
	r.Now = func() time.Time { return now }
	f := r.follower(t, report.RoleShadow)
	asked := 0
	for n := range 10 {
		if !f.Sampled() {
			continue
		}
		asked++
		request := &abi.RetrieveRequest{Query: fmt.Sprint("question ", n), Scope: abi.MemoryScope{RunID: "r",
			PersonaID: map[bool]string{true: "ann", false: "bob"}[n < 5]}}
		if n == 9 {
			request.Query = "fail"
		}
		require.NoError(t, f.askOne(t.Context(), NewQuestion(request, result("a", "b", "c"), "serving", time.Second, now)))
	}
	require.Equal(t, 5, asked)
	shadow, err := f.Shadow(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 50, shadow.SamplePercent)
	require.EqualValues(t, 5, shadow.Report.Answers)
	require.Equal(t, map[string]int64{"timeout": 1}, shadow.Report.Errors)
	require.InDelta(t, 0.5, *shadow.Report.OverlapMean, 1e-9, "b and c of a, b, c and d")
	require.InDelta(t, 1000, *shadow.Report.ServingP50MS, 1e-9)

	page, err := r.Answers(t.Context(), &report.ShadowAnswersRequest{Limit: 2}, f.Retention())
	require.NoError(t, err)
	require.Equal(t, []string{"fail", "question 7"}, []string{page.Answers[0].Query, page.Answers[1].Query})
	page, err = r.Answers(t.Context(), &report.ShadowAnswersRequest{Before: page.Next}, f.Retention())
	require.NoError(t, err)
	require.Len(t, page.Answers, 3)
	require.Empty(t, page.Next)

	require.NoError(t, r.ForgetAnswers(t.Context(), abi.MemoryScope{RunID: "r", PersonaID: "ann"}))
	late := NewQuestion(&abi.RetrieveRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"}}, result(), "serving", 0,
		now.Add(-time.Minute))
	require.NoError(t, f.askOne(t.Context(), late))
	page, err = r.Answers(t.Context(), new(report.ShadowAnswersRequest), f.Retention())
	require.NoError(t, err)
	for _, answer := range page.Answers {
		require.Equal(t, "bob", answer.Scope.PersonaID)
	}
	now = now.Add(f.Retention() + time.Second)
	shadow, err = f.Shadow(t.Context())
	require.NoError(t, err)
	require.Zero(t, shadow.Report.Answers, "older than the retention")
}
