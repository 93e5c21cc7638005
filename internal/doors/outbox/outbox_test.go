package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/test/logs"
)

// slot accepts events as a host does: each id once. refuse, if set, is called first.
type slot struct {
	mu        sync.Mutex
	refuse    func(e *abi.MemoryEvent) (*abi.WriteReceipt, error)
	mode      abi.ModeReceipt
	modeError error
	took      []string
	asked     int
}

func (s *slot) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.refuse != nil {
		if receipt, err := s.refuse(e); receipt != nil || err != nil {
			return receipt, err
		}
	}
	if slices.Contains(s.took, e.EventID) {
		return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, Duplicate: true}, nil
	}
	s.took = append(s.took, e.EventID)
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func (s *slot) Mode(context.Context) (*abi.ModeReceipt, error) {
	if s.modeError != nil {
		return nil, s.modeError
	}
	return &s.mode, nil
}

func event(id, user string) *abi.MemoryEvent {
	text := "said in " + id
	return &abi.MemoryEvent{EventID: id, RunID: "run", UserID: user, SessionID: "s", TurnID: id,
		Timestamp: "2026-03-02T09:00:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

// open opens a box and keeps its log.
func open(t *testing.T, dir string) (*outbox.Box, *logs.Buffer) {
	t.Helper()
	var log logs.Buffer
	b, err := outbox.Open(dir, outbox.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})})
	require.NoError(t, err)
	return b, &log
}

func add(t *testing.T, b *outbox.Box, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, b.Add(event(id, "ann")))
	}
}

func waiting(t *testing.T, b *outbox.Box) int {
	t.Helper()
	n, err := b.Waiting()
	require.NoError(t, err)
	return n
}

func failing(code abi.Code) func(*abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return func(*abi.MemoryEvent) (*abi.WriteReceipt, error) { return nil, abi.NewError(code, "so it is") }
}

func answering(status abi.WriteStatus) func(*abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		return &abi.WriteReceipt{EventID: e.EventID, Status: status}, nil
	}
}

func TestEventsArriveOnceAndInOrder(t *testing.T) {
	b, _ := open(t, t.TempDir())
	s := new(slot)
	add(t, b, "e1", "e2", "e3")
	add(t, b, "e2") // added twice
	require.Equal(t, 3, waiting(t, b))
	require.Equal(t, outbox.Result{Delivered: 3}, b.Deliver(context.Background(), s))
	require.Equal(t, []string{"e1", "e2", "e3"}, s.took)
	require.Zero(t, waiting(t, b))
	b.Deliver(context.Background(), s)
	require.Equal(t, 3, s.asked, "what has arrived is not sent again")
}

func TestASlotThatIsDownGetsEverythingLater(t *testing.T) {
	for _, code := range []abi.Code{abi.CodeUnavailable, abi.CodeUnauthenticated, abi.CodeTimeout, abi.CodeRateLimited,
		abi.CodeDenied} {
		t.Run(string(code), func(t *testing.T) {
			dir := t.TempDir()
			b, log := open(t, dir)
			s := &slot{refuse: failing(code)}
			add(t, b, "e1", "e2")
			for range 3 {
				r := b.Deliver(context.Background(), s)
				require.Equal(t, 2, r.Waiting)
				require.Equal(t, code, abi.CodeOf(r.Err))
			}
			require.Equal(t, 3, s.asked, "the first one holds back the second")
			require.Equal(t, 1, strings.Count(log.String(), "events wait on disk"), "an outage is told of once: %s",
				log)

			again, log := open(t, dir) // another process, after this one was killed
			s.refuse = nil
			add(t, again, "e3")
			require.Equal(t, 3, again.Deliver(context.Background(), s).Delivered)
			require.Equal(t, []string{"e1", "e2", "e3"}, s.took)
			require.Empty(t, log.String())
			b.Deliver(context.Background(), s)
			require.Equal(t, []string{"e1", "e2", "e3"}, s.took)
		})
	}
}

func TestAKilledProcessThatHadDeliveredDoublesNothing(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	add(t, b, "e1")
	s := new(slot)
	// delivered, and killed before the file was removed
	_, err := s.RecordEvent(context.Background(), event("e1", "ann"))
	require.NoError(t, err)
	again, _ := open(t, dir)
	require.Equal(t, outbox.Result{Delivered: 1}, again.Deliver(context.Background(), s))
	require.Equal(t, []string{"e1"}, s.took)
}

func TestAnEventThatNoSlotTakesIsPutAsideAndStopsNoOther(t *testing.T) {
	for _, code := range []abi.Code{abi.CodeInvalidArgument, abi.CodeConflict, abi.CodeTooLarge, abi.CodeBackend,
		abi.CodeInternal} {
		t.Run(string(code), func(t *testing.T) {
			dir := t.TempDir()
			b, log := open(t, dir)
			s := &slot{}
			s.refuse = func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
				if e.EventID == "e1" {
					return nil, abi.NewError(code, "so it is")
				}
				return nil, nil
			}
			add(t, b, "e1", "e2")
			require.Equal(t, outbox.Result{Delivered: 2}, b.Deliver(context.Background(), s))
			require.Equal(t, []string{"e2"}, s.took)
			require.Contains(t, log.String(), "put aside")
			aside, err := filepath.Glob(filepath.Join(dir, "aside", "*.json"))
			require.NoError(t, err)
			require.Len(t, aside, 1)
			text, err := os.ReadFile(aside[0])
			require.NoError(t, err)
			kept := new(abi.MemoryEvent)
			require.NoError(t, abi.Unmarshal(text, kept))
			require.Equal(t, event("e1", "ann"), kept, "nothing of it is lost")
			reason, err := os.ReadFile(strings.TrimSuffix(aside[0], ".json") + ".reason.txt")
			require.NoError(t, err)
			require.Contains(t, string(reason), "so it is")
		})
	}
}

func TestOneScopeDoesNotHoldBackAnother(t *testing.T) {
	b, _ := open(t, t.TempDir())
	s := &slot{}
	s.refuse = func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		if e.EventID == "a1" {
			return nil, abi.NewError(abi.CodeTimeout, "ann's backend is slow")
		}
		return nil, nil
	}
	for _, e := range []*abi.MemoryEvent{event("a1", "ann"), event("b1", "bob"), event("a2", "ann"),
		event("b2", "bob")} {
		require.NoError(t, b.Add(e))
	}
	r := b.Deliver(context.Background(), s)
	require.Equal(t, []string{"b1", "b2"}, s.took)
	require.Equal(t, [2]int{2, 2}, [2]int{r.Delivered, r.Waiting})
}

func TestAnUncertainDeliveryIsAskedAboutAgain(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	s := &slot{refuse: answering(abi.StatusUncertain)}
	add(t, b, "e1", "e2")
	require.Equal(t, 2, b.Deliver(context.Background(), s).Waiting)
	s.refuse = nil // the slot has settled it
	require.Equal(t, 2, b.Deliver(context.Background(), s).Delivered)
	require.Equal(t, []string{"e1", "e2"}, s.took)

	s.refuse = answering(abi.StatusUncertain) // a provider that can never find out
	add(t, b, "e3")
	for range 7 {
		require.Equal(t, 1, b.Deliver(context.Background(), s).Waiting)
	}
	require.Equal(t, outbox.Result{Delivered: 1}, b.Deliver(context.Background(), s), "the eighth time it is put aside")
	aside, err := filepath.Glob(filepath.Join(dir, "aside", "*.json"))
	require.NoError(t, err)
	require.Len(t, aside, 1)
}

// TestWhatCanBeSettledIsNotPutAside: a database that restarts makes every delivery uncertain for a while.
func TestWhatCanBeSettledIsNotPutAside(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	after := int64(2000)
	s := &slot{refuse: func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain, RetryAfterMS: &after}, nil
	}}
	add(t, b, "e1")
	for range 50 {
		r := b.Deliver(context.Background(), s)
		require.Equal(t, 1, r.Waiting)
		require.Equal(t, &after, abi.AsError(r.Err).RetryAfterMS)
	}
	s.refuse = nil
	require.Equal(t, 1, b.Deliver(context.Background(), s).Delivered)
	require.Equal(t, []string{"e1"}, s.took)
}

func TestTheReadOnlyModeKeepsOutItsOwnTurnsOnly(t *testing.T) {
	b, log := open(t, t.TempDir())
	s := &slot{refuse: answering(abi.StatusSkippedReadOnly),
		mode: abi.ModeReceipt{ReadOnly: true, Since: "2026-03-02T10:00:00Z"}}
	add(t, b, "before")
	r := b.Deliver(context.Background(), s)
	require.Equal(t, 1, r.Waiting, "it happened before the mode was set")
	require.Equal(t, abi.CodeReadOnly, abi.CodeOf(r.Err))
	s.refuse, s.mode = nil, abi.ModeReceipt{}
	require.Equal(t, 1, b.Deliver(context.Background(), s).Delivered)

	s.refuse, s.mode = answering(abi.StatusSkippedReadOnly),
		abi.ModeReceipt{ReadOnly: true, Since: "2026-03-02T08:00:00Z"}
	add(t, b, "during")
	require.Equal(t, outbox.Result{Delivered: 1}, b.Deliver(context.Background(), s))
	require.Contains(t, log.String(), "was not recorded, and will not be")
	s.refuse, s.mode = nil, abi.ModeReceipt{}
	b.Deliver(context.Background(), s)
	require.Equal(t, []string{"before"}, s.took, "what was said in a test leaves no trace")
}

func TestATokenThatCannotReadTheModeTrustsTheReceipt(t *testing.T) {
	b, _ := open(t, t.TempDir())
	s := &slot{refuse: answering(abi.StatusSkippedReadOnly),
		modeError: abi.NewError(abi.CodeDenied, "a scoped token cannot read the mode").WithReason("scoped_token")}
	add(t, b, "during")
	require.Equal(t, outbox.Result{Delivered: 1}, b.Deliver(context.Background(), s))
	s.modeError = abi.NewError(abi.CodeDenied, "another refusal")
	add(t, b, "unclear")
	require.Equal(t, 1, b.Deliver(context.Background(), s).Waiting)
}

func TestAFileThatIsNoEvent(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut": `{"event_id":"e1","run_id"`,
		"another object": `{"a":1}`, "no scope": `{"event_id":"e","messages":[]}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, _ := open(t, dir)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000000001-x.json"), []byte(text), 0o600))
			// a half-written file of a killed process
			require.NoError(t, os.WriteFile(filepath.Join(dir, "new-1.tmp"), []byte(text), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.json"), []byte(text), 0o600))
			add(t, b, "e1")
			s := new(slot)
			require.Equal(t, outbox.Result{Delivered: 2}, b.Deliver(context.Background(), s))
			require.Equal(t, []string{"e1"}, s.took)
		})
	}
}

func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	b, _ := open(t, t.TempDir())
	bad := event("e1", "ann")
	bad.Timestamp = "yesterday"
	require.ErrorIs(t, b.Add(bad), &abi.Error{Code: abi.CodeInvalidArgument})
	require.NoError(t, os.RemoveAll(b.Dir()))
	require.ErrorIs(t, b.Add(event("e1", "ann")), &abi.Error{Code: abi.CodeUnavailable})
	require.ErrorIs(t, b.Deliver(context.Background(), new(slot)).Err, &abi.Error{Code: abi.CodeUnavailable})

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := outbox.Open(file, outbox.Options{})
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeUnavailable})
}

// Several processes with boxes on one folder, each of which adds, delivers, fails and is killed at any time: each event
// arrives once, in its scope's order.
func TestAnyHistoryOfSeveralProcesses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "box")
		require.NoError(rt, err)
		boxes := make([]*outbox.Box, 3)
		reopen := func(i int) {
			// a clock that stands still
			b, err := outbox.Open(dir, outbox.Options{Now: func() time.Time { return time.Unix(1, 0) }})
			require.NoError(rt, err)
			boxes[i] = b
		}
		for i := range boxes {
			reopen(i)
		}
		s := new(slot)
		var want []string
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(boxes)-1).Draw(rt, "process")
			switch rapid.SampledFrom([]string{"add", "add", "deliver", "fail", "lost answer", "killed"}).Draw(rt,
				"step") {
			case "add":
				id := fmt.Sprintf("e%d", len(want))
				want = append(want, id)
				require.NoError(rt, boxes[i].Add(event(id, "ann")))
			case "deliver":
				boxes[i].Deliver(context.Background(), s)
			case "fail":
				s.refuse = failing(abi.CodeUnavailable)
				boxes[i].Deliver(context.Background(), s)
			case "lost answer": // the slot has the event, but the process does not know
				s.refuse = func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
					if len(s.took) == 0 || s.took[len(s.took)-1] != e.EventID {
						s.took = append(s.took, e.EventID)
					}
					return nil, abi.NewError(abi.CodeTimeout, "gone")
				}
				boxes[i].Deliver(context.Background(), s)
			case "killed":
				reopen(i)
			}
			s.refuse = nil
		}
		for i := range boxes {
			boxes[i].Deliver(context.Background(), s)
		}
		require.Equal(rt, len(want), len(s.took))
		for i, id := range want {
			require.Equal(rt, id, s.took[i])
		}
	})
}

// Several processes deliver at the same time; run it with the race detector.
func TestSeveralProcessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := new(slot)
	var group sync.WaitGroup
	end := make(chan struct{})
	for p := range 4 {
		b, _ := open(t, dir)
		group.Add(1)
		go func() {
			defer group.Done()
			b.Run(context.Background(), end, s)
		}()
		for i := range 10 {
			require.NoError(t, b.Add(event(fmt.Sprintf("p%d-%d", p, i), "ann")))
		}
	}
	close(end)
	group.Wait()
	require.Len(t, s.took, 40)
	last := map[string]int{}
	for _, id := range s.took {
		var p, i int
		_, err := fmt.Sscanf(id, "p%d-%d", &p, &i)
		require.NoError(t, err)
		require.Equal(t, last[id[:2]], i, "%v", s.took)
		last[id[:2]]++
	}
}

func TestRunTriesAgainAfterPausesThatGrow(t *testing.T) {
	var pauses []time.Duration
	s := &slot{refuse: failing(abi.CodeUnavailable)}
	ctx, cancel := context.WithCancel(context.Background())
	after := func(d time.Duration) <-chan time.Time {
		if pauses = append(pauses, d); len(pauses) == 8 {
			s.mu.Lock()
			s.refuse = func(*abi.MemoryEvent) (*abi.WriteReceipt, error) { cancel(); return nil, nil }
			s.mu.Unlock()
		}
		ready := make(chan time.Time, 1)
		ready <- time.Time{}
		return ready
	}
	b, err := outbox.Open(t.TempDir(), outbox.Options{After: after})
	require.NoError(t, err)
	require.NoError(t, b.Add(event("e1", "ann")))
	b.Run(ctx, nil, s)
	second := time.Second
	// The first pause may be cut short by the previous event.
	require.Equal(t, []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 30 * second, 30 * second,
		30 * second}, pauses)
	require.Equal(t, []string{"e1"}, s.took)
}

func TestTheEndWaitsForNoSlotThatFails(t *testing.T) {
	b, _ := open(t, t.TempDir())
	add(t, b, "e1", "e2")
	end := make(chan struct{})
	close(end)
	b.Run(context.Background(), end, &slot{refuse: failing(abi.CodeUnavailable)})
	require.Equal(t, 2, waiting(t, b))
	s := new(slot)
	b.Run(context.Background(), end, s)
	require.Equal(t, []string{"e1", "e2"}, s.took)

	add(t, b, "e3")
	ctx, cancel := context.WithCancel(context.Background())
	b.Run(ctx, end, &slot{refuse: func(*abi.MemoryEvent) (*abi.WriteReceipt, error) {
		cancel() // the deadline passes during a delivery
		return nil, abi.WrapError(abi.CodeInvalidArgument, "cut off", errors.New("x"))
	}})
	require.Equal(t, 1, waiting(t, b), "an error after the end says nothing of the event")
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"event_id":"e1"}`))
	f.Add(append(abi.Marshal(event("e1", "ann")), '\n'))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		b, err := outbox.Open(dir, outbox.Options{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000000001-x.json"), text, 0o600))
		require.Equal(t, outbox.Result{Delivered: 1}, b.Deliver(context.Background(), new(slot)))
		require.Zero(t, waiting(t, b))
	})
}

func TestAFullBoxKeepsTheOldestAndSaysSo(t *testing.T) {
	b, err := outbox.Open(t.TempDir(), outbox.Options{Max: 2})
	require.NoError(t, err)
	add(t, b, "1", "2", "2")
	err = b.Add(event("3", "ann"))
	require.ErrorContains(t, err, "full, 2 events wait for the slot and are kept")
	require.Equal(t, abi.CodeTooLarge, abi.CodeOf(err))
	s := new(slot)
	require.Zero(t, b.Deliver(t.Context(), s).Waiting)
	require.Equal(t, []string{"1", "2"}, s.took)
	add(t, b, "3")
}

// While a slot hangs, each turn starts a process to deliver it: they must not pile up.
func TestOneProcessDeliversAloneAndTakesWhatComesIn(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("folders cannot be locked here")
	}
	dir := t.TempDir()
	first, _ := open(t, dir)
	add(t, first, "1")
	asked, goOn := make(chan struct{}), make(chan struct{})
	s := &slot{refuse: func(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		if e.EventID == "1" {
			close(asked)
			<-goOn
		}
		return nil, nil
	}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		first.DeliverAlone(t.Context(), s)
	}()
	<-asked
	second, _ := open(t, dir)
	add(t, second, "2")
	other := &slot{}
	second.DeliverAlone(t.Context(), other)
	require.Zero(t, other.asked, "the first one is at it")
	close(goOn)
	<-ended
	require.Equal(t, []string{"1", "2"}, s.took)
	require.Zero(t, waiting(t, first))

	add(t, second, "3")
	second.DeliverAlone(t.Context(), other)
	require.Equal(t, []string{"3"}, other.took)
}

func TestDeliveringAloneEndsWithASlotThatIsDown(t *testing.T) {
	b, _ := open(t, t.TempDir())
	add(t, b, "1", "2")
	s := &slot{refuse: func(*abi.MemoryEvent) (*abi.WriteReceipt, error) {
		return nil, abi.NewError(abi.CodeUnavailable, "down")
	}}
	b.DeliverAlone(t.Context(), s)
	require.Equal(t, 1, s.asked)
	require.Equal(t, 2, waiting(t, b))
}
