package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSameEventAgainGetsTheFirstReceipt(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	first, err := s.RecordEvent(context.Background(), host.Event("e1", "append turns one"))
	require.NoError(t, err)
	assert.False(t, first.Duplicate)
	again, err := s.RecordEvent(context.Background(), host.Event("e1", "append turns one"))
	require.NoError(t, err)
	assert.True(t, again.Duplicate)
	assert.Equal(t, first.Markers, again.Markers)
	assert.Equal(t, first.Status, again.Status)
	require.Len(t, again.Warnings, 1)
	assert.True(t, strings.HasPrefix(again.Warnings[0], "duplicate_event: "))
	assert.Equal(t, []string{"1=one "}, host.Retrieved(t, s, "read turns"))
}

func TestSameEventIsKnownWhateverTheFormOfItsMetadata(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	a, b := host.Event("e1", "echo"), host.Event("e1", "echo")
	a.Metadata = map[string]abi.Raw{"x": abi.Raw(`{"b":1,"a":[1,2]}`)}
	b.Metadata = map[string]abi.Raw{"x": abi.Raw(` { "a" : [1, 2], "b": 1 } `)}
	_, err := s.RecordEvent(context.Background(), a)
	require.NoError(t, err)
	r, err := s.RecordEvent(context.Background(), b)
	require.NoError(t, err)
	assert.True(t, r.Duplicate)
}

func TestSameIDWithOtherContentIsConflict(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	host.RunCommands(t, s, "e1", "append turns one")
	_, err := s.RecordEvent(context.Background(), host.Event("e1", "append turns two"))
	host.RequireCode(t, err, abi.CodeConflict, `"e1"`)
	assert.Equal(t, []string{"1=one "}, host.Retrieved(t, s, "read turns"))
}

func TestEventsSurviveAReopenedFolder(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir()})
	require.NoError(t, err)
	host.AddSlack(h)
	s, err := h.Open(ctx, host.ProbeConfig(`{}`))
	require.NoError(t, err)
	host.RunCommands(t, s, "e1", "append turns one")
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	s = host.OpenSlot(t, host.Open(t, host.Options{DataDir: dir}), host.ProbeConfig(`{"note":"another configuration"}`))
	assert.Equal(t, []string{"1=one "}, host.Retrieved(t, s, "read turns"))
	r, err := s.RecordEvent(ctx, host.Event("e1", "append turns one"))
	require.NoError(t, err)
	assert.True(t, r.Duplicate, "the ledger is not keyed by module or configuration")
}

func TestConcurrentCallersOfOneEventShareOneDelivery(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	var wg sync.WaitGroup
	fresh := make(chan bool, 32)
	for range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r, err := s.RecordEvent(context.Background(), host.Event("e1", "append turns one"))
			if assert.NoError(t, err) && !r.Duplicate {
				fresh <- true
			}
		}()
	}
	wg.Wait()
	assert.Len(t, fresh, 1)
	assert.Equal(t, []string{"1=one "}, host.Retrieved(t, s, "read turns"))
}

func TestConcurrentScopesDoNotMix(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	const scopes, turns = 8, 20
	var wg sync.WaitGroup
	for i := range scopes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range turns {
				e := host.Event(fmt.Sprint("e", j), fmt.Sprintf("append turns %d-%d", i, j))
				e.UserID = fmt.Sprint("persona ", i)
				_, err := s.RecordEvent(context.Background(), e)
				assert.NoError(t, err)
			}
		}()
	}
	wg.Wait()
	for i := range scopes {
		r, err := s.Retrieve(context.Background(),
			&abi.RetrieveRequest{Query: "read turns", SessionID: "s",
				Scope: abi.MemoryScope{RunID: "run", PersonaID: fmt.Sprint("persona ", i)}})
		require.NoError(t, err)
		want := ""
		for j := range turns {
			want += fmt.Sprintf("%d=%d-%d ", j+1, i, j)
		}
		assert.JSONEq(t, fmt.Sprintf("%q", want), string(r.Raw.Calls[0].Body))
	}
}

func TestLookAlikeScopesShareNothing(t *testing.T) {
	ids := []string{"a", "A", "a ", " a", "a\t", "a/b", "a:b", "a\x01b", "*", "..", ".", "%2e", "ä", "a\u0308", "😀",
		`"`, "'", "a|b", strings.Repeat("x", 512), strings.Repeat("x", 511), "null", "\u200b", "run/persona"}
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	n := 0
	for _, run := range ids {
		for _, persona := range []string{"p", run, run + "p", "p" + run} {
			if len(persona) > 512 {
				continue
			}
			n++
			e := host.Event("e", fmt.Sprintf("put mine %d", n))
			e.RunID, e.UserID = run, persona
			_, err := s.RecordEvent(ctx, e)
			if err != nil { // run == persona may occur twice
				host.RequireCode(t, err, abi.CodeConflict)
				n--
				continue
			}
			r, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "get mine", SessionID: "s",
				Scope: abi.MemoryScope{RunID: run, PersonaID: persona}})
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf(`"%d"`, n), string(r.Raw.Calls[0].Body))
		}
	}
}

func TestAgentIsALabelUnlessScoped(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	e := host.Event("e", "scope")
	e.AgentID = "agent"
	r, err := s.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	assert.Equal(t, []string{"run/persona//1"}, r.Markers)
	q := host.Ask("echo")
	q.Scope.AgentID = "agent"
	_, err = s.Retrieve(context.Background(), q)
	host.RequireCode(t, err, abi.CodeInvalidArgument, "scope.agent_id")
	c := host.ProbeConfig(`{}`)
	c.AgentScoped = true
	scoped := host.OpenSlot(t, host.Open(t, host.Options{}), c)
	r, err = scoped.RecordEvent(context.Background(), e)
	require.NoError(t, err)
	assert.Equal(t, []string{"run/persona/agent/1"}, r.Markers)
}

func TestBatchKeepsOrderAndJudgesEachEventByItself(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	b := &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("1", "append turns 1"), *host.Event("2", "append turns 2"),
		*host.Event("", "append turns 3"),
		*host.Event("4", "fail backend no"), *host.Event("1", "append turns 1"), *host.Event("2", "other content"),
		*host.Event("7", "append turns 7")}}
	other := *host.Event("1", "append turns other")
	other.UserID = "somebody else"
	b.Events = append(b.Events, other)
	out, err := s.RecordEvents(context.Background(), b)
	require.NoError(t, err)
	require.Len(t, out.Receipts, len(b.Events))
	assert.Equal(t, abi.StatusCommitted, out.Receipts[0].Receipt.Status)
	assert.Equal(t, abi.StatusCommitted, out.Receipts[1].Receipt.Status)
	host.RequireCode(t, out.Receipts[2].Error, abi.CodeInvalidArgument, "events[2].event_id")
	host.RequireCode(t, out.Receipts[3].Error, abi.CodeBackend)
	assert.True(t, out.Receipts[4].Receipt.Duplicate)
	host.RequireCode(t, out.Receipts[5].Error, abi.CodeConflict)
	assert.Equal(t, abi.StatusCommitted, out.Receipts[6].Receipt.Status)
	assert.Equal(t, abi.StatusCommitted, out.Receipts[7].Receipt.Status)
	assert.Equal(t, []string{"1=1 2=2 3=7 "}, host.Retrieved(t, s, "read turns"))
	_, err = s.RecordEvents(context.Background(), &abi.EventBatch{})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "events: want at least one")
}

func TestReceiptMustHaveAStatusOfTheContract(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	for _, status := range []string{"skipped_read_only", "done"} {
		_, err := s.RecordEvent(context.Background(), host.Event("e "+status, "append turns x; status "+status))
		host.RequireCode(t, err, abi.CodeInternal, "receipt.status")
	}
	assert.Equal(t, []string{""}, host.Retrieved(t, s, "read turns"))
}

func TestResetClearsOneScopeAndStartsItsNextGeneration(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	host.RunCommands(t, s, "e1", "append turns one; put k v")
	other := host.Event("e1", "append turns other")
	other.UserID = "other"
	_, err := s.RecordEvent(ctx, other)
	require.NoError(t, err)
	r, err := s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, r.Status)
	assert.EqualValues(t, 1, r.OldGeneration)
	assert.EqualValues(t, 2, r.NewGeneration)
	assert.Equal(t, []string{"absent", "", "run/persona//2"}, host.Retrieved(t, s, "get k; read turns; scope"))
	host.RunCommands(t, s, "e1", "append turns again")
	assert.Equal(t, []string{"1=again "}, host.Retrieved(t, s, "read turns"), "an old receipt suppresses nothing")
	q := host.Ask("read turns")
	q.Scope.PersonaID = "other"
	found, err := s.Retrieve(ctx, q)
	require.NoError(t, err)
	assert.Equal(t, `"1=other "`, string(found.Raw.Calls[0].Body))
}

func TestStateOfAnOperationSeesItsOwnWrites(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	host.RunCommands(t, s, "e1", "put a 1; put b 2; append l x")
	var steps, want []string
	for _, step := range []struct{ command, want string }{
		{"get a", "1"}, {"put a 9", ""}, {"get a", "9"}, {"put c 3", ""}, {"list ", "a=9 b=2 c=3 "},
		{"append l y", "2"}, {"read l reverse", "2=y 1=x "},
		{"put ab 0", ""}, {"put abc 1", ""}, {"del ab", "2"}, {"get ab", "absent"}, {"del a", "1"}, {"del b", "1"},
		{"list ", "c=3 "}, {"del l", "2"},
		{"append l z", "1"}, {"read l", "1=z "},
	} {
		steps = append(steps, step.command)
		want = append(want, step.want)
	}
	said := host.RunCommands(t, s, "e2", strings.Join(steps, "; "))
	for i := range said {
		said[i], _, _ = strings.Cut(said[i], "set_up=")
	}
	assert.Equal(t, want, said)
	assert.Equal(t, []string{"3", "absent", "1=z "}, host.Retrieved(t, s, "get c; get a; read l"))
}

func TestVersionedPutIsAConditionOfTheWholeOperation(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	host.RunCommands(t, s, "e1", "put k v 0")
	_, err := s.RecordEvent(context.Background(), host.Event("e2", "append l x; put k w 0"))
	host.RequireCode(t, err, abi.CodeConflict, `"k"`)
	assert.Equal(t, []string{"v", ""}, host.Retrieved(t, s, "get k; read l"))
}

func TestStateOfAScopeIsBounded(t *testing.T) {
	h := host.Open(t, host.Options{Limits: host.Limits{StateBytes: 2000, StateValueBytes: 1000}})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	_, err := s.RecordEvent(context.Background(), host.Event("e0", "append l "+strings.Repeat("x", 1001)))
	host.RequireCode(t, err, abi.CodeTooLarge, "limit is 1000")
	host.RunCommands(t, s, "e1", "append l "+strings.Repeat("x", 900))
	host.RunCommands(t, s, "e2", "append l "+strings.Repeat("x", 900))
	_, err = s.RecordEvent(context.Background(), host.Event("e3", "append l "+strings.Repeat("x", 900)))
	host.RequireCode(t, err, abi.CodeTooLarge, "2000")
}

func TestRequestsThatAreWrongNameTheField(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	for path, change := range map[string]func(*abi.MemoryEvent){
		"event_id":         func(e *abi.MemoryEvent) { e.EventID = "" },
		"run_id":           func(e *abi.MemoryEvent) { e.RunID = "a\x00b" },
		"user_id":          func(e *abi.MemoryEvent) { e.UserID = strings.Repeat("x", 513) },
		"timestamp":        func(e *abi.MemoryEvent) { e.Timestamp = "2026-01-02 03:04:05" },
		"messages":         func(e *abi.MemoryEvent) { e.Messages = nil },
		"messages[0].role": func(e *abi.MemoryEvent) { e.Messages[0].Role = "robot" },
	} {
		e := host.Event("e", "echo")
		change(e)
		_, err := s.RecordEvent(ctx, e)
		got := host.RequireCode(t, err, abi.CodeInvalidArgument)
		assert.True(t, strings.HasPrefix(got.Message, path+":"), "%s: %s", path, got.Message)
		assert.Equal(t, abi.OpRecordEvent, got.Operation)
	}
	q := host.Ask("x")
	q.Scope.BackendNamespace = "another"
	_, err := s.Retrieve(ctx, q)
	host.RequireCode(t, err, abi.CodeInvalidArgument, "scope.backend_namespace")
}
