package host_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorBeforeAnythingArrivedLeavesNoDoubt(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 413, 422, 429} {
		s, b, _ := host.ScriptedSlot(t, host.Options{})
		b.Set(func() { b.Post = func(string) int { return status } })
		_, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
		e := host.RequireCode(t, err, abi.CodeBackend)
		assert.NotContains(t, e.Hint, "not known whether")
		b.Set(func() { b.Post, b.Find = nil, "panic: it is not asked" })
		r, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
		require.NoError(t, err)
		assert.Equal(t, abi.StatusCommitted, r.Status, "status %d: sent again without asking", status)
		assert.False(t, r.Duplicate)
	}
}

func TestBackendThatCannotBeReachedLeavesNoDoubt(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := host.NetSlot(t, server.URL, host.Options{})
	_, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	host.RequireCode(t, err, abi.CodeUnavailable, "is the backend running")
	known := host.LedgerEntry(t, s, "e")
	assert.Nil(t, known)
}

func TestOutcomeThatIsUnknownIsAskedForBeforeAnythingIsSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		code    abi.Code
		receipt bool
	}{
		"server error":       {status: 500, code: abi.CodeBackend},
		"dropped connection": {status: 0, code: abi.CodeUnavailable},
		"late refusal":       {status: 400, code: abi.CodeBackend},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, clock := host.ScriptedSlot(t, host.Options{})
			b.Post = func(part string) int {
				if name == "late refusal" && part == "a" {
					return 200
				}
				return c.status
			}
			_, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a b"))
			e := host.RequireCode(t, err, c.code, "record it again: the host asks the backend")
			assert.True(t, e.Retryable, "what can be settled is retryable")
			sent := len(b.Sent())
			for _, doubt := range []string{answercheck.FoundUnknown, answercheck.FoundAbsent, "partial b"} {
				b.Set(func() { b.Find = doubt })
				r, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a b"))
				require.NoError(t, err)
				assert.Equal(t, abi.StatusUncertain, r.Status, doubt)
				assert.False(t, r.Duplicate, "it is not known to have arrived")
				if assert.NotNil(t, r.RetryAfterMS) {
					assert.Positive(t, *r.RetryAfterMS)
				}
				assert.True(t, strings.HasPrefix(r.Warnings[0], "delivery_uncertain: "), r.Warnings[0])
				assert.Len(t, r.Trace.IO, 1, "the look-up is a native call like others")
			}
			assert.Len(t, b.Sent(), sent, "nothing is sent while an earlier request can still land")
			clock.Add(3001 * time.Millisecond)
			b.Set(func() { b.Post, b.Find = nil, "partial b" })
			r, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a b"))
			require.NoError(t, err)
			assert.Equal(t, abi.StatusCommitted, r.Status)
			assert.Equal(t, []string{"e/b"}, b.Sent()[sent:], "only what is missing is sent")
		})
	}
}

func TestWriteThatTimesOutAfterSendingIsAnUncertainReceipt(t *testing.T) {
	b := &host.Scripted{Find: answercheck.FoundPresent}
	hang := make(chan struct{})
	var first atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/post" && first.CompareAndSwap(false, true) {
			<-hang
		}
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	s := host.NetSlot(t, server.URL, host.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond) // long enough to send it
	defer cancel()
	r, err := s.RecordEvent(ctx, host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusUncertain, r.Status)
	assert.Contains(t, r.Warnings[0], "timeout")
	assert.Contains(t, string(r.Trace.Details["error"]), `"code":"timeout"`)
	assert.Equal(t, "pending", r.Trace.Consistency)
	again, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusCommitted, again.Status)
	assert.Equal(t, []string{"native-e"}, again.NativeIDs)
	assert.Contains(t, strings.Join(again.Warnings, " "), "delivery_found: ")
	third, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Empty(t, third.Trace.IO, "once found it is known")
	assert.Empty(t, b.Sent())
}

func TestProviderThatCannotLookUpGetsAWarningAndNoSecondRequest(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{NoReadinessPolls: true})
	host.WithoutCapability(s, abi.OpFindEvent)
	b.Set(func() { b.Post = func(string) int { return 502 } })
	_, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	e := host.RequireCode(t, err, abi.CodeBackend, "cannot look it up")
	assert.False(t, e.Retryable, "no retry can settle it")
	clock.Add(time.Hour)
	b.Set(func() { b.Post = nil })
	r, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusUncertain, r.Status)
	assert.Contains(t, r.Warnings[0], "the provider cannot look it up")
	assert.Nil(t, r.RetryAfterMS)
	assert.False(t, r.Duplicate)
	assert.Len(t, b.Sent(), 1)
	r, err = s.RecordEvent(context.Background(), host.Event("f", "deliver a; status partial"))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), "the provider cannot look it up")
}

func TestBatchWithADoubtGoesOneByOne(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{})
	b.Set(func() { b.Post = func(string) int { return 500 } })
	_, err := s.RecordEvent(context.Background(), host.Event("2", "deliver a"))
	host.RequireCode(t, err, abi.CodeBackend)
	b.Set(func() { b.Post, b.Find = nil, answercheck.FoundAbsent })
	clock.Add(4 * time.Second)
	out, err := s.RecordEvents(context.Background(),
		&abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("1", "deliver a"), *host.Event("2", "deliver a"),
			*host.Event("3", "deliver a")}})
	require.NoError(t, err)
	for _, r := range out.Receipts {
		require.NotNil(t, r.Receipt)
		assert.Equal(t, abi.StatusCommitted, r.Receipt.Status)
	}
	assert.Equal(t, []string{"2/a", "1/a", "2/a", "3/a"}, b.Sent(), "in their order")
}

func TestClockThatGoesBackDelaysAndLosesNothing(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{})
	b.Set(func() { b.Post = func(string) int { return 500 } })
	_, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	host.RequireCode(t, err, abi.CodeBackend)
	clock.Add(-24 * time.Hour)
	b.Set(func() { b.Post, b.Find = nil, answercheck.FoundAbsent })
	r, err := s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusUncertain, r.Status)
	clock.Add(3001 * time.Millisecond)
	r, err = s.RecordEvent(context.Background(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusCommitted, r.Status, "the wait counts from the clock as it is now")
}

func TestDamagedRecordOfTheLedgerIsAnErrorAndTheSlotGoesOn(t *testing.T) {
	s, _, _ := host.ScriptedSlot(t, host.Options{})
	host.RunCommands(t, s, "e", "echo x")
	for _, damage := range [][]byte{{}, []byte("short"), append(make([]byte, 41), "{not a receipt"...),
		make([]byte, 41)} {
		host.PutRecord(t, s, delivery.TableEntries, delivery.Key(host.SpaceOf(t, s), "e"), damage)
		_, err := s.RecordEvent(context.Background(), host.Event("e", "echo x"))
		host.RequireCode(t, err, abi.CodeUnavailable, "damaged", "reset the scope")
	}
	host.RequireUsable(t, s, "f")
}

func TestRetentionKeepsTheLedgerBoundedAndOldEventsAreLookedUp(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{LedgerRetention: time.Hour})
	ctx := context.Background()
	for i := range 50 {
		host.RunCommands(t, s, fmt.Sprint("old ", i), "deliver a")
	}
	b.Set(func() { b.Post = func(string) int { return 500 } })
	_, err := s.RecordEvent(ctx, host.Event("doubtful", "deliver a"))
	host.RequireCode(t, err, abi.CodeBackend)
	b.Set(func() { b.Post, b.Find = nil, answercheck.FoundAbsent })
	clock.Add(2 * time.Hour)
	for i := range 6 {
		host.RunCommands(t, s, fmt.Sprint("new ", i), "deliver a")
	}
	assert.Len(t, host.Stored(t, s, delivery.TableEntries), 7, "the new ones, and the one whose outcome is unknown")
	sent := len(b.Sent())
	b.Set(func() { b.Find = answercheck.FoundPresent })
	r, err := s.RecordEvent(ctx, host.Event("old 7", "deliver a"))
	require.NoError(t, err)
	assert.True(t, r.Duplicate)
	assert.Len(t, b.Sent(), sent)
	b.Set(func() { b.Find = answercheck.FoundAbsent })
	r, err = s.RecordEvent(ctx, host.Event("really new", "deliver a"))
	require.NoError(t, err)
	assert.False(t, r.Duplicate)
	assert.Len(t, b.Sent(), sent+1)
}

func TestReadinessGetsTheMarkersAndTheLedgerLearnsFromIt(t *testing.T) {
	s, b, _ := host.ScriptedSlot(t, host.Options{})
	ctx := context.Background()
	look := func() *abi.BackendReadiness {
		t.Helper()
		r, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope})
		require.NoError(t, err)
		return r
	}
	status := func(id string) (abi.WriteStatus, bool) {
		t.Helper()
		r, err := s.RecordEvent(ctx, host.Event(id, "echo ask-"+id+"; status queued"))
		require.NoError(t, err)
		return r.Status, r.Duplicate
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		_, duplicate := status(id)
		require.False(t, duplicate)
	}
	m, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	assert.Equal(t, []abi.MemoryScope{host.TestScope}, m.NotReady)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r"})
	require.NoError(t, err)

	b.Set(func() { b.Ready = `{"status":"pending","event_ids":{"pending":["1","2","3","4"]},"method":"script"}` })
	assert.Equal(t, abi.ReadinessPending, look().Status)
	b.Set(func() {
		b.Ready = `{"status":"failed","event_ids":{"lost":["2"],"failed":["3"],"empty":["4"],"pending":["1"]},"method":"script"}`
	})
	assert.Equal(t, abi.ReadinessFailed, look().Status)
	b.Set(func() { b.Ready = `{"status":"ready","event_ids":{},"method":"script"}` })
	r := look()
	b.Set(func() { assert.Equal(t, "ask-1", b.Asked[2], "what is settled is not asked about again") })
	assert.Equal(t, abi.ReadinessFailed, r.Status, "what was lost stays so until it is recorded again")
	assert.Equal(t, []string{"2"}, r.EventIDs.Lost)
	assert.Equal(t, []string{"3"}, r.EventIDs.Failed)
	for id, want := range map[string]struct {
		status    abi.WriteStatus
		duplicate bool
	}{"1": {abi.StatusCommitted, true}, "2": {abi.StatusQueued, false}, "3": {abi.StatusQueued, false},
		"4": {abi.StatusNotRetained, true}} {
		got, duplicate := status(id)
		assert.Equal(t, want.status, got, id)
		assert.Equal(t, want.duplicate, duplicate, id)
	}
	assert.Equal(t, abi.ReadinessReady, look().Status)
	m, err = s.Mode(ctx)
	require.NoError(t, err)
	assert.Empty(t, m.NotReady)
}

func TestADegradedProviderHasWhatItDoesNotName(t *testing.T) {
	s, b, _ := host.ScriptedSlot(t, host.Options{})
	ctx := context.Background()
	for _, id := range []string{"e1", "e2", "e3"} {
		_, err := s.RecordEvent(ctx, host.Event(id, "echo ask-"+id+"; status queued"))
		require.NoError(t, err)
	}
	b.Set(func() {
		b.Ready = `{"status":"degraded","event_ids":{"empty":["e1"],"unknown":["e2"]},"method":"script"}`
	})
	r, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessDegraded, r.Status)
	for id, want := range map[string]abi.WriteStatus{"e1": abi.StatusNotRetained, "e2": abi.StatusQueued,
		"e3": abi.StatusCommitted} {
		receipt, err := s.RecordEvent(ctx, host.Event(id, "echo ask-"+id+"; status queued"))
		require.NoError(t, err)
		assert.Equal(t, want, receipt.Status, id)
	}
}

func TestReadinessSettlesWhatIsUncertain(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{})
	ctx := context.Background()
	b.Set(func() { b.Post = func(string) int { return 500 } })
	_, err := s.RecordEvent(ctx, host.Event("e", "deliver a"))
	host.RequireCode(t, err, abi.CodeBackend)
	look := func() *abi.BackendReadiness {
		t.Helper()
		r, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope})
		require.NoError(t, err)
		return r
	}
	b.Set(func() { b.Find = answercheck.FoundAbsent })
	r := look()
	assert.Equal(t, abi.ReadinessPending, r.Status)
	assert.Equal(t, []string{"e"}, r.EventIDs.Unknown)
	clock.Add(4 * time.Second)
	r = look()
	assert.Equal(t, abi.ReadinessFailed, r.Status)
	assert.Equal(t, []string{"e"}, r.EventIDs.Lost)
	b.Set(func() { b.Post = nil })
	w, err := s.RecordEvent(ctx, host.Event("e", "deliver a"))
	require.NoError(t, err)
	assert.False(t, w.Duplicate, "what is lost is sent again")
	assert.Equal(t, abi.ReadinessReady, look().Status)
}

// TestReadinessNamesWhatIsThereInPart: no wait brings the rest, so readiness says that the event failed, and sends what
// is missing when it is asked to.
func TestReadinessNamesWhatIsThereInPart(t *testing.T) {
	for name, c := range map[string]struct{ archive, byReadiness bool }{
		"recorded again":    {false, false},
		"readiness --retry": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, clock := host.ScriptedSlot(t, host.Options{Archive: c.archive})
			ctx := context.Background()
			b.Set(func() {
				b.Post = func(part string) int {
					if part == "a" {
						return 200
					}
					return 500
				}
				b.Find = "partial b"
			})
			_, err := s.RecordEvent(ctx, host.Event("e", "deliver a b"))
			host.RequireCode(t, err, abi.CodeBackend)
			look := func(retry bool) *abi.BackendReadiness {
				t.Helper()
				r, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope, RetryEmpty: retry})
				require.NoError(t, err)
				return r
			}
			r := look(false)
			assert.Equal(t, abi.ReadinessPending, r.Status, "the rest can still land")
			assert.Equal(t, []string{"e"}, r.EventIDs.Unknown)
			clock.Add(4 * time.Second)
			for range 2 {
				r = look(false)
				assert.Equal(t, abi.ReadinessFailed, r.Status)
				assert.Equal(t, []string{"e"}, r.EventIDs.Failed)
				assert.Empty(t, r.EventIDs.Unknown)
			}
			sent := len(b.Sent())
			b.Set(func() { b.Post = nil })
			if c.byReadiness {
				look(true)
			} else {
				w, err := s.RecordEvent(ctx, host.Event("e", "deliver a b"))
				require.NoError(t, err)
				assert.Equal(t, abi.StatusCommitted, w.Status)
				assert.False(t, w.Duplicate)
			}
			assert.Equal(t, []string{"e/b"}, b.Sent()[sent:], "only what is missing is sent")
			assert.Equal(t, abi.ReadinessReady, look(false).Status)
		})
	}
}

func TestUnfinishedResetGoesOnWhereItStopped(t *testing.T) {
	s, _, _ := host.ScriptedSlot(t, host.Options{})
	ctx := context.Background()
	host.RunCommands(t, s, "e1", "append turns one; put reset incomplete")
	r, err := s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
	assert.Equal(t, abi.ResetIncomplete, r.Status)
	assert.EqualValues(t, []int64{1, 2}, []int64{r.OldGeneration, r.NewGeneration})
	assert.Contains(t, strings.Join(r.Warnings, " "), "reset_unfinished: ")
	assert.Equal(t, []string{"", "run/persona//2"}, host.Retrieved(t, s, "read turns; scope"),
		"the old generation is not served any more")
	r, err = s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
	assert.EqualValues(t, []int64{1, 2}, []int64{r.OldGeneration, r.NewGeneration},
		"nothing was written since: the new generation is kept")
	host.RunCommands(t, s, "e1", "append turns again; put reset fail")
	_, err = s.ResetScope(ctx, host.TestScope)
	host.RequireCode(t, err, abi.CodeBackend, "goes on in its new generation")
	assert.Equal(t, []string{"run/persona//3"}, host.Retrieved(t, s, "scope"))
}

// TestAbsenceIsBelievedOnlyOfALookAfterTheWait: the backend says that it has nothing, then the host sleeps, and what it
// had sent arrives. When the host wakes, no request can arrive any more, but the answer is from before.
func TestAbsenceIsBelievedOnlyOfALookAfterTheWait(t *testing.T) {
	b, c := &host.Scripted{}, &host.FakeClock{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := host.NetSlot(t, server.URL, host.Options{Now: c.Now, Intercept: func(ctx context.Context, call host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		answer, err := next(ctx)
		if call.Route == "find" {
			c.Add(time.Minute)
			b.Set(func() { b.Find = answercheck.FoundPresent })
		}
		return answer, err
	}})
	b.Set(func() {
		b.Find = answercheck.FoundAbsent
		b.Post = func(string) int { return 0 }
	})
	_, err := s.RecordEvent(t.Context(), host.Event("e", "deliver a"))
	host.RequireCode(t, err, abi.CodeUnavailable)
	r, err := s.RecordEvent(t.Context(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	require.Equal(t, abi.StatusUncertain, r.Status)
	require.Equal(t, []string{"e/a"}, b.Sent(), "it was not sent again")
	r, err = s.RecordEvent(t.Context(), host.Event("e", "deliver a"))
	require.NoError(t, err)
	require.Equal(t, abi.StatusCommitted, r.Status)
	require.Equal(t, []string{"e/a"}, b.Sent())
}
