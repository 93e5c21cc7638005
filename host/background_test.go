package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBackgroundWorkRunsWhenItIsDue(t *testing.T) {
	s, _, clock := ScriptedSlot(t, Options{})
	ctx := context.Background()
	p := s.current.Load().provider
	RunCommands(t, s, "e1", "put work append,did,it")
	due := func() string {
		t.Helper()
		s.runDue(ctx, p)
		return Retrieved(t, s, "read did")[0]
	}
	assert.Equal(t, "1=it ", due())
	assert.Equal(t, "1=it ", due(), "not due again")
	clock.Add(time.Minute)
	assert.Equal(t, "1=it 2=it ", due())
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	clock.Add(time.Minute)
	assert.Equal(t, "1=it 2=it ", due(), "nothing is worked off while read-only")
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r"})
	require.NoError(t, err)
	assert.Equal(t, "1=it 2=it 3=it ", due(), "it stayed due")
	clock.Add(-24 * time.Hour)
	assert.Equal(t, "1=it 2=it 3=it 4=it ", due(), "a clock that goes back stops nothing")
}

func TestBackgroundWorkOfOtherProvidersScopesIsNotTouched(t *testing.T) {
	s, _, _ := ScriptedSlot(t, Options{})
	RunCommands(t, s, "e1", "put work append,did,it")
	c := s.current.Load().provider.config
	c.Name = "probe_backend"
	_, err := s.Swap(context.Background(), c)
	require.NoError(t, err)
	s.runDue(context.Background(), s.current.Load().provider)
	c.Name = "probe"
	_, err = s.Swap(context.Background(), c)
	require.NoError(t, err)
	assert.Equal(t, []string{""}, Retrieved(t, s, "read did"))
}

// yielding is a slot whose background work blocks in a native call until the test releases it.
func yielding(t *testing.T, work string) (s *Slot, during func(func()) error) {
	t.Helper()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-goOn
	}))
	t.Cleanup(server.Close)
	s = NetSlot(t, server.URL, Options{})
	RunCommands(t, s, "e1", "put work http,get|"+work+"; put k 1")
	return s, func(meanwhile func()) error {
		done := make(chan error, 1)
		go func() { done <- s.work(context.Background(), s.current.Load().provider, TestScope) }()
		select {
		case <-arrived:
		case err := <-done:
			require.NoError(t, err)
			t.Fatal("the work ended before its native call")
		}
		meanwhile()
		close(goOn)
		return <-done
	}
}

func TestWorkThatYieldsLetsOtherWritesPass(t *testing.T) {
	s, during := yielding(t, "append,did,it")
	require.NoError(t, during(func() { RunCommands(t, s, "e2", "append turns meanwhile") }))
	assert.Equal(t, []string{"1=it ", "1=meanwhile "}, Retrieved(t, s, "read did; read turns"))
}

func TestWorkThatYieldsCommitsByVersion(t *testing.T) {
	s, during := yielding(t, "put,k,mine,1")
	err := during(func() { RunCommands(t, s, "e2", "put k theirs") })
	RequireCode(t, err, abi.CodeConflict)
	assert.Equal(t, []string{"theirs", ""}, Retrieved(t, s, "get k; read worked"), "all of it or nothing")
}

func TestWorkThatYieldsDoesNotReachIntoTheNextGeneration(t *testing.T) {
	s, during := yielding(t, "append,did,it")
	err := during(func() {
		_, err := s.ResetScope(context.Background(), TestScope)
		require.NoError(t, err)
	})
	RequireCode(t, err, abi.CodeConflict, "reset meanwhile")
	assert.Equal(t, []string{""}, Retrieved(t, s, "read did"))
}

func TestReadinessWithTimeLetsTheGuestWork(t *testing.T) {
	b, c := &Scripted{Ready: `{"status":"pending","event_ids":{},"method":"script"}`}, &FakeClock{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s := netSlotOn(t, Impatient(Open(t, Options{Now: c.Now})), server.URL)
	RunCommands(t, s, "e1", "echo ask; put work append,did,it")
	look := func(ms int64) {
		t.Helper()
		r, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: TestScope, TimeoutMS: ms})
		require.NoError(t, err)
		assert.Equal(t, abi.ReadinessPending, r.Status, "time over is pending")
	}
	look(0)
	assert.Equal(t, []string{""}, Retrieved(t, s, "read did"), "one look does no work")
	ms, did := int64(5), ""
	Until(t, "the guest works", func() bool { // on a slow machine, the poll alone may take that long
		look(ms)
		ms *= 2
		did = Retrieved(t, s, "read did")[0]
		return did != ""
	})
	assert.LessOrEqual(t, len(strings.Fields(did)), 10, "it always says that it worked, and is not asked without a pause")
	RunCommands(t, s, "e2", "echo ask; del did")
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	look(5)
	assert.Equal(t, []string{""}, Retrieved(t, s, "read did"), "nothing is worked off while read-only")
}

func TestOfTheWorkThatYieldsOneRunsAtATime(t *testing.T) {
	s, during := yielding(t, "append,did,it")
	require.NoError(t, during(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		RequireCode(t, s.work(ctx, s.current.Load().provider, TestScope), abi.CodeTimeout, "still running")
	}))
	assert.Equal(t, []string{"1=it "}, Retrieved(t, s, "read did"), "the second was not entered")
}

func TestAnExchangeHasItsOwnTimeWhereTheGuestAsksForIt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s := NetSlot(t, server.URL, Options{})
	_, err := s.RecordEvent(context.Background(), Event("e1", "http get timeout_ms=20"))
	e := RequireCode(t, err, abi.CodeTimeout, "did not answer route get in time")
	assert.NotEqual(t, guest.ReasonStopped, e.Reason, "the guest went on and said so itself")
	RequireUsable(t, s, "e2")
}
