package host

import (
	"context"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadOnlyIsAWall(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := openSlot(t, open(t, Options{DataDir: dir}), probeConfig(`{}`))
	told(t, s, "e1", "append turns one")
	r, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test sessions"})
	require.NoError(t, err)
	assert.True(t, r.ReadOnly)
	assert.Equal(t, "host", r.EnforcedBy)
	skipped, err := s.RecordEvent(ctx, event("e2", "panic the guest was entered"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusSkippedReadOnly, skipped.Status)
	mutation, err := s.NativeMutation(ctx, &abi.NativeMutation{Scope: testScope, Name: "panic", Reason: "r"})
	require.NoError(t, err)
	assert.EqualValues(t, abi.StatusSkippedReadOnly, mutation.Status)
	_, err = s.ResetScope(ctx, testScope)
	requireCode(t, err, abi.CodeReadOnly)
	assert.Equal(t, []string{"1=one "}, retrieved(t, s, "read turns"))
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: false, Reason: "over"})
	require.NoError(t, err)
	told(t, s, "e2", "append turns two")
	assert.Equal(t, []string{"1=one 2=two "}, retrieved(t, s, "read turns"), "what was skipped was not ledgered")
}

func TestTestSessionsAreReadOnlyByThemselves(t *testing.T) {
	c := probeConfig(`{}`)
	c.TestSessions = []string{"test-*", "eval?"}
	s := openSlot(t, open(t, Options{}), c)
	ctx := context.Background()
	for session, skipped := range map[string]bool{"s1": false, "test-1": true, "test-": true, "a test-1": false,
		"eval1": true, "eval12": false, "TEST-1": false, "test-a/b\n": true} {
		e := event("in "+session, "append turns x")
		e.SessionID = session
		r, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
		assert.Equal(t, skipped, r.Status == abi.StatusSkippedReadOnly, session)
	}
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*event("b1", "append batch 1"), *event("b2", "append batch 2"),
		*event("b3", "append batch 3")}}
	batch.Events[1].SessionID = "test-2"
	out, err := s.RecordEvents(ctx, batch)
	require.NoError(t, err)
	assert.Equal(t, abi.StatusSkippedReadOnly, out.Receipts[1].Receipt.Status)
	assert.Equal(t, []string{"1=1 2=3 "}, retrieved(t, s, "read batch"))
}

func TestModeSurvivesARestart(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir()})
	require.NoError(t, err)
	patient(h)
	s, err := h.Open(ctx, probeConfig(`{}`))
	require.NoError(t, err)
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	s = openSlot(t, open(t, Options{DataDir: dir}), probeConfig(`{}`))
	m, err := s.Mode(ctx)
	require.NoError(t, err)
	assert.True(t, m.ReadOnly)
}

func TestReadOnlyRefusesEveryCallThatIsNotARead(t *testing.T) {
	server, calls := backend(t)
	s := netSlot(t, server.URL, Options{})
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Retrieve(context.Background(), ask("http post body={}"))
	requireCode(t, err, abi.CodeReadOnly, "class write")
	_, err = s.Retrieve(context.Background(), ask(`http mcp_add body={"method":"tools/call","params":{"name":"add"}}`))
	requireCode(t, err, abi.CodeReadOnly)
	assert.Zero(t, calls.Load())
	retrieved(t, s, `http mcp_search body={"method":"tools/call","params":{"name":"search"}}`)
	assert.EqualValues(t, 1, calls.Load())
}

func TestWriteThatWasAdmittedGoesOnWhenTheModeChanges(t *testing.T) {
	server, calls := backend(t)
	s := netSlot(t, server.URL, Options{Limits: Limits{ModeWait: time.Millisecond}})
	sc, err := s.current.Load().provider.scopeOf(testScope)
	require.NoError(t, err)
	require.NoError(t, sc.writing.Acquire(context.Background(), "test"))
	done := make(chan *abi.WriteReceipt)
	go func() {
		r, err := s.RecordEvent(context.Background(), event("e", "append turns x; http post body={}"))
		assert.NoError(t, err)
		done <- r
	}()
	require.Eventually(t, func() bool {
		m, err := s.Mode(context.Background())
		return err == nil && m.InFlight == 1
	}, 10*time.Second,
		time.Millisecond)
	m, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, m.InFlight, "the receipt tells of it")
	<-sc.writing
	assert.Equal(t, abi.StatusCommitted, (<-done).Status)
	assert.EqualValues(t, 1, calls.Load())
	assert.Equal(t, []string{"1=x "}, retrieved(t, s, "read turns"))
}

func TestStateIsNotWrittenByAReadingOperation(t *testing.T) {
	_, err := probeSlot(t, `{}`).Retrieve(context.Background(), ask("write_in_read"))
	requireCode(t, err, abi.CodeDenied, "only reads")
}

func TestScopeIsReadOnlyByItself(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir()})
	require.NoError(t, err)
	patient(h)
	s, err := h.Open(ctx, probeConfig(`{}`))
	require.NoError(t, err)
	told(t, s, "e1", "append turns one")
	m, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test", Scope: &testScope})
	require.NoError(t, err)
	assert.True(t, m.ReadOnly)
	assert.Equal(t, testScope, *m.Scope)
	check := func(s *Slot) {
		t.Helper()
		r, err := s.RecordEvent(ctx, event("e2", "append turns two"))
		require.NoError(t, err)
		assert.Equal(t, abi.StatusSkippedReadOnly, r.Status)
		_, err = s.ResetScope(ctx, testScope)
		requireCode(t, err, abi.CodeReadOnly)
		other := event("e2", "append turns two")
		other.UserID = "other"
		r, err = s.RecordEvent(ctx, other)
		require.NoError(t, err)
		assert.Equal(t, abi.StatusCommitted, r.Status, "other scopes go on")
		slot, err := s.Mode(ctx)
		require.NoError(t, err)
		assert.False(t, slot.ReadOnly)
	}
	check(s)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	s = openSlot(t, open(t, Options{DataDir: dir}), probeConfig(`{}`))
	check(s)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "over", Scope: &testScope})
	require.NoError(t, err)
	told(t, s, "e2", "append turns two")
}

func TestGoingReadOnlyWaitsForWritesUnderWay(t *testing.T) {
	s, b, _ := scriptedSlot(t, Options{})
	arrived, goOn := make(chan struct{}), make(chan struct{})
	b.set(func() { b.post = func(string) int { close(arrived); <-goOn; return 200 } })
	done := make(chan *abi.WriteReceipt)
	go func() {
		r, err := s.RecordEvent(context.Background(), event("e", "deliver a"))
		assert.NoError(t, err)
		done <- r
	}()
	<-arrived
	set := make(chan *abi.ModeReceipt)
	go func() {
		m, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
		assert.NoError(t, err)
		set <- m
	}()
	require.Eventually(t, func() bool { return s.wall.ReadOnly(wall.Slot) }, 10*time.Second, time.Millisecond)
	select {
	case <-set:
		t.Fatal("the mode was answered while a write was under way")
	default:
	}
	close(goOn)
	assert.Zero(t, (<-set).InFlight)
	assert.Equal(t, abi.StatusCommitted, (<-done).Status)
}

// An instance starts without a scope and not for a particular caller, so no read-only mode could be checked.
func TestAnInstanceThatStartsMayOnlyRead(t *testing.T) {
	server, calls := backend(t)
	start := netSlot(t, server.URL, Options{}).current.Load().provider.starting()
	start.Deadline = time.Now().Add(10 * time.Second)
	_, _, err := start.Powers.HTTP(t.Context(), &abi.HTTPRequest{Route: "post"}, []byte("{}"))
	requireCode(t, err, abi.CodeDenied, "class write", "may only read")
	_, err = start.Powers.StatePut(t.Context(), "k", []byte("v"), abi.AnyVersion)
	requireCode(t, err, abi.CodeDenied, "has no scope")
	assert.Zero(t, calls.Load())
	_, _, err = start.Powers.HTTP(t.Context(), &abi.HTTPRequest{Route: "get"}, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, calls.Load())
}
