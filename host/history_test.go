package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/test/brief"
	past "github.com/memhost/memhost/internal/test/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests run clients of three hosts that share a store. Hosts are paused beyond their sessions, answers of the
// backend are lost, and requests arrive late. What the clients see must fit the model in package past. Then the same
// runs with a bug planted in the hosts, which breaks something that they do or rely on. The checker must find each of
// these bugs.

// plant is a planted bug.
type plant int

const (
	noBug plant = iota
	// noFence: commits do not check that the host still holds the scope's lock, with its epoch.
	noFence
	// staleRead: a read returns what the store had at the previous read.
	staleRead
	// earlyResend: a host that settles an event does not wait until requests can no longer arrive. Its clock is an hour
	// ahead.
	earlyResend
	// noCount: commits do not raise the count by which a host knows that what it has read of a scope is still current.
	noCount
	// staleCount: that count is the one of the host's previous look at it.
	staleCount
)

// pausableHost is a host in these runs: its process can be paused between any two steps.
type pausableHost struct {
	*member
	plant plant
	slot  *Slot
	gate  sync.RWMutex // a step holds it for reading, a pause for writing

	mu     sync.Mutex
	old    map[string]state.Entries // results of the last read of each log
	counts map[string][]byte        // and of each commit count
}

func (m *pausableHost) step() func() {
	m.gate.RLock()
	return m.gate.RUnlock
}

// pause stops the host until its session has ended and others have continued.
func (m *pausableHost) pause(d time.Duration) {
	m.gate.Lock()
	defer m.gate.Unlock()
	m.die()
	time.Sleep(d) // what the others do in that time is random too
	m.rejoin()
}

func (m *pausableHost) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	defer m.step()()
	switch m.plant {
	case noFence:
		b = without(b, state.OpExpectRecord, fleet.TableLocks)
	case noCount:
		b = without(b, state.OpPutRecord, opstate.TableCommits)
	}
	return m.member.Commit(ctx, b)
}

// without removes the operations of a kind on a table from a batch.
func without(b *state.Batch, kind state.OpKind, table state.Table) *state.Batch {
	var open state.Batch
	for _, o := range b.Ops() {
		if o.Kind == kind && o.Table == table {
			continue
		}
		switch o.Kind {
		case state.OpExpectRecord:
			open.ExpectRecord(o.Table, []byte(o.Name), o.Value)
		case state.OpPut:
			open.Put(o.Space, o.Name, o.Value, o.Expected)
		case state.OpAppend:
			open.Append(o.Space, o.Name, o.Value)
		case state.OpDeletePrefix:
			open.DeletePrefix(o.Space, o.Name)
		case state.OpPutRecord:
			open.PutRecord(o.Table, []byte(o.Name), o.Value)
		case state.OpDeleteRecord:
			open.DeleteRecord(o.Table, []byte(o.Name))
		}
	}
	return &open
}

func (m *pausableHost) Record(ctx context.Context, table state.Table, key []byte) ([]byte, error) {
	now, err := m.member.Record(ctx, table, key)
	if err != nil || table != opstate.TableCommits || m.plant != staleCount {
		return now, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.counts[string(key)]
	m.counts[string(key)] = now
	if !ok {
		return now, nil
	}
	return before, nil
}

func (m *pausableHost) ReadLog(ctx context.Context, space state.Space, q state.LogQuery) (state.Entries, error) {
	defer m.step()()
	now, err := m.member.ReadLog(ctx, space, q)
	if err != nil || m.plant != staleRead {
		return now, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(space, q)
	before, ok := m.old[key]
	m.old[key] = now
	if !ok {
		return now, nil
	}
	return before, nil
}

// lossyBackend is a backend in these runs. It stores parts of events, loses answers and requests, and delays requests: they
// arrive within 2 s after the event was first sent, by the hosts' clock, which is within the guest's settle_ms.
type lossyBackend struct {
	clock    *FakeClock
	recorder *past.Recorder
	random   *rand.Rand

	mu    sync.Mutex
	first map[string]time.Time // the time before an event was first sent
	have  map[string]int       // of "event/part"
	calls map[string]int       // bodies of requests whose senders are still waiting
	late  []latePart
}

// calling records that the sender of a request starts or stops waiting.
func (d *lossyBackend) calling(body []byte, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[string(body)] += n
}

func (d *lossyBackend) store(part string) {
	d.have[part]++
	event, name, _ := strings.Cut(part, "/")
	now := d.recorder.Now()
	d.recorder.Add(past.Op{Kind: past.Post, Client: 99, Scope: event[:2], Event: event,
		Part: slices.Index([]string{"a", "b"}, name), Call: now, Return: now})
}

// advance advances the clock. Requests that are due by then arrive first.
func (d *lossyBackend) advance(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now().Add(by)
	d.late = slices.DeleteFunc(d.late, func(l latePart) bool {
		if l.at.After(now) {
			return false
		}
		d.store(l.part)
		return true
	})
	d.clock.Add(by)
}

// sending records when an event is first recorded.
func (d *lossyBackend) sending(event string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first[event].IsZero() {
		d.first[event] = d.clock.Now()
	}
}

func (d *lossyBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.URL.Path == "/find" {
		event := r.URL.Query().Get("event")
		var missing []string
		for _, part := range []string{"a", "b"} {
			if d.have[event+"/"+part] == 0 {
				missing = append(missing, part)
			}
		}
		_, _ = w.Write([]byte([]string{"present", "partial " + strings.Join(missing, " "), "absent"}[len(missing)]))
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || d.calls[string(text)] == 0 {
		return // on a busy machine a request may arrive too late, by an unlimited time, so treat it as lost
	}
	var body struct{ Event, Part string }
	if json.Unmarshal(text, &body) != nil {
		return
	}
	part := body.Event + "/" + body.Part
	at := d.first[body.Event].Add(lateBy)
	fate := d.random.IntN(10)
	switch {
	case fate == 0: // the request is lost
	case fate == 1 && at.After(d.clock.Now()):
		d.late = append(d.late, latePart{part, at})
	default:
		d.store(part)
	}
	if fate < 3 {
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.Close()
	}
}

// historyRun is one run: clients record and read at three hosts.
type historyRun struct {
	t      *testing.T
	hosts  []*pausableHost
	back   *lossyBackend
	rec    *past.Recorder
	events int // per client
}

// play runs clients until each has recorded its events, and returns the history.
func play(t *testing.T, seed uint64, p plant) []past.Op {
	random := rand.New(rand.NewPCG(seed, 22))
	clock, rec := &FakeClock{}, past.NewRecorder()
	back := &lossyBackend{clock: clock, recorder: rec, random: rand.New(rand.NewPCG(seed, 23)),
		first: map[string]time.Time{}, have: map[string]int{}, calls: map[string]int{}}
	server := httptest.NewServer(back)
	defer server.Close()
	d := &historyRun{t: t, back: back, rec: rec, events: 12}
	s := newShared(t)
	for i := range 3 {
		m := &pausableHost{member: s.join(), plant: p, old: map[string]state.Entries{}, counts: map[string][]byte{}}
		o := Options{Now: clock.Now, Limits: Limits{Pool: 2}}
		if p == earlyResend && i == 0 {
			o.Now = func() time.Time { return clock.Now().Add(time.Hour) }
		}
		o.Intercept = func(ctx context.Context, call NativeCall, next func(context.Context) (NativeAnswer, error)) (
			NativeAnswer, error) {
			done := m.step()
			back.calling(call.Body, 1)
			answer, err := next(ctx)
			back.calling(call.Body, -1)
			done()
			defer m.step()() // it may be paused here, before returning the answer
			return answer, err
		}
		o.OpenStore = func(context.Context, string) (state.Store, error) { return m, nil }
		m.slot = NetSlot(t, server.URL, o)
		d.hosts = append(d.hosts, m)
	}
	over, end := context.WithCancel(t.Context())
	var trouble, clients sync.WaitGroup
	own := rand.New(rand.NewPCG(random.Uint64(), 22))
	trouble.Go(func() {
		for over.Err() == nil {
			time.Sleep(time.Duration(own.IntN(8)) * time.Millisecond)
			d.hosts[own.IntN(3)].pause(time.Duration(5+own.IntN(20)) * time.Millisecond)
		}
	})
	modes := rand.New(rand.NewPCG(random.Uint64(), 22))
	trouble.Go(func() {
		for over.Err() == nil {
			time.Sleep(time.Duration(modes.IntN(60)) * time.Millisecond)
			d.wall(over, modes)
		}
	})
	for client := range 6 {
		own := rand.New(rand.NewPCG(random.Uint64(), 22))
		clients.Go(func() { d.client(client, own) })
	}
	clients.Wait()
	end()
	trouble.Wait()
	ops := rec.Ops()
	late := map[string]bool{}
	var cluster *report.Cluster
	require.Eventually(t, func() bool { // a late write is reported once its host has a session again
		var counted int64
		for _, m := range d.hosts {
			counted += m.slot.host.Counts().LateWrites
		}
		var err error
		cluster, err = d.hosts[0].slot.Cluster(t.Context())
		return assert.NoError(t, err) && int64(len(cluster.LateWrites)) == counted
	}, 30*time.Second, 10*time.Millisecond)
	for _, w := range cluster.LateWrites {
		for _, id := range w.EventIDs {
			late[id] = true
		}
	}
	for i := range ops {
		ops[i].Late = late[ops[i].Event]
	}
	return ops
}

// wall makes all scopes read-only and writable again. It stops when the clients have finished.
func (d *historyRun) wall(over context.Context, random *rand.Rand) {
	for _, readOnly := range []bool{true, false} {
		for done := false; !done; {
			op := past.Op{Kind: past.SetMode, Client: 98, ReadOnly: readOnly, Call: d.rec.Now()}
			m, err := d.hosts[random.IntN(3)].slot.SetMode(d.t.Context(), &abi.AdapterMode{ReadOnly: readOnly,
				Reason: "test"})
			op.Return, op.Open = d.rec.Now(), err != nil
			if err == nil {
				op.All = m.InFlight > 0
				for _, scope := range m.NotReady {
					op.NotReady = append(op.NotReady, scope.PersonaID)
				}
			}
			d.rec.Add(op)
			done = err == nil || readOnly || over.Err() != nil
			if !done {
				time.Sleep(time.Millisecond) // a busy loop would keep the hosts from renewing their sessions
			}
		}
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
}

// client records events one after another, each until it is committed, at any host. It does not wait for a paused host:
// it calls another one, and uses the first answer.
func (d *historyRun) client(client int, random *rand.Rand) {
	scope := fmt.Sprintf("s%d", client/2)
	var outstanding sync.WaitGroup
	for i := range d.events {
		e := Event(fmt.Sprintf("%sc%de%02d", scope, client, i), "deliver a b")
		if local := random.IntN(3) == 0; local {
			e = Event(e.EventID, "echo nothing")
		}
		e.UserID = scope
		d.back.sending(e.EventID)
		for tries := 0; ; tries++ {
			if tries > 2000 {
				d.t.Errorf("event %s must come to its end", e.EventID)
				return
			}
			answered := make(chan abi.WriteStatus, 1)
			at := d.hosts[random.IntN(3)].slot
			outstanding.Go(func() { answered <- d.record(client, scope, at, e) })
			var status abi.WriteStatus
			select {
			case status = <-answered:
			case <-time.After(20 * time.Millisecond):
			}
			if status == abi.StatusCommitted {
				break
			}
			if status == abi.StatusUncertain {
				d.back.advance(time.Second)
			}
			time.Sleep(time.Millisecond)
		}
		if random.IntN(2) == 0 {
			d.retrieve(client, scope, d.hosts[random.IntN(3)].slot)
		}
	}
	outstanding.Wait()
	for range 3 {
		d.retrieve(client, scope, d.hosts[random.IntN(3)].slot)
	}
}

func (d *historyRun) record(client int, scope string, at *Slot, e *abi.MemoryEvent) abi.WriteStatus {
	op := past.Op{Kind: past.Record, Client: client, Scope: scope, Event: e.EventID, Call: d.rec.Now(),
		Local: *e.Messages[0].Content != "deliver a b"}
	r, err := at.RecordEvent(context.Background(), e)
	op.Return = d.rec.Now()
	defer func() { d.rec.Add(op) }()
	switch {
	case err != nil:
		op.Open = true
		return ""
	case r.Status == abi.StatusCommitted && r.Duplicate:
		op.Outcome = past.Repeated
	case r.Status == abi.StatusCommitted:
		op.Outcome, op.Generation = past.Fresh, r.Trace.Generation
	case r.Status == abi.StatusSkippedReadOnly:
		op.Outcome = past.Skipped
	default:
		op.Open = true
	}
	return r.Status
}

func (d *historyRun) retrieve(client int, scope string, at *Slot) {
	op := past.Op{Kind: past.Retrieve, Client: client, Scope: scope, Call: d.rec.Now()}
	// The second read makes the host compare the commit count, so that it may keep what the first one returned.
	r, err := at.Retrieve(d.t.Context(), &abi.RetrieveRequest{Query: "read events; read nothing", SessionID: "s2",
		Scope: abi.MemoryScope{RunID: TestScope.RunID, PersonaID: scope}})
	op.Return = d.rec.Now()
	if err != nil {
		return
	}
	var said string
	if !assert.NoError(d.t, json.Unmarshal(r.Raw.Calls[0].Body, &said)) {
		return
	}
	for _, entry := range strings.Fields(said) {
		_, id, _ := strings.Cut(entry, "=")
		op.Events = append(op.Events, id)
	}
	op.Generation = r.Trace.Generation
	d.rec.Add(op)
}

func TestHistoriesOfHostsThatSleepAreLinearizable(t *testing.T) {
	brief.Leave(t)
	runs := uint64(8)
	if brief.Tests() {
		runs = 2
	}
	for seed := range runs {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			report, err := past.Check(play(t, seed, noBug), time.Minute)
			require.NoError(t, err)
			t.Log(report)
			require.Equal(t, 3, report.Linearizable)
		})
	}
}

// TestPlantedBugsAreFound tests the checker itself. Each of these bugs would lose, double or misplace events.
func TestPlantedBugsAreFound(t *testing.T) {
	for name, bug := range map[string]plant{"no fence": noFence, "stale read": staleRead, "early resend": earlyResend,
		"no count": noCount, "stale count": staleCount} {
		t.Run(name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 40 && !found; seed++ {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					report, err := past.Check(play(t, seed, bug), time.Minute)
					// On a busy machine the minute may end before a history is decided: then another one has to show the bug.
					found = report.Illegal > 0
					t.Log(report, err)
				})
			}
			require.True(t, found, "40 histories of hosts with this bug fit the model")
		})
	}
}
