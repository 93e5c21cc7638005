package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/plugins"
)

// retrieveN makes n retrievals of a person's memory.
func retrieveN(t testing.TB, s *Slot, person string, n int) {
	t.Helper()
	for i := range n {
		_, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: fmt.Sprint("question ", i),
			Scope: PersonScope(person), SessionID: "new"})
		require.NoError(t, err)
	}
}

func TestAShadowGetsEveryWriteAndIsAskedAShare(t *testing.T) {
	for name, archived := range map[string]bool{"with an archive": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h := Open(t, Options{Archive: archived})
			s := OpenSlot(t, h, History(t, ""))
			Record(t, s, "ann", 0, 20)
			require.NoError(t, s.Shadow(ctx, History(t, "next"), ShadowOptions{SamplePercent: 50}))
			Record(t, s, "ann", 20, 40)
			Until(t, "it has everything", func() bool {
				x := ShadowOf(t, s) // it may be ready before it has the last one
				return x.State == report.FollowerReady && x.Progress.Done == x.Progress.Events
			})
			m, err := s.Manifest(ctx)
			require.NoError(t, err)
			require.Equal(t, report.RoleShadow, m.Followers[0].Role)
			require.Empty(t, m.Namespace, "exactly one provider answers")
			retrieveN(t, s, "ann", 20)
			Until(t, "it was asked", func() bool { return ShadowOf(t, s).Report.Answers == 10 })
			shadow := ShadowOf(t, s)
			require.Zero(t, shadow.Report.Failed)
			want := 1.0
			if !archived {
				want = 0.5 // it started with the 20th turn
				records, err := h.store.Records(ctx, archive.TableEntries, nil, nil, 0)
				require.NoError(t, err)
				require.Empty(t, records, "the queue is empty once it has everything")
			}
			require.InDelta(t, want, *shadow.Report.OverlapMean, 1e-9)
			require.True(t, s.HasShadow("full_history"))
			answer, err := s.AskShadow(ctx, "full_history", &abi.RetrieveRequest{Query: "asked", Scope: PersonScope("ann"),
				SessionID: "new"})
			require.NoError(t, err)
			require.NotEmpty(t, answer.FormattedContext)
			require.EqualValues(t, 10, ShadowOf(t, s).Report.Answers, "its answer is not kept")
			require.False(t, s.HasShadow("bm25"))
			_, err = s.AskShadow(ctx, "bm25", &abi.RetrieveRequest{Query: "asked", Scope: PersonScope("ann"), SessionID: "new"})
			require.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
			page, err := s.ShadowAnswers(ctx, &report.ShadowAnswersRequest{Limit: 4})
			require.NoError(t, err)
			require.Len(t, page.Answers, 4)
			require.Equal(t, "question 19", page.Answers[0].Query, "newest first")
			require.NotEmpty(t, page.Answers[0].FormattedContext)
			rest, err := s.ShadowAnswers(ctx, &report.ShadowAnswersRequest{Before: page.Next, Limit: 500})
			require.NoError(t, err)
			require.Len(t, rest.Answers, 6)
			require.Empty(t, rest.Next)

			_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: PersonScope("ann"), EventIDs: []string{"ann-00025"},
				Reason: "r"})
			require.NoError(t, err)
			require.Zero(t, ShadowOf(t, s).Report.Answers, "any of them may hold what is forgotten")
			_, err = s.Swap(ctx, History(t, "next"))
			require.NoError(t, err)
			require.Equal(t, "next", Serves(t, s, "next").Namespace)
			list := Remembered(t, s, "ann")
			require.NotContains(t, list, "ann-00025")
			require.Contains(t, list, "ann-00039")
			if archived {
				require.Contains(t, list, "ann-00000")
			}
		})
	}
}

// Without an archive, events are queued only for the shadow.
func TestWhatWaitsForAShadowIsBounded(t *testing.T) {
	ctx := context.Background()
	const calls, bytes = 600, 64 << 10
	h := Open(t, Options{Durability: "process", Limits: Limits{QueueBytes: bytes}})
	s := OpenSlot(t, h, History(t, ""))
	require.NoError(t, s.Shadow(ctx, ProbeConfig(`{"health":"unavailable"}`), ShadowOptions{}))
	Record(t, s, "ann", 0, calls)
	Until(t, "the queue is cut", func() bool { return h.archive.OpenBytes() <= bytes })
	var p report.FollowerProgress
	Until(t, "what is dropped is counted", func() bool {
		p = ShadowOf(t, s).Progress
		waiting, err := h.archive.CountAfter(ctx, 0)
		require.NoError(t, err)
		return p.Dropped > 0 && p.Dropped+waiting == calls
	})
	require.EqualValues(t, calls, p.Events)
	require.Equal(t, TurnIDs("ann", 0, calls), Remembered(t, s, "ann"), "the serving memory has them all")
}

func TestAShadowIsAnotherMemory(t *testing.T) {
	ctx := context.Background()
	s := OpenSlot(t, Open(t, Options{}), History(t, ""))
	RequireCode(t, s.Shadow(ctx, History(t, ""), ShadowOptions{}), abi.CodeInvalidArgument, "namespace")
	require.NoError(t, s.Shadow(ctx, History(t, "next"), ShadowOptions{}))
	RequireCode(t, s.Shadow(ctx, History(t, "next"), ShadowOptions{}), abi.CodeInvalidArgument, "followed already")
	RequireCode(t, s.Shadow(ctx, History(t, "third"), ShadowOptions{SamplePercent: 101}), abi.CodeInvalidArgument)
	_, err := s.ShadowAnswers(ctx, &report.ShadowAnswersRequest{Before: "zz"})
	RequireCode(t, err, abi.CodeInvalidArgument, "before")
}

// A shadow whose backend hangs, fails or returns nonsense changes nothing in agents' calls.
func TestABadShadowChangesNothingInTheServingCalls(t *testing.T) {
	calls, people := 500, 25 // several people, so that retrievals don't get slower
	if brief.Tests() {
		calls, people = 100, 5
	}
	for name, block := range map[string]string{"its module traps": `{"health":"trap"}`,
		"its module does not answer": `{"health":"spin"}`, "its backend is not there": `{"health":"unavailable"}`} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := OpenSlot(t, Impatient(Open(t, Options{Durability: "process"})), History(t, ""))
			bad := ProbeConfig(block)
			require.NoError(t, s.Shadow(ctx, bad, ShadowOptions{SamplePercent: 100}))
			for n := range calls {
				person, at := fmt.Sprint("person", n%people), n/people
				Record(t, s, person, at, at+1)
				retrieveN(t, s, person, 1)
			}
			for n := range people {
				person := fmt.Sprint("person", n)
				require.Equal(t, TurnIDs(person, 0, calls/people), Remembered(t, s, person))
			}
			shadow := ShadowOf(t, s)
			require.EqualValues(t, calls, shadow.Progress.Events-shadow.Progress.Done)
			closing, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			require.NoError(t, s.Close(closing))
		})
	}
}

func TestAShadowThatHangsKeepsNobodyWaiting(t *testing.T) {
	ctx := context.Background()
	release := make(chan struct{})
	hangs := NewFillable(t, func(_ int64, rw http.ResponseWriter) { <-release })
	defer close(release)
	s := OpenSlot(t, Open(t, Options{Durability: "process"}), History(t, ""))
	require.NoError(t, s.Shadow(ctx, hangs.Config(), ShadowOptions{SamplePercent: 100}))
	for n := range 300 {
		e := Turn("ann", n)
		text := "deliver a"
		e.Messages[0].Content = &text
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	retrieveN(t, s, "ann", 100)
	require.Len(t, Remembered(t, s, "ann"), 300)
	require.Less(t, ShadowOf(t, s).Progress.Done, int64(300))
}

// badShadows are backends of a mem0 shadow.
var badShadows = map[string]http.HandlerFunc{
	"hangs": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when its client leaves
		<-r.Context().Done()
	},
	"errs": func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", http.StatusInternalServerError) },
	// It claims to have stored everything, but stores nothing, and answers with another person's memory.
	"lies": func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/auth/setup-status":
			_, _ = rw.Write([]byte(`{"needsSetup":false}`))
		case "/openapi.json":
			_, _ = rw.Write([]byte(`{"info":{"title":"Mem0 REST APIs"},"paths":{"/memories":{},"/search":{}}}`))
		default:
			_, _ = rw.Write([]byte(`{"results":[{"id":"00000000-0000-4000-8000-000000000001","memory":"zorvex is bob's",` +
				`"event":"ADD","user_id":"bob","score":1}]}`))
		}
	},
}

// timesInAnswers matches what may differ between two answers to the same request.
var timesInAnswers = regexp.MustCompile(`"[a-z_]+_ms":[0-9.e-]+|"consistency_as_of":"[^"]*"`)

// With a shadow that hangs, fails or lies, answers have the same bytes as without one. The log shows the median and the
// slowest percent of both, alternating between calls.
func TestBadShadowsChangeNoByteOfTheAnswers(t *testing.T) {
	const people = 200
	calls := 10_000 // half of them are retrievals
	if brief.Tests() {
		calls = 400
	}
	m, ok := plugins.Find("mem0")
	require.True(t, ok)
	for name, answer := range badShadows {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			backend := httptest.NewServer(answer)
			defer backend.Close()
			alone := OpenSlot(t, Open(t, Options{Durability: "process"}), History(t, ""))
			beside := OpenSlot(t, Open(t, Options{Durability: "process"}), History(t, ""))
			require.NoError(t, beside.Shadow(ctx, ProviderConfig{Name: "mem0", Module: m.Wasm, Source: "builtin",
				Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, backend.URL))}, ShadowOptions{SamplePercent: 100}))
			var took [2][]time.Duration
			// both makes a call at both slots, and requires the same bytes.
			both := func(n int, call func(*Slot) (abi.Encodable, error)) {
				var texts [2]string
				for i := range 2 {
					at := (i + n) % 2 // alternate which one is first
					began := time.Now()
					answer, err := call([]*Slot{alone, beside}[at])
					took[at] = append(took[at], time.Since(began))
					require.NoError(t, err)
					texts[at] = string(timesInAnswers.ReplaceAll(abi.Marshal(answer), nil))
				}
				require.Equal(t, texts[0], texts[1])
			}
			for n := range calls / 2 {
				person := fmt.Sprint("person", n%people)
				both(n, func(s *Slot) (abi.Encodable, error) { return s.RecordEvent(ctx, Turn(person, n/people)) })
				both(n, func(s *Slot) (abi.Encodable, error) {
					return s.Retrieve(ctx, &abi.RetrieveRequest{Query: "zorvex", Scope: PersonScope(person), SessionID: "new"})
				})
			}
			at := func(list []time.Duration, percent int) float64 {
				slices.Sort(list)
				return ms(list[(len(list)-1)*percent/100])
			}
			shadow := ShadowOf(t, beside)
			t.Logf("%d calls beside a shadow that %s: p50 %.3f ms, alone %.3f ms, %.2f x; p99 %.3f and %.3f ms; the shadow has "+
				"%d of %d events and was asked %d times", calls, name, at(took[1], 50), at(took[0], 50),
				at(took[1], 50)/at(took[0], 50), at(took[1], 99), at(took[0], 99), shadow.Progress.Done,
				shadow.Progress.Events, shadow.Report.Answers)
			backend.CloseClientConnections()
		})
	}
}

// manyEvents is enough for several segments of the archive.
const manyEvents = 10_000

func TestManyEventsArriveOnceThoughTheProcessEndsAgainAndAgain(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	dir := t.TempDir()
	people := []string{"ann", "bob", "cy", "di"}
	each := manyEvents / len(people)
	if brief.Tests() {
		each = 1000
	}
	RunHistory(t, dir, func(h *Host, s *Slot) {
		for from := 0; from < each; from += archive.MaxAdd / len(people) {
			batch := new(abi.EventBatch)
			for n := from; n < from+archive.MaxAdd/len(people); n++ {
				for _, person := range people {
					batch.Events = append(batch.Events, *Turn(person, n))
				}
			}
			_, err := h.Archive().ArchiveAdd(ctx, batch)
			require.NoError(t, err)
		}
	})
	// In each life, commits fail from some moment on, as if the process had been killed then.
	var served bool
	for lives := 1; !served; lives++ {
		require.Less(t, lives, 60)
		w := &world{clock: time.Now()}
		h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true, Durability: "process"})
		require.NoError(t, err)
		h.store = mortalStore{h.store, w}
		h.fleet = fleet.Of(h.store)
		s, err := h.Open(ctx, History(t, ""))
		require.NoError(t, err)
		if lives <= 20 {
			w.dieAfter(1 + lives*37%150)
		}
		_, err = s.Backfill(ctx, History(t, "next"), BackfillOptions{})
		if err == nil {
			Until(t, "it dies or serves", func() bool {
				m, err := s.Manifest(ctx)
				served = err == nil && m.Namespace == "next"
				return served || w.isDead()
			})
		}
		if served {
			for _, person := range people {
				list := Remembered(t, s, person)
				require.True(t, slices.IsSorted(list))
				require.Len(t, list, each, "each once")
			}
		}
		require.NoError(t, s.Close(ctx))
		w.revive()
		require.NoError(t, h.Close(ctx))
	}
}

// BenchmarkServingDuringABackfill compares the median of serving calls with and without a running backfill,
// alternating. It prints the ratio.
func BenchmarkServingDuringABackfill(b *testing.B) {
	ctx := context.Background()
	h := Open(b, Options{Archive: true})
	s := OpenSlot(b, h, History(b, ""))
	for from := 0; from < manyEvents; from += archive.MaxAdd {
		batch := new(abi.EventBatch)
		for n := from; n < from+archive.MaxAdd; n++ {
			batch.Events = append(batch.Events, *Turn(fmt.Sprint("p", n%4), n))
		}
		_, err := h.Archive().ArchiveAdd(ctx, batch)
		require.NoError(b, err)
	}
	next := 0
	round := func(took *[]time.Duration) {
		for range 100 {
			began := time.Now()
			_, err := s.RecordEvent(ctx, Turn("live", next))
			require.NoError(b, err)
			*took = append(*took, time.Since(began))
			next++
			time.Sleep(5 * time.Millisecond) // callers of a memory are not a tight loop
		}
	}
	var without, with []time.Duration
	for range 4 {
		round(&without)
		_, err := s.Backfill(ctx, History(b, "next"), BackfillOptions{})
		require.NoError(b, err)
		round(&with)
		_, err = s.BackfillStop(ctx, &report.BackfillStop{})
		require.NoError(b, err)
	}
	at := func(list []time.Duration, p int) float64 {
		slices.Sort(list)
		return ms(list[(len(list)-1)*p/100])
	}
	b.ReportMetric(at(with, 50)/at(without, 50), "p50-ratio")
	b.ReportMetric(at(without, 50), "p50-ms-without")
	b.ReportMetric(at(with, 50), "p50-ms-with")
	b.ReportMetric(at(without, 99), "p99-ms-without")
	b.ReportMetric(at(with, 99), "p99-ms-with")
	status, err := s.BackfillStatus(ctx)
	require.NoError(b, err)
	b.ReportMetric(float64(status.Progress.Done), "filled")
}

// Without an archive, a shadow that was not running while something was recorded does not claim to have everything.
func TestAShadowThatWasAwayBeginsAnew(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	within := func(do func(h *Host, s *Slot)) {
		h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir()})
		require.NoError(t, err)
		s, err := h.Open(ctx, History(t, ""))
		require.NoError(t, err)
		do(h, s)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
	}
	has := func(s *Slot, events int64) {
		Until(t, fmt.Sprint("it has ", events), func() bool {
			x := ShadowOf(t, s)
			return x.State == report.FollowerReady && x.Progress.Events == events && x.Progress.Done == events
		})
	}
	next := History(t, "next")
	down := ProbeConfig(`{"health":"unavailable"}`)
	within(func(_ *Host, s *Slot) {
		require.NoError(t, s.Shadow(ctx, next, ShadowOptions{}))
		require.NoError(t, s.EndShadows(ctx))
		Record(t, s, "ann", 0, 3)
		has(s, 3)
	})
	within(func(_ *Host, s *Slot) { // nothing was recorded in the meantime: it continues
		require.NoError(t, s.Shadow(ctx, next, ShadowOptions{}))
		Record(t, s, "ann", 3, 5)
		has(s, 5)
		require.NoError(t, s.Shadow(ctx, down, ShadowOptions{}))
		Record(t, s, "ann", 5, 6)
	})
	within(func(h *Host, s *Slot) { // what is recorded without them is not queued
		ended, end := context.WithCancel(ctx)
		end()
		require.Error(t, s.followers.endAway(ended))
		require.True(t, h.away.Load(), "they are not dropped yet")
		_, o, err := s.begin(ctx, abi.OpRecordEvent)
		require.NoError(t, err)
		require.NoError(t, o.commitAccepted(ended, new(state.Batch), writelock.MoreFollow, Turn("ann", 6)), "what is sent is kept")
		o.end(&err)
		require.False(t, h.away.Load())
		Record(t, s, "ann", 6, 8)
		require.Zero(t, h.archive.OpenBytes())
	})
	within(func(_ *Host, s *Slot) {
		require.NoError(t, s.Shadow(ctx, next, ShadowOptions{}))
		require.NoError(t, s.Shadow(ctx, down, ShadowOptions{}))
		Record(t, s, "ann", 8, 9)
		Until(t, "it has the last", func() bool { return s.followers.list()[0].work.Record().Done == 1 })
	})
	within(func(h *Host, s *Slot) { // one of the two was removed from the configuration
		require.NoError(t, s.Shadow(ctx, next, ShadowOptions{}))
		require.NoError(t, s.EndShadows(ctx))
		Record(t, s, "ann", 9, 10)
		has(s, 2)
		Until(t, "nothing waits for the other", func() bool { return h.archive.OpenBytes() == 0 })
	})
}
