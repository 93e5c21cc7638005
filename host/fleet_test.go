package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharedStore is a store that several hosts of a test share, and their sessions.
type sharedStore struct {
	store state.Store
	mu    sync.Mutex
	dead  map[fleet.Session]bool
	last  uint64
}

func newShared(t *testing.T) *sharedStore {
	store, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &sharedStore{store: store, dead: map[fleet.Session]bool{}}
}

// member is one host's view of a shared store. A dead member cannot commit.
type member struct {
	state.Store
	shared *sharedStore
	self   fleet.Session
}

// session returns the nth session of a shared store. Numbers are never reused.
func session(n uint64) (s fleet.Session) {
	binary.BigEndian.PutUint64(s[:], n)
	return s
}

// next starts a session. The caller holds mu.
func (s *sharedStore) next() fleet.Session {
	s.last++
	return session(s.last)
}

func (s *sharedStore) join() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &member{Store: s.store, shared: s, self: s.next()}
}

func (m *member) Sessions() fleet.Sessions { return m }
func (m *member) Close() error             { return nil }

func (m *member) Self() fleet.Session {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	return m.self
}

// rejoin starts a new session to replace one that has ended.
func (m *member) rejoin() {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	m.self = m.shared.next()
}

func (m *member) isDead(s fleet.Session) bool {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	return m.shared.dead[s]
}

func (m *member) Left() time.Duration {
	if m.isDead(m.Self()) {
		return 0
	}
	return time.Minute
}

func (m *member) Hosts(context.Context) ([]fleet.Host, error) {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	var hosts []fleet.Host
	for n := range m.shared.last {
		if s := session(n + 1); !m.shared.dead[s] {
			hosts = append(hosts, fleet.Host{Session: s})
		}
	}
	return hosts, nil
}

func (m *member) End(_ context.Context, s fleet.Session) (time.Duration, error) {
	if m.isDead(s) {
		return 0, nil
	}
	return time.Minute, nil
}

func (m *member) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	m.shared.mu.Lock() // a session does not end during a commit
	defer m.shared.mu.Unlock()
	if m.shared.dead[m.self] {
		return state.CommitResult{}, &state.Error{Kind: state.ErrUnavailable, Message: "the session has ended"}
	}
	return m.Store.Commit(ctx, b)
}

func (m *member) die() {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	m.shared.dead[m.self] = true
}

// slot opens a host and a slot on the shared store.
func (m *member) slot(t *testing.T, url string, o Options) *Slot {
	t.Helper()
	o.OpenStore = func(context.Context, string) (state.Store, error) { return m, nil }
	return NetSlot(t, url, o)
}

// TestAHostMayHaveManySessions: a long test on a busy machine pauses hosts some hundred times. A host that reused the
// number of an ended session could never commit again.
func TestAHostMayHaveManySessions(t *testing.T) {
	s := newShared(t)
	m := s.join()
	for range 600 {
		m.die()
		m.rejoin()
		var b state.Batch
		b.PutRecord(tableModes, []byte("k"), []byte("v"))
		_, err := m.Commit(t.Context(), &b)
		require.NoError(t, err)
	}
	hosts, err := m.Hosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fleet.Host{{Session: m.Self()}}, hosts)
}

func TestAnEventIsKnownAtEveryHost(t *testing.T) {
	server, calls := Backend(t)
	s := newShared(t)
	a, b := s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})
	r, err := a.RecordEvent(t.Context(), Event("e", "append turns x; http post body={}"))
	require.NoError(t, err)
	require.False(t, r.Duplicate)
	require.EqualValues(t, 1, calls.Load())
	r, err = b.RecordEvent(t.Context(), Event("e", "append turns x; http post body={}"))
	require.NoError(t, err)
	require.True(t, r.Duplicate)
	require.EqualValues(t, 1, calls.Load())
	_, err = b.RecordEvent(t.Context(), Event("e", "append turns y"))
	RequireCode(t, err, abi.CodeConflict, "recorded before with other content")
	require.Equal(t, []string{"1=x "}, Retrieved(t, b, "read turns"))
}

// TestAnEventIsCalledKnownAfterAWriteOnly: what a host reads may not have reached a standby of the database yet. While
// the database accepts no write, an event that can be read as recorded is not acknowledged.
func TestAnEventIsCalledKnownAfterAWriteOnly(t *testing.T) {
	server, _ := Backend(t)
	shared := newShared(t)
	ctx := context.Background()
	one, host := shared.join(), shared.join()
	_, err := one.slot(t, server.URL, Options{}).RecordEvent(ctx, Event("e1", "append turns x"))
	require.NoError(t, err)
	other := host.slot(t, server.URL, Options{})
	receipt, err := other.RecordEvent(ctx, Event("e1", "append turns x"))
	require.NoError(t, err)
	require.True(t, receipt.Duplicate)
	RunCommands(t, other, "e2", "append turns y") // now the scope is set up here, too
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*Event("e1", "append turns x"), *Event("e3", "fail backend no")}}
	out, err := other.RecordEvents(ctx, batch)
	require.NoError(t, err)
	require.True(t, out.Receipts[0].Receipt.Duplicate)
	RequireCode(t, out.Receipts[1].Error, abi.CodeBackend)
	host.die() // it can still read, but not commit
	_, err = other.RecordEvent(ctx, Event("e1", "append turns x"))
	RequireCode(t, err, abi.CodeUnavailable, "the session has ended")
	out, err = other.RecordEvents(ctx, batch)
	require.NoError(t, err)
	require.Nil(t, out.Receipts[0].Receipt)
	RequireCode(t, out.Receipts[0].Error, abi.CodeUnavailable, "the session has ended")
}

func TestAResetAtOneHostIsSeenAtTheOthers(t *testing.T) {
	server, _ := Backend(t)
	s := newShared(t)
	a, b := s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})
	RunCommands(t, a, "e", "append turns x")
	require.Equal(t, []string{"1=x "}, Retrieved(t, b, "read turns"))
	r, err := b.ResetScope(t.Context(), TestScope)
	require.NoError(t, err)
	require.EqualValues(t, 2, r.NewGeneration)
	require.Equal(t, []string{""}, Retrieved(t, a, "read turns"))
	w, err := a.RecordEvent(t.Context(), Event("e", "append turns y"))
	require.NoError(t, err)
	require.False(t, w.Duplicate, "the new generation knows nothing of the old one's deliveries")
	require.EqualValues(t, 2, w.Trace.Generation)
	require.Equal(t, []string{"1=y "}, Retrieved(t, b, "read turns"))
}

func TestWhatWasForgottenAtOneHostIsNotRecordedAtAnother(t *testing.T) {
	server, _ := Backend(t)
	s := newShared(t)
	a, b := s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})
	RunCommands(t, b, "first", "append turns x")
	_, err := a.Forget(t.Context(), &abi.ForgetRequest{Scope: TestScope, EventIDs: []string{"e"}})
	require.NoError(t, err)
	_, err = b.RecordEvent(t.Context(), Event("e", "append turns x"))
	RequireCode(t, err, abi.CodeConflict, "was forgotten")
}

// TestHostsWriteAScopeOneAfterAnother: clients of three hosts record into one scope. Each event needs three native
// calls, which must not be interleaved with others.
func TestHostsWriteAScopeOneAfterAnother(t *testing.T) {
	b := &Scripted{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := newShared(t)
	const hosts, each = 3, 20
	slots := make([]*Slot, hosts)
	for i := range slots {
		slots[i] = s.join().slot(t, server.URL, Options{})
	}
	var wg sync.WaitGroup
	for h, slot := range slots {
		wg.Go(func() {
			for i := range each {
				text := "deliver a b c; append turns x"
				if i%2 == 0 {
					text = "append turns x" // a single batch
				}
				r, err := slot.RecordEvent(context.Background(), Event(fmt.Sprintf("h%de%d", h, i), text))
				if assert.NoError(t, err) {
					assert.Equal(t, abi.StatusCommitted, r.Status)
				}
			}
		})
	}
	wg.Wait()
	sent := b.Sent()
	require.Len(t, sent, hosts*each/2*3)
	for i := 0; i < len(sent); i += 3 {
		id, _, _ := strings.Cut(sent[i], "/")
		require.Equal(t, []string{id + "/a", id + "/b", id + "/c"}, sent[i:i+3])
	}
	last, err := s.store.LastSeq(t.Context(), SpaceOf(t, slots[0]), "turns")
	require.NoError(t, err)
	require.EqualValues(t, hosts*each, last)
	held, err := slots[0].host.fleet.Held(t.Context())
	require.NoError(t, err)
	require.Empty(t, held)
}

// TestNothingPassesTheWallOfAnotherHost: once SetMode has returned, no host sends or commits a write.
func TestNothingPassesTheWallOfAnotherHost(t *testing.T) {
	b := &Scripted{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := newShared(t)
	first := s.join().slot(t, server.URL, Options{})
	others := []*Slot{s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})}
	var n atomic.Int64
	for round := range 10 {
		var wg sync.WaitGroup
		var skipped atomic.Int64
		for _, slot := range others {
			wg.Go(func() {
				for skipped.Load() < 4 {
					e := Event(fmt.Sprintf("e%d", n.Add(1)), "deliver a b; append turns x")
					if n.Load()%3 == 0 {
						e = Event(e.EventID, "append turns x")
					}
					r, err := slot.RecordEvent(context.Background(), e)
					if !assert.NoError(t, err) {
						return
					}
					if r.Status == abi.StatusSkippedReadOnly {
						skipped.Add(1)
					}
				}
			})
		}
		before := len(b.Sent())
		require.Eventually(t, func() bool { return len(b.Sent()) >= before+4 }, 30*time.Second, time.Millisecond)
		m, err := first.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
		require.NoError(t, err)
		require.Zero(t, m.InFlight)
		sent := len(b.Sent())
		last, err := s.store.LastSeq(t.Context(), SpaceOf(t, first), "turns")
		require.NoError(t, err)
		wg.Wait()
		require.Len(t, b.Sent(), sent, "round %d", round)
		now, err := s.store.LastSeq(t.Context(), SpaceOf(t, first), "turns")
		require.NoError(t, err)
		require.Equal(t, last, now)
		for _, slot := range others {
			m, err := slot.Mode(t.Context())
			require.NoError(t, err)
			require.True(t, m.ReadOnly)
		}
		_, err = others[round%2].SetMode(t.Context(), &abi.AdapterMode{Reason: "test"})
		require.NoError(t, err)
		r, err := first.RecordEvent(t.Context(), Event(fmt.Sprintf("w%d", round), "append turns x"))
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, r.Status, "writable again, at every host")
	}
}

// TestAWriteOfADeadHostIsTakenFromIt: the host died while it held the lock. Its event is uncertain, and SetMode does
// not wait for it.
func TestAWriteOfADeadHostIsTakenFromIt(t *testing.T) {
	b, clock := &Scripted{}, &FakeClock{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := newShared(t)
	doomed := s.join()
	a, other := doomed.slot(t, server.URL, Options{Now: clock.Now}), s.join().slot(t, server.URL, Options{Now: clock.Now})
	RunCommands(t, a, "first", "append turns x")
	b.Set(func() {
		b.Post = func(string) int {
			doomed.die()
			return 200
		}
	})
	_, err := a.RecordEvent(t.Context(), Event("e", "deliver a"))
	RequireCode(t, err, abi.CodeUnavailable)
	held, err := other.host.fleet.Held(t.Context())
	require.NoError(t, err)
	require.Len(t, held, 1)
	m, err := other.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	require.Zero(t, m.InFlight)
	require.Len(t, m.NotReady, 1, "the event of the dead host may still arrive")
	_, err = other.SetMode(t.Context(), &abi.AdapterMode{Reason: "test"})
	require.NoError(t, err)

	b.Set(func() { b.Post, b.Find = nil, answercheck.FoundAbsent })
	p := other.current.Load().provider
	clock.Add(p.settle() + p.deadline(abi.OpRecordEvent)/2) // enough for what this host itself had sent
	r, err := other.RecordEvent(t.Context(), Event("e", "deliver a"))
	require.NoError(t, err)
	require.Equal(t, abi.StatusUncertain, r.Status, "a request of the dead host may still land")
	require.NotNil(t, r.RetryAfterMS)
	clock.Add(time.Duration(*r.RetryAfterMS) * time.Millisecond)
	r, err = other.RecordEvent(t.Context(), Event("e", "deliver a"))
	require.NoError(t, err)
	require.Equal(t, abi.StatusCommitted, r.Status)
	require.Equal(t, []string{"e/a", "e/a"}, b.Sent())
}

// TestALateWriteIsCountedAndNamed: a host is paused between checking its session and sending. In that time another host
// raises the wall and takes over the lock. The call is sent nevertheless, and receipts, mode and cluster state report
// it.
func TestALateWriteIsCountedAndNamed(t *testing.T) {
	b := &Scripted{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := newShared(t)
	paused := s.join()
	var other *Slot
	pausedAt := func(ctx context.Context, call NativeCall, next func(context.Context) (NativeAnswer, error)) (
		NativeAnswer, error) {
		if call.Class != abi.ClassRead && !paused.isDead(paused.Self()) {
			paused.die()
			m, err := other.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test"})
			assert.NoError(t, err)
			assert.Zero(t, m.InFlight, "the turn was taken from it")
			assert.Len(t, m.NotReady, 1, "the scope of the event that may still come")
			answer, err := next(ctx)
			paused.rejoin()
			return answer, err
		}
		return next(ctx)
	}
	clock := &FakeClock{}
	host := paused.slot(t, server.URL, Options{Intercept: pausedAt, Now: clock.Now})
	other = s.join().slot(t, server.URL, Options{Now: clock.Now})
	require.Zero(t, host.host.Counts().LateWrites)
	r, err := host.RecordEvent(t.Context(), Event("e", "deliver a"))
	require.NoError(t, err)
	require.Equal(t, []string{"e/a"}, b.Sent(), "nothing holds it back any more")
	require.Equal(t, abi.StatusUncertain, r.Status)
	require.Contains(t, strings.Join(r.Warnings, "\n"), "late_write: host "+host.host.name)
	require.Equal(t, host.host.name, r.Trace.Host)
	counts := host.host.Counts()
	require.EqualValues(t, 1, counts.LateWrites)
	require.EqualValues(t, 1, counts.UncertainEvents)
	require.EqualValues(t, 1, other.host.Counts().TakeOvers)
	require.Eventually(t, func() bool {
		m, err := other.Mode(t.Context())
		return assert.NoError(t, err) && strings.Contains(strings.Join(m.Warnings, "\n"), "late_write: ")
	}, 30*time.Second, time.Millisecond)
	c, err := other.Cluster(t.Context())
	require.NoError(t, err)
	require.Len(t, c.LateWrites, 1)
	require.Equal(t, []string{"e"}, c.LateWrites[0].EventIDs)
	require.True(t, c.ReadOnly)
	require.Equal(t, "probe", c.Provider)

	_, err = other.SetMode(t.Context(), &abi.AdapterMode{Reason: "test"})
	require.NoError(t, err)
	clock.Add(time.Minute)
	m, err := other.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "the next phase"})
	require.NoError(t, err)
	require.NotContains(t, strings.Join(m.Warnings, "\n"), "late_write", "it was before this wall")
}

// TestLateWritesOfOneMomentAreAllNamed: two late writes in one scope, by a clock that does not advance between them.
func TestLateWritesOfOneMomentAreAllNamed(t *testing.T) {
	server := httptest.NewServer(&Scripted{})
	t.Cleanup(server.Close)
	paused := newShared(t).join()
	late := func(ctx context.Context, call NativeCall, next func(context.Context) (NativeAnswer, error)) (
		NativeAnswer, error) {
		if call.Class != abi.ClassRead {
			paused.die()
			defer paused.rejoin()
		}
		return next(ctx)
	}
	host := paused.slot(t, server.URL, Options{Now: (&FakeClock{}).Now, Intercept: late})
	for _, id := range []string{"e", "f"} {
		_, err := host.RecordEvent(t.Context(), Event(id, "deliver a"))
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, host.host.Counts().LateWrites)
	require.Eventually(t, func() bool {
		c, err := host.Cluster(t.Context())
		return assert.NoError(t, err) && len(c.LateWrites) == 2
	}, 30*time.Second, time.Millisecond)
}

// dyingHost is a host in the crash test: it can die at any step of a write.
type dyingHost struct {
	*member
	steps *atomic.Int64 // until it dies
}

// at is a step. It reports whether the host is still alive.
func (m *dyingHost) at() bool {
	if m.steps.Add(-1) == 0 {
		m.die()
	}
	return !m.isDead(m.Self())
}

var errDead = errors.New("the host was killed")

func (m *dyingHost) Sessions() fleet.Sessions { return m.member }

func (m *dyingHost) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if !m.at() {
		return state.CommitResult{}, errDead
	}
	r, err := m.member.Commit(ctx, b)
	if !m.at() {
		return state.CommitResult{}, errDead
	}
	return r, err
}

// TestHostsThatDieLoseAndDoubleNothing: two hosts serve; each call goes to one of them, and each dies again and again
// at some step: before and after a commit, before its request is sent, before its answer. What was not acknowledged is
// recorded again, at either host.
func TestHostsThatDieLoseAndDoubleNothing(t *testing.T) {
	brief.Leave(t)
	deaths := 300
	if testing.Short() || brief.Tests() {
		deaths = 40
	}
	const batch = 40
	for seed := uint64(0); deaths > 0; seed++ {
		random := rand.New(rand.NewPCG(seed, 22))
		b, clock := &world{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, &FakeClock{}
		server := httptest.NewServer(b)
		s := newShared(t)
		type life struct {
			*dyingHost
			slot *Slot
		}
		open := func() *life {
			m := &dyingHost{s.join(), new(atomic.Int64)}
			intercept := func(ctx context.Context, call NativeCall, next func(context.Context) (NativeAnswer, error)) (
				NativeAnswer, error) {
				if !m.at() {
					return NativeAnswer{}, errDead
				}
				answer, err := next(ctx)
				if !m.at() {
					return NativeAnswer{}, errDead
				}
				return answer, err
			}
			h, err := New(t.Context(), Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(), Now: clock.Now,
				Limits: Limits{Pool: 1}, Intercept: intercept,
				OpenStore: func(context.Context, string) (state.Store, error) { return m, nil }})
			require.NoError(t, err)
			AddSlack(h)
			slot, err := h.Open(t.Context(), ProviderConfig{Name: "probe", Module: ProbeModule,
				Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, server.URL))})
			require.NoError(t, err)
			m.steps.Store(1 + random.Int64N(40))
			return &life{m, slot}
		}
		end := func(l *life) {
			require.NoError(t, l.slot.Close(context.Background()))
			require.NoError(t, l.slot.host.Close(context.Background()))
		}
		hosts := []*life{open(), open()}
		for i := range batch {
			e := Event(fmt.Sprintf("e%03d", i), "append turns x; deliver "+strings.Join(crashParts, " "))
			for tries := 0; ; tries++ {
				require.Less(t, tries, 20, "seed %d: an event must come to its end", seed)
				at := random.IntN(len(hosts))
				r, err := hosts[at].slot.RecordEvent(t.Context(), e)
				if hosts[at].isDead(hosts[at].self) {
					end(hosts[at])
					hosts[at] = open()
					deaths--
					continue
				}
				require.NoError(t, err, "seed %d", seed)
				if r.Status == abi.StatusCommitted {
					break
				}
				clock.Add(10 * time.Second)
			}
		}
		last, err := s.store.LastSeq(t.Context(), SpaceOf(t, hosts[0].slot), "turns")
		require.NoError(t, err)
		require.LessOrEqual(t, last, int64(batch), "seed %d", seed)
		for _, l := range hosts {
			l.steps.Store(0)
			end(l)
		}
		server.Close()
		b.verify(t, batch, true, nil)
		require.True(t, slices.IsSorted(eventsOf(b.stored)), "seed %d: in order", seed)
	}
}

// eventsOf returns the events of parts; "e001/a" belongs to "e001".
func eventsOf(parts []string) []string {
	events := make([]string, len(parts))
	for i, part := range parts {
		events[i], _, _ = strings.Cut(part, "/")
	}
	return events
}

// TestASwapIsOneForAll: once a swap has returned at one host, no call at another host gets an answer of the old
// provider, and none fails.
func TestASwapIsOneForAll(t *testing.T) {
	server, _ := Backend(t)
	s := newShared(t)
	a, b := s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})
	config := func(greeting string) ProviderConfig {
		return ProviderConfig{Name: "probe", Module: ProbeModule, Namespace: greeting,
			Block:   abi.Raw(fmt.Sprintf(`{"url":%q,"api_key":{"secret":"K"}}`, server.URL)),
			Secrets: map[string]Secret{"K": {Value: func() (string, error) { return TestSecret, nil }, Origin: server.URL}}}
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for client := range 2 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				_, err := b.RecordEvent(context.Background(), Event(fmt.Sprintf("c%de%d", client, n), "append turns x"))
				assert.NoError(t, err)
				_, err = b.Retrieve(context.Background(), Ask("read turns"))
				assert.NoError(t, err)
			}
		})
	}
	for n := range 5 {
		name := fmt.Sprintf("n%d", n)
		slots := []*Slot{a, b}
		_, err := slots[n%2].Swap(t.Context(), config(name))
		if n%2 == 1 && err != nil { // b may have followed in the meantime
			RequireCode(t, err, abi.CodeConflict)
			continue
		}
		require.NoError(t, err)
		for _, slot := range slots {
			r, err := slot.Retrieve(t.Context(), Ask("read turns"))
			require.NoError(t, err)
			require.Equal(t, name, r.Trace.Scope.BackendNamespace)
			m, err := slot.Manifest(t.Context())
			require.NoError(t, err)
			require.Equal(t, name, m.Namespace)
		}
	}
	stop.Store(true)
	wg.Wait()

	// A host that starts later serves what the others do.
	late := s.join().slot(t, server.URL, Options{})
	m, err := late.Manifest(t.Context())
	require.NoError(t, err)
	require.Equal(t, "n4", m.Namespace)
	c, err := late.Cluster(t.Context())
	require.NoError(t, err)
	for _, slot := range []*Slot{a, b, late} { // a client that compares them may be talking to different hosts
		m, err := slot.Manifest(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.Generation, m.LoadGeneration)
		require.Equal(t, c.ServingSince, m.ServingSince)
	}
}

func TestAHostThatCannotLoadWhatServesAnswersNothing(t *testing.T) {
	server, _ := Backend(t)
	s := newShared(t)
	a, b := s.join().slot(t, server.URL, Options{}), s.join().slot(t, server.URL, Options{})
	other := ProviderConfig{Name: "probe", Module: ProbeModule,
		Block:   abi.Raw(fmt.Sprintf(`{"url":%q,"api_key":{"secret":"OTHER"}}`, server.URL)),
		Secrets: map[string]Secret{"OTHER": {Value: func() (string, error) { return TestSecret, nil }, Origin: server.URL}}}
	_, err := a.Swap(t.Context(), other)
	require.NoError(t, err)
	_, err = b.Retrieve(t.Context(), Ask("read turns"))
	e := RequireCode(t, err, abi.CodeUnavailable, "this one cannot load it", "OTHER")
	require.Equal(t, "provider_not_loaded", e.Reason)
	_, err = a.Swap(t.Context(), a.current.Load().provider.config)
	require.NoError(t, err)
}
