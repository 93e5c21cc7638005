package host

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const lostWarning = "memory_lost: 1 events are known not to have arrived, or only in part; memhost readiness --retry sends those in the " +
	"archive again, record the others again"

// consistencyTold retrieves and returns what the trace says about memory's completeness.
func consistencyTold(t *testing.T, s *Slot) (consistency string, warnings []string) {
	t.Helper()
	r, err := s.Retrieve(context.Background(), Ask("echo x"))
	require.NoError(t, err)
	assert.Equal(t, s.host.stamp(), r.Trace.ConsistencyAsOf)
	assert.Empty(t, r.Trace.IO, "the ledger says so, not the backend")
	return r.Trace.Consistency, r.Trace.Warnings
}

func TestRetrievalSaysHowCompleteMemoryIs(t *testing.T) {
	s, b, clock := ScriptedSlot(t, Options{NoReadinessPolls: true})
	ctx := context.Background()
	says := func(consistency string, warnings ...string) {
		t.Helper()
		c, w := consistencyTold(t, s)
		assert.Equal(t, consistency, c)
		assert.ElementsMatch(t, warnings, w)
	}
	look := func(answer string) {
		t.Helper()
		b.Set(func() { b.Ready = answer })
		_, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: TestScope})
		require.NoError(t, err)
	}
	says("committed")
	RunCommands(t, s, "at once", "echo x")
	says("committed")
	RunCommands(t, s, "1", "echo ask-1; status queued")
	RunCommands(t, s, "2", "echo ask-2; status queued")
	says("queued", "memory_pending: 2 events")
	RunCommands(t, s, "3", "echo ask-3; status pending")
	says("pending", "memory_pending: 3 events")
	b.Set(func() { b.Post = func(string) int { return 500 } })
	_, err := s.RecordEvent(ctx, Event("4", "deliver a"))
	RequireCode(t, err, abi.CodeBackend)
	says("pending", "memory_pending: 4 events")

	look(`{"status":"pending","event_ids":{"lost":["2"],"pending":["1","3"]},"method":"script"}`)
	says("pending", "memory_pending: 3 events", lostWarning)
	b.Set(func() { b.Find = answercheck.FoundPresent })
	clock.Add(4 * time.Second)
	look(`{"status":"ready","event_ids":{},"method":"script"}`)
	says("committed", lostWarning)
	b.Set(func() { b.Post = nil })
	RunCommands(t, s, "2", "echo ask-2; status queued")
	look(`{"status":"ready","event_ids":{},"method":"script"}`)
	says("committed")

	r, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "echo x", SessionID: "s",
		Scope: abi.MemoryScope{RunID: "run", PersonaID: "another"}})
	require.NoError(t, err)
	assert.Equal(t, "committed", r.Trace.Consistency, "scopes share nothing")
}

func TestListOfADataFolderOfBeforeIsRead(t *testing.T) {
	s, _, _ := ScriptedSlot(t, Options{NoReadinessPolls: true})
	RunCommands(t, s, "1", "echo ask-1; status queued")
	sc, err := s.current.Load().provider.scopeOf(TestScope)
	require.NoError(t, err)
	var b state.Batch
	b.PutRecord(delivery.TableUnseen, delivery.Key(SpaceOf(t, s), "1"), sc.key[:]) // in the format of older versions
	require.NoError(t, s.host.commit(context.Background(), &b))
	c, w := consistencyTold(t, s)
	assert.Equal(t, "queued", c)
	assert.Equal(t, []string{"memory_pending: 1 events"}, w)
	m, err := s.Mode(context.Background())
	require.NoError(t, err)
	assert.Equal(t, []abi.MemoryScope{TestScope}, m.NotReady)
}

// TestPendingEndsByItself makes the polls itself, with its own clock; usually a timer makes them once a second.
func TestPendingEndsByItself(t *testing.T) {
	s, b, clock := ScriptedSlot(t, Options{NoReadinessPolls: true})
	ctx, due, p := context.Background(), polls{}, s.current.Load().provider
	looks := func() (n int) {
		b.Set(func() { n = len(b.Asked) })
		return n
	}
	b.Set(func() {
		b.Ready, b.Find = `{"status":"pending","event_ids":{"pending":["1"]},"method":"script"}`, answercheck.FoundUnknown
	})
	s.pollOutstanding(ctx, p, due)
	assert.Empty(t, due, "nothing is delivery.Outstanding")
	RunCommands(t, s, "1", "echo ask-1; status queued")
	var at []int // seconds at which there was a poll
	for second := range 200 {
		before := looks()
		s.pollOutstanding(ctx, p, due)
		if looks() > before {
			at = append(at, second)
		}
		clock.Add(time.Second)
	}
	assert.Equal(t, []int{1, 3, 7, 15, 31, 63, 123, 183}, at, "1 s after the write, and then after 2 s to 60 s")
	RunCommands(t, s, "2", "echo ask-2; status queued")
	s.pollOutstanding(ctx, p, due)
	clock.Add(time.Second)
	before := looks()
	s.pollOutstanding(ctx, p, due)
	assert.Equal(t, before+1, looks(), "a new event is looked for soon")
	b.Set(func() { b.Ready = `{"status":"ready","event_ids":{},"method":"script"}` })
	clock.Add(2 * time.Second)
	s.pollOutstanding(ctx, p, due)
	c, _ := consistencyTold(t, s)
	assert.Equal(t, "committed", c)
	s.pollOutstanding(ctx, p, due)
	assert.Empty(t, due)
}

func TestUncertainEndsByItselfWithoutReadiness(t *testing.T) {
	s, b, clock := ScriptedSlot(t, Options{NoReadinessPolls: true})
	WithoutCapability(s, abi.OpReadiness)
	ctx, due, p := context.Background(), polls{}, s.current.Load().provider
	b.Set(func() { b.Post, b.Find = func(string) int { return 500 }, answercheck.FoundAbsent })
	_, err := s.RecordEvent(ctx, Event("e", "deliver a"))
	RequireCode(t, err, abi.CodeBackend)
	s.pollOutstanding(ctx, p, due)
	clock.Add(4 * time.Second)
	s.pollOutstanding(ctx, p, due)
	c, w := consistencyTold(t, s)
	assert.Equal(t, "committed", c)
	assert.Equal(t, []string{lostWarning}, w)
}

// TestPollsAreDoneByTheHost waits for the timer's polls.
func TestPollsAreDoneByTheHost(t *testing.T) {
	seen := make(chan string, 100)
	s, b, clock := ScriptedSlot(t, Options{Observe: func(o Observation) { seen <- o.Operation }})
	b.Set(func() { b.Ready = `{"status":"ready","event_ids":{},"method":"script"}` })
	RunCommands(t, s, "1", "echo ask-1; status queued")
	stop := time.After(20 * time.Second)
	for {
		clock.Add(time.Second)
		select {
		case op := <-seen:
			if op == abi.OpReadiness {
				return
			}
		case <-time.After(100 * time.Millisecond):
		case <-stop:
			t.Fatal("nobody looked")
		}
	}
}

// countingStore counts the commits of a store. If overtaken is set, the first commit that changes several ledger
// records fails as if another writer had changed them.
type countingStore struct {
	state.Store
	commits   int
	overtaken bool
}

func (s *countingStore) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	s.commits++
	if s.overtaken && b.Len() > 2 {
		s.overtaken = false
		return state.CommitResult{}, state.ErrConflict
	}
	return s.Store.Commit(ctx, b)
}

// A memory that processes events later may have thousands of events that become ready at once.
func TestALookAtManyEventsCommitsSomeTimes(t *testing.T) {
	s, b, _ := ScriptedSlot(t, Options{NoReadinessPolls: true})
	h, events := s.host, 0
	store := &countingStore{Store: h.store}
	look := func(more int) (commits int) {
		for range more {
			RunCommands(t, s, fmt.Sprintf("e%03d", events), fmt.Sprintf("echo ask-%d; status queued", events))
			events++
		}
		h.store, h.fleet = store, fleet.Of(store)
		defer func() { h.store, h.fleet = store.Store, fleet.Of(store.Store) }()
		before := store.commits
		_, err := s.lookReady(t.Context(), &abi.ReadinessRequest{Scope: TestScope})
		require.NoError(t, err)
		return store.commits - before
	}
	b.Set(func() { b.Ready = `{"status":"ready","event_ids":{"pending":["e007"]},"method":"script"}` })
	require.LessOrEqual(t, look(230), 3)
	_, warnings := consistencyTold(t, s)
	require.Equal(t, []string{"memory_pending: 1 events"}, warnings)

	store.overtaken = true
	b.Set(func() { b.Ready = `{"status":"ready","event_ids":{},"method":"script"}` })
	require.Equal(t, 4, look(2), "where a writer was faster each is tried alone")
	consistency, _ := consistencyTold(t, s)
	require.Equal(t, "committed", consistency)
}
