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
	s := OpenSlot(t, Open(t, Options{DataDir: dir}), ProbeConfig(`{}`))
	RunCommands(t, s, "e1", "append turns one")
	r, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test sessions"})
	require.NoError(t, err)
	assert.True(t, r.ReadOnly)
	assert.Equal(t, "host", r.EnforcedBy)
	skipped, err := s.RecordEvent(ctx, Event("e2", "panic the guest was entered"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusSkippedReadOnly, skipped.Status)
	mutation, err := s.NativeMutation(ctx, &abi.NativeMutation{Scope: TestScope, Name: "panic", Reason: "r"})
	require.NoError(t, err)
	assert.EqualValues(t, abi.StatusSkippedReadOnly, mutation.Status)
	_, err = s.ResetScope(ctx, TestScope)
	RequireCode(t, err, abi.CodeReadOnly)
	assert.Equal(t, []string{"1=one "}, Retrieved(t, s, "read turns"))
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: false, Reason: "over"})
	require.NoError(t, err)
	RunCommands(t, s, "e2", "append turns two")
	assert.Equal(t, []string{"1=one 2=two "}, Retrieved(t, s, "read turns"), "what was skipped was not ledgered")
}

func TestTestSessionsAreReadOnlyByThemselves(t *testing.T) {
	c := ProbeConfig(`{}`)
	c.TestSessions = []string{"test-*", "eval?"}
	s := OpenSlot(t, Open(t, Options{}), c)
	ctx := context.Background()
	for session, skipped := range map[string]bool{"s1": false, "test-1": true, "test-": true, "a test-1": false,
		"eval1": true, "eval12": false, "TEST-1": false, "test-a/b\n": true} {
		e := Event("in "+session, "append turns x")
		e.SessionID = session
		r, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
		assert.Equal(t, skipped, r.Status == abi.StatusSkippedReadOnly, session)
	}
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*Event("b1", "append batch 1"), *Event("b2", "append batch 2"),
		*Event("b3", "append batch 3")}}
	batch.Events[1].SessionID = "test-2"
	out, err := s.RecordEvents(ctx, batch)
	require.NoError(t, err)
	assert.Equal(t, abi.StatusSkippedReadOnly, out.Receipts[1].Receipt.Status)
	assert.Equal(t, []string{"1=1 2=3 "}, Retrieved(t, s, "read batch"))
}

func TestModeSurvivesARestart(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir()})
	require.NoError(t, err)
	AddSlack(h)
	s, err := h.Open(ctx, ProbeConfig(`{}`))
	require.NoError(t, err)
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	s = OpenSlot(t, Open(t, Options{DataDir: dir}), ProbeConfig(`{}`))
	m, err := s.Mode(ctx)
	require.NoError(t, err)
	assert.True(t, m.ReadOnly)
}

func TestReadOnlyRefusesEveryCallThatIsNotARead(t *testing.T) {
	server, calls := Backend(t)
	s := NetSlot(t, server.URL, Options{})
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Retrieve(context.Background(), Ask("http post body={}"))
	RequireCode(t, err, abi.CodeReadOnly, "class write")
	_, err = s.Retrieve(context.Background(), Ask(`http mcp_add body={"method":"tools/call","params":{"name":"add"}}`))
	RequireCode(t, err, abi.CodeReadOnly)
	assert.Zero(t, calls.Load())
	Retrieved(t, s, `http mcp_search body={"method":"tools/call","params":{"name":"search"}}`)
	assert.EqualValues(t, 1, calls.Load())
}

func TestWriteThatWasAdmittedGoesOnWhenTheModeChanges(t *testing.T) {
	server, calls := Backend(t)
	s := NetSlot(t, server.URL, Options{Limits: Limits{ModeWait: time.Millisecond}})
	sc, err := s.current.Load().provider.scopeOf(TestScope)
	require.NoError(t, err)
	require.NoError(t, sc.writing.Acquire(context.Background(), "test"))
	done := make(chan *abi.WriteReceipt)
	go func() {
		r, err := s.RecordEvent(context.Background(), Event("e", "append turns x; http post body={}"))
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
	assert.Equal(t, []string{"1=x "}, Retrieved(t, s, "read turns"))
}

func TestStateIsNotWrittenByAReadingOperation(t *testing.T) {
	_, err := ProbeSlot(t, `{}`).Retrieve(context.Background(), Ask("write_in_read"))
	RequireCode(t, err, abi.CodeDenied, "only reads")
}

func TestScopeIsReadOnlyByItself(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir()})
	require.NoError(t, err)
	AddSlack(h)
	s, err := h.Open(ctx, ProbeConfig(`{}`))
	require.NoError(t, err)
	RunCommands(t, s, "e1", "append turns one")
	m, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test", Scope: &TestScope})
	require.NoError(t, err)
	assert.True(t, m.ReadOnly)
	assert.Equal(t, TestScope, *m.Scope)
	check := func(s *Slot) {
		t.Helper()
		r, err := s.RecordEvent(ctx, Event("e2", "append turns two"))
		require.NoError(t, err)
		assert.Equal(t, abi.StatusSkippedReadOnly, r.Status)
		_, err = s.ResetScope(ctx, TestScope)
		RequireCode(t, err, abi.CodeReadOnly)
		other := Event("e2", "append turns two")
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
	s = OpenSlot(t, Open(t, Options{DataDir: dir}), ProbeConfig(`{}`))
	check(s)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "over", Scope: &TestScope})
	require.NoError(t, err)
	RunCommands(t, s, "e2", "append turns two")
}

func TestGoingReadOnlyWaitsForWritesUnderWay(t *testing.T) {
	s, b, _ := ScriptedSlot(t, Options{})
	arrived, goOn := make(chan struct{}), make(chan struct{})
	b.Set(func() { b.Post = func(string) int { close(arrived); <-goOn; return 200 } })
	done := make(chan *abi.WriteReceipt)
	go func() {
		r, err := s.RecordEvent(context.Background(), Event("e", "deliver a"))
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
	server, calls := Backend(t)
	start := NetSlot(t, server.URL, Options{}).current.Load().provider.starting()
	start.Deadline = time.Now().Add(10 * time.Second)
	_, _, err := start.Powers.HTTP(t.Context(), &abi.HTTPRequest{Route: "post"}, []byte("{}"))
	RequireCode(t, err, abi.CodeDenied, "class write", "may only read")
	_, err = start.Powers.StatePut(t.Context(), "k", []byte("v"), abi.AnyVersion)
	RequireCode(t, err, abi.CodeDenied, "has no scope")
	assert.Zero(t, calls.Load())
	_, _, err = start.Powers.HTTP(t.Context(), &abi.HTTPRequest{Route: "get"}, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, calls.Load())
}
