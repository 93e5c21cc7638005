package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/resend"
	"github.com/memhost/memhost/internal/text/convert"
)

// fakeSlot records what it receives. answer, if set, may refuse an event: try counts its tries from 1.
type fakeSlot struct {
	host.Contract
	batches bool
	answer  func(e *abi.MemoryEvent, try int) (*abi.WriteReceipt, error)
	whole   func(call int) error // refuses a whole call of record_events

	got   []string
	tries map[string]int
	calls int
	known map[string]bool
}

func (s *fakeSlot) Capabilities(context.Context) (*report.Capabilities, error) {
	c := &report.Capabilities{}
	if s.batches {
		c.Capabilities = []string{abi.OpRecordEvents}
	}
	return c, nil
}

func (s *fakeSlot) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	if s.tries == nil {
		s.tries, s.known = map[string]int{}, map[string]bool{}
	}
	s.tries[e.EventID]++
	if s.answer != nil {
		if r, err := s.answer(e, s.tries[e.EventID]); r != nil || err != nil {
			return r, err
		}
	}
	r := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, Duplicate: s.known[e.EventID]}
	if !r.Duplicate {
		s.got = append(s.got, e.EventID)
	}
	s.known[e.EventID] = true
	return r, nil
}

func (s *fakeSlot) RecordEvents(ctx context.Context, b *abi.EventBatch) (*abi.BatchReceipts, error) {
	s.calls++
	if s.whole != nil {
		if err := s.whole(s.calls); err != nil {
			return nil, err
		}
	}
	out := &abi.BatchReceipts{}
	for i := range b.Events {
		r, err := s.RecordEvent(ctx, &b.Events[i])
		out.Receipts = append(out.Receipts, abi.ReceiptOrError{Receipt: r, EventID: b.Events[i].EventID,
			Error: abi.AsError(err)})
	}
	return out, nil
}

func eventLine(id string) string {
	return fmt.Sprintf(`{"event_id":%q,"run_id":"r","user_id":"u","session_id":"s","turn_id":"t","timestamp":"2026-01-01T00:00:00Z","messages":[{"role":"user","content":"x"}]}`, id)
}

func eventLines(n int) (lines []string, ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("e%03d", i+1))
		lines = append(lines, eventLine(ids[i]))
	}
	return lines, ids
}

// recordWith runs a recorder over lines and returns it with its error, its pauses and its messages.
func recordWith(t require.TestingT, slot *fakeSlot, text io.Reader, change func(*Recorder)) (r *Recorder,
	pauses []time.Duration, said string, stopped error) {
	var stderr bytes.Buffer
	in, err := convert.NewReader(text, convert.Options{})
	require.NoError(t, err)
	r = &Recorder{Slot: slot, Retries: 3, Out: cli.NewOutput(cli.System{Stdout: io.Discard, Stderr: &stderr}),
		Sum:   NewSummary(),
		Sleep: func(_ context.Context, d time.Duration) { pauses = append(pauses, d) }}
	r.Batch = BatchSize(context.Background(), slot)
	if change != nil {
		change(r)
	}
	stopped = r.Run(context.Background(), context.Background(), in)
	return r, pauses, stderr.String(), stopped
}

func TestEventsArriveOnceAndInOrder(t *testing.T) {
	lines, ids := eventLines(100)
	for _, batches := range []bool{true, false} {
		slot := &fakeSlot{batches: batches}
		r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
		require.NoError(t, err)
		require.Equal(t, ids, slot.got)
		require.Equal(t, 100, r.Sum.Recorded)
		require.Equal(t, 100, r.Sum.LastLine)
		require.Equal(t, cli.ExitOK, r.Sum.ExitCode(err))
		if batches {
			require.LessOrEqual(t, slot.calls, 100)
		}
		r, _, _, err = recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
		require.NoError(t, err)
		require.Equal(t, 100, r.Sum.Duplicates)
		require.Equal(t, ids, slot.got)
	}
}

func TestWhatFailsForNowIsTriedAgainAndNothingOvertakesIt(t *testing.T) {
	lines, ids := eventLines(10)
	slot := &fakeSlot{answer: func(e *abi.MemoryEvent, try int) (*abi.WriteReceipt, error) {
		if e.EventID == "e004" && try < 3 {
			limited := abi.NewError(abi.CodeRateLimited, "slow down")
			limited.RetryAfterMS = new(int64(1500))
			return nil, limited
		}
		return nil, nil
	}}
	r, pauses, said, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.NoError(t, err)
	require.Equal(t, ids, slot.got)
	require.Equal(t, []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond}, pauses)
	require.Contains(t, said, "line 4: slow down; trying again in 1.5s (1 of 3)")
	require.Equal(t, 10, r.Sum.Recorded)
}

func TestPatienceHasAnEnd(t *testing.T) {
	lines, _ := eventLines(10)
	down := func(*abi.MemoryEvent, int) (*abi.WriteReceipt, error) {
		return nil, abi.NewError(abi.CodeUnavailable, "backend is down")
	}
	for _, batches := range []bool{true, false} {
		r, pauses, _, err := recordWith(t, &fakeSlot{batches: batches, answer: down},
			strings.NewReader(strings.Join(lines, "\n")), nil)
		require.ErrorContains(t, err, "line 1: backend is down")
		require.Equal(t, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, pauses)
		require.Equal(t, cli.ExitRetry, r.Sum.ExitCode(err))
		require.Equal(t, 1, r.Sum.StoppedAt)
		require.Zero(t, r.Sum.Recorded)
	}
}

func TestAskedPausesAreBounded(t *testing.T) {
	e := abi.NewError(abi.CodeRateLimited, "later")
	e.RetryAfterMS = new(int64(time.Hour / time.Millisecond))
	require.Equal(t, resend.LongestAsked, resend.Pause(0, e))
	require.Equal(t, resend.LongestPause, resend.Pause(40, abi.NewError(abi.CodeTimeout, "")))
}

func TestAnEventThatFailsForGoodIsNamedAndTheOthersGoOn(t *testing.T) {
	lines, _ := eventLines(40)
	slot := &fakeSlot{batches: true, answer: func(e *abi.MemoryEvent, _ int) (*abi.WriteReceipt, error) {
		if e.EventID == "e007" {
			return nil, abi.NewError(abi.CodeConflict, "event_id: was recorded before with other content")
		}
		return nil, nil
	}}
	r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.NoError(t, err)
	require.Equal(t, 39, r.Sum.Recorded)
	require.Equal(t, 1, r.Sum.Failed)
	require.Equal(t, 7, r.Sum.Failures[0].Line)
	require.Equal(t, "e007", r.Sum.Failures[0].EventID)
	require.Equal(t, cli.ExitPartly, r.Sum.ExitCode(err))
}

func TestForgottenEventsAreLeftOutAndAreNoFailure(t *testing.T) {
	lines, _ := eventLines(40)
	slot := &fakeSlot{batches: true, answer: func(e *abi.MemoryEvent, _ int) (*abi.WriteReceipt, error) {
		if e.EventID < "e030" {
			return nil, abi.NewError(abi.CodeConflict, "event_id: was forgotten").WithReason("forgotten")
		}
		return nil, nil
	}}
	r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.NoError(t, err)
	require.Equal(t, "recorded 11 events, 29 forgotten and left out (0.0 s) for run \"r\", user \"u\"", r.Sum.Text())
	require.Equal(t, cli.ExitOK, r.Sum.ExitCode(err))
}

func TestManyFailuresInARowStop(t *testing.T) {
	lines, _ := eventLines(100)
	broken := func(*abi.MemoryEvent, int) (*abi.WriteReceipt, error) {
		return nil, abi.NewError(abi.CodeInternal, "trapped")
	}
	r, _, _, err := recordWith(t, &fakeSlot{answer: broken}, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.ErrorContains(t, err, fmt.Sprintf("line %d: trapped", resend.MostFailedInRow))
	require.Equal(t, resend.MostFailedInRow, r.Sum.Failed)
	r, _, _, err = recordWith(t, &fakeSlot{answer: broken}, strings.NewReader(strings.Join(lines, "\n")),
		func(r *Recorder) { r.keepGoing = true })
	require.NoError(t, err)
	require.Equal(t, 100, r.Sum.Failed)
	require.Equal(t, cli.ExitFailed, r.Sum.ExitCode(err))
}

func TestARefusalOfTheSlotStopsAtOnce(t *testing.T) {
	lines, _ := eventLines(10)
	for _, code := range []abi.Code{abi.CodeUnauthenticated, abi.CodeDenied, abi.CodeUnsupported} {
		slot := &fakeSlot{answer: func(*abi.MemoryEvent, int) (*abi.WriteReceipt, error) {
			return nil, abi.NewError(code, "no")
		}}
		_, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), func(r *Recorder) {
			r.keepGoing = true
		})
		require.Equal(t, code, abi.CodeOf(err))
		require.Len(t, slot.tries, 1)
	}
}

func TestACallThatIsTooLargeIsTakenApart(t *testing.T) {
	lines, ids := eventLines(70)
	slot := &fakeSlot{batches: true, whole: func(int) error { return abi.NewError(abi.CodeTooLarge, "too large") }}
	r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.NoError(t, err)
	require.Equal(t, ids, slot.got)
	require.Equal(t, 70, r.Sum.Recorded)
}

func TestABadLineOfAStreamStopsBehindTheGoodOnes(t *testing.T) {
	text := eventLine("a") + "\n" + eventLine("b") + "\n{\n" + eventLine("c")
	for _, batches := range []bool{true, false} {
		slot := &fakeSlot{batches: batches}
		r, _, _, err := recordWith(t, slot, strings.NewReader(text), nil)
		require.ErrorContains(t, err, "line 3: ")
		require.Equal(t, cli.ExitUsage, r.Sum.ExitCode(err))
		require.Equal(t, []string{"a", "b"}, slot.got)
		slot = &fakeSlot{batches: batches}
		r, _, _, err = recordWith(t, slot, strings.NewReader(text), func(r *Recorder) { r.keepGoing = true })
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, slot.got)
		require.Equal(t, 1, r.Sum.BadLines)
		require.Equal(t, cli.ExitPartly, r.Sum.ExitCode(err))
	}
}

// A pipe that stays open: what has arrived is sent, without waiting for more.
func TestAnOpenPipeDelaysNothing(t *testing.T) {
	in, out := io.Pipe()
	seen := make(chan string, 10)
	slot := &fakeSlot{batches: true, answer: func(e *abi.MemoryEvent, _ int) (*abi.WriteReceipt, error) {
		seen <- e.EventID
		return nil, nil
	}}
	reader, err := convert.NewReader(in, convert.Options{})
	require.NoError(t, err)
	soft, interrupt := context.WithCancel(context.Background())
	r := &Recorder{Slot: slot, Batch: maxBatch, Out: cli.NewOutput(cli.System{Stdout: io.Discard, Stderr: io.Discard}),
		Sum: NewSummary(), Sleep: func(context.Context, time.Duration) {}}
	ended := make(chan error)
	go func() { ended <- r.Run(soft, context.Background(), reader) }()
	for _, id := range []string{"a", "b"} {
		_, err := io.WriteString(out, eventLine(id)+"\n")
		require.NoError(t, err)
		require.Equal(t, id, <-seen)
	}
	interrupt() // while the reader waits for a line that never comes
	require.ErrorIs(t, <-ended, cli.ErrInterrupted)
	require.Equal(t, cli.ExitInterrupted, r.Sum.ExitCode(cli.ErrInterrupted))
	require.NoError(t, out.Close())
}

func TestAnInterruptionEndsBehindTheCallUnderWay(t *testing.T) {
	lines, _ := eventLines(100)
	soft, interrupt := context.WithCancel(context.Background())
	slot := &fakeSlot{answer: func(e *abi.MemoryEvent, _ int) (*abi.WriteReceipt, error) {
		if e.EventID == "e005" {
			interrupt()
		}
		return nil, nil
	}}
	in, err := convert.NewReader(strings.NewReader(strings.Join(lines, "\n")), convert.Options{})
	require.NoError(t, err)
	r := &Recorder{Slot: slot, Batch: 1, Out: cli.NewOutput(cli.System{Stdout: io.Discard, Stderr: io.Discard}),
		Sum: NewSummary()}
	require.ErrorIs(t, r.Run(soft, context.Background(), in), cli.ErrInterrupted)
	require.Equal(t, 5, r.Sum.Recorded)
	require.Equal(t, 5, r.Sum.LastLine)
}

// An uncertain event is recorded again if its receipt says that this can settle it, up to --retries times.
func TestWhatIsUncertainIsRecordedAgain(t *testing.T) {
	for settles, want := range map[int]recordSummary{2: {Recorded: 3}, 100: {Recorded: 2, Uncertain: 1}} {
		lines, ids := eventLines(3)
		slot := &fakeSlot{answer: func(e *abi.MemoryEvent, try int) (*abi.WriteReceipt, error) {
			if e.EventID == "e002" && try <= settles {
				return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain,
					RetryAfterMS: new(int64(3000))}, nil
			}
			return nil, nil
		}}
		r, pauses, said, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
		require.NoError(t, err)
		require.Equal(t, want.Recorded, r.Sum.Recorded)
		require.Equal(t, want.Uncertain, r.Sum.Uncertain)
		require.Contains(t, said, "line 2: event e002 is uncertain; trying again in 3s (1 of 3)")
		require.Equal(t, 3*time.Second, pauses[0])
		require.Len(t, pauses, min(settles, 3))
		require.Equal(t, ids[len(ids)-1], slot.got[len(slot.got)-1])
	}
}

func TestEveryKindOfReceiptIsCounted(t *testing.T) {
	statuses := map[string]*abi.WriteReceipt{
		"e001": {Status: abi.StatusCommitted}, "e002": {Status: abi.StatusQueued}, "e003": {Status: abi.StatusPending},
		"e004": {Status: abi.StatusPartial},
		"e005": {Status: abi.StatusUncertain}, "e006": {Status: abi.StatusNotRetained},
		"e007": {Status: abi.StatusSkippedReadOnly},
		"e008": {Status: abi.StatusCommitted, Duplicate: true, Warnings: []string{"duplicate_event: x"}},
		"e009": {Status: abi.StatusUncertain, Duplicate: true},
	}
	lines, _ := eventLines(len(statuses))
	slot := &fakeSlot{answer: func(e *abi.MemoryEvent, _ int) (*abi.WriteReceipt, error) {
		r := *statuses[e.EventID]
		r.Warnings = append(r.Warnings, "slow_backend: took long")
		return &r, nil
	}}
	r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), nil)
	require.NoError(t, err)
	require.Equal(t, "recorded 3 events, 2 of them queued in the backend, 1 already there, 1 not retained, 1 "+
		"skipped: read-only, 3 uncertain: record them again (0.0 s) for run \"r\", user \"u\"", r.Sum.Text())
	require.Equal(t, map[string]int{"slow_backend: took long": 9}, r.Sum.Warnings)
}

// Whatever fails temporarily, for however long: recording until it returns 0 leaves every event exactly once. With a
// provider that takes events one by one they are in order.
func TestRecordingUntilItSaysDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines, ids := eventLines(rapid.IntRange(1, 80).Draw(t, "events"))
		failures := map[string]int{}
		for _, id := range ids {
			if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
				failures[id] = rapid.IntRange(1, 6).Draw(t, "times")
			}
		}
		slot := &fakeSlot{batches: rapid.Bool().Draw(t, "batches"),
			answer: func(e *abi.MemoryEvent, try int) (*abi.WriteReceipt, error) {
				if try <= failures[e.EventID] {
					return nil, abi.NewError(abi.CodeUnavailable, "not now")
				}
				return nil, nil
			}}
		for range 100 {
			r, _, _, err := recordWith(t, slot, strings.NewReader(strings.Join(lines, "\n")), func(r *Recorder) {
				r.Retries = 1
			})
			code := r.Sum.ExitCode(err)
			if code == cli.ExitOK {
				if slot.batches {
					require.ElementsMatch(t, ids, slot.got)
				} else {
					require.Equal(t, ids, slot.got)
				}
				return
			}
			require.Equal(t, cli.ExitRetry, code)
		}
		t.Fatal("no end")
	})
}
