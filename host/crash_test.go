package host

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"
)

// world is a host that can die at any step of a write, and a backend that survives it. Once the host is dead, nothing
// reaches the store or the backend any more, as if the process had been killed; the next life opens the same folder.
type world struct {
	mu    sync.Mutex
	clock time.Time
	step  int
	dieAt int // the step at which the host dies; 0: never
	dead  bool
	fate  fate

	stored []string // "event/part", in the order in which the backend stored them
	late   []latePart
}

// fate is what happens to a request that was in progress when the host died.
type fate int

const (
	fateLost    fate = iota // it never arrives
	fateStored              // it is stored although the client is gone
	fateLate                // it is stored two seconds later
	fateUnknown             // the backend does not know for a while, and then turns out to have it
	fates
)

type latePart struct {
	part string
	at   time.Time
}

const lateBy = 2 * time.Second // within the probe's settle_ms

// at is a step of a write. It reports whether the host is still alive afterwards.
func (w *world) at() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step++
	if w.step == w.dieAt {
		w.dead = true
	}
	return !w.dead
}

// dieAfter makes the host die that many steps from now.
func (w *world) dieAfter(steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dieAt = w.step + steps
}

// revive makes the host live permanently.
func (w *world) revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.dieAt = false, 0
}

func (w *world) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
	w.late = slices.DeleteFunc(w.late, func(l latePart) bool {
		if l.at.After(w.clock) {
			return false
		}
		w.stored = append(w.stored, l.part)
		return true
	})
}

// mortalStore is a store whose commits fail once the host is dead.
type mortalStore struct {
	state.Store
	world *world
}

func (s mortalStore) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if !s.world.at() { // killed before the commit
		return state.CommitResult{}, abi.NewError(abi.CodeUnavailable, "dead")
	}
	result, err := s.Store.Commit(ctx, b)
	if !s.world.at() { // killed after the commit
		return state.CommitResult{}, abi.NewError(abi.CodeUnavailable, "dead")
	}
	return result, err
}

// ServeHTTP is the backend: POST /post stores a part, GET /find reports which parts of an event it has.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	hangUp := func() {
		if c, _, err := rw.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	if w.isDead() { // it was never sent
		hangUp()
		return
	}
	if r.URL.Path == "/find" {
		_, _ = rw.Write([]byte(w.find(r.URL.Query().Get("event"))))
		return
	}
	var body struct{ Event, Part string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	part := body.Event + "/" + body.Part
	if !w.at() { // killed while the request is in progress
		w.mu.Lock()
		switch w.fate {
		case fateStored:
			w.stored = append(w.stored, part)
		case fateLate, fateUnknown:
			w.late = append(w.late, latePart{part, w.clock.Add(lateBy)})
		}
		w.mu.Unlock()
		hangUp()
		return
	}
	w.mu.Lock()
	w.stored = append(w.stored, part)
	w.mu.Unlock()
	if !w.at() { // killed before the answer
		hangUp()
		return
	}
	_, _ = rw.Write([]byte("ok"))
}

var crashParts = []string{"a", "b", "c"}

func (w *world) find(event string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fate == fateUnknown && len(w.late) > 0 {
		return answercheck.FoundUnknown
	}
	var missing []string
	for _, part := range crashParts {
		if !slices.Contains(w.stored, event+"/"+part) {
			missing = append(missing, part)
		}
	}
	switch len(missing) {
	case 0:
		return answercheck.FoundPresent
	case len(crashParts):
		return answercheck.FoundAbsent
	}
	return answercheck.FoundPartial + " " + strings.Join(missing, " ")
}

// life opens the folder and records events in order until all are delivered or the host dies. It returns how many are
// delivered.
func (w *world) life(t *testing.T, dir, url string, from, to int, canFind bool, announced map[string]bool) int {
	t.Helper()
	ctx := context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Now: w.now, Durability: "process",
		NoReadinessPolls: !canFind, // polls would read the module's exports while they are changed here
		Limits:           Limits{Pool: 1}})
	require.NoError(t, err)
	AddSlack(h)
	defer func() { require.NoError(t, h.Close(ctx)) }()
	h.store = mortalStore{h.store, w}
	h.fleet = fleet.Of(h.store)
	s, err := h.Open(ctx, ProviderConfig{Name: "probe", Module: ProbeModule,
		Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, url))})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(ctx)) }()
	if !canFind {
		m := s.current.Load().provider.module
		m.Exports = slices.DeleteFunc(slices.Clone(m.Exports), func(op string) bool { return op == abi.OpFindEvent })
	}
	for ; from < to; from++ {
		id := fmt.Sprintf("e%03d", from)
		for tries := 0; ; tries++ {
			require.Less(t, tries, 5, "an event must come to its end")
			r, err := s.RecordEvent(ctx, Event(id, "append turns "+id+"; deliver "+strings.Join(crashParts, " ")))
			if w.isDead() {
				return from
			}
			require.NoError(t, err)
			if r.Status == abi.StatusCommitted {
				break
			}
			require.Equal(t, abi.StatusUncertain, r.Status)
			require.True(t, slices.ContainsFunc(r.Warnings, func(w string) bool {
				return strings.HasPrefix(w, warnUncertain)
			}), "%v", r.Warnings)
			if announced[id] = true; !canFind {
				break
			}
			w.advance(4 * time.Second)
		}
	}
	return from
}

// crashes is how many deaths the test runs. Under the race detector each life takes ten times as long.
func crashes() int {
	switch {
	case testing.Short():
		return 50
	case brief.Tests():
		return 100
	}
	return 1000
}

// A host is killed at every step of its writes (before and after each commit, before a request is sent, while it is in
// progress, before its answer), against a backend that stores, loses, stores late, or does not know for a while. The
// agent records everything again that was not acknowledged.
func TestCrashesLoseAndDoubleNothing(t *testing.T) {
	for _, canFind := range []bool{true, false} {
		t.Run(map[bool]string{true: "with find_event", false: "without find_event every doubt is announced"}[canFind],
			func(t *testing.T) {
				t.Parallel()
				deaths := crashes()
				if !canFind {
					deaths /= 5
				}
				const batch = 40 // events before a new folder
				for died := 0; died < deaths; {
					w := &world{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
					server := httptest.NewServer(w)
					dir := t.TempDir()
					random := rand.New(rand.NewPCG(uint64(died), 1))
					announced := map[string]bool{}
					for from := 0; from < batch; {
						w.mu.Lock()
						w.dead, w.step, w.fate = false, 0, fate(random.IntN(int(fates)))
						if w.dieAt = 0; died < deaths {
							w.dieAt = 1 + random.IntN(25)
						}
						w.mu.Unlock()
						from = w.life(t, dir, server.URL, from, batch, canFind, announced)
						if w.isDead() {
							died++
							w.advance(time.Duration(random.IntN(5000)) * time.Millisecond)
						}
					}
					w.advance(time.Minute)
					server.Close()
					w.verify(t, batch, canFind, announced)
				}
			})
	}
}

func (w *world) verify(t *testing.T, events int, canFind bool, announced map[string]bool) {
	t.Helper()
	count := map[string]int{}
	for _, part := range w.stored {
		count[part]++
	}
	for i := range events {
		id := fmt.Sprintf("e%03d", i)
		for _, part := range crashParts {
			n := count[id+"/"+part]
			if canFind {
				require.Equal(t, 1, n, "%s/%s is in the backend once", id, part)
				continue
			}
			require.True(t, n == 1 || n == 0 && announced[id], "%s/%s is in the backend %d times, announced %v", id,
				part, n, announced[id])
		}
	}
}
