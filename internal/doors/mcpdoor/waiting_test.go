package mcpdoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
)

func TestEachAnswerHoldsToTheSchemaOfItsTool(t *testing.T) {
	score := 0.5
	s := newSlot()
	s.answers[abi.OpRetrieve] = &abi.RetrieveResult{FormattedContext: "<memory-context/>", Evidence: []abi.Evidence{
		{Rank: 1, Score: &score, SourceEventIDs: []string{"e1", "e2"}, NativeID: "n1"}, {Rank: 2}}}
	s.answers[abi.OpRecordEvent] = &abi.WriteReceipt{EventID: "e3", Status: abi.StatusQueued}
	s.answers[abi.OpResetScope] = &abi.ResetReceipt{Status: abi.ResetDone}
	s.answers[abi.OpForget] = &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"turn": nil}}
	s.answers[abi.OpHealth] = &abi.BackendHealth{Status: "ok", BackendName: "probe"}
	s.answers[abi.OpReadiness] = &abi.BackendReadiness{Status: abi.ReadinessReady}
	o := options(s)
	o.Allow = []string{mcpdoor.AllowReset, mcpdoor.AllowSetMode, mcpdoor.AllowForget}
	c := connect(t, o)
	arguments := map[string]map[string]any{"memory_search": {"query": "x"}, "memory_add": {"text": "x"},
		"memory_set_mode": {"read_only": false}, "memory_forget": {"event_ids": []string{"e1"}}}
	fields := map[string]map[string]any{}
	for name, tool := range tools(t, c) {
		text, err := json.Marshal(tool.OutputSchema)
		require.NoError(t, err)
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("schema.json", schema))
		compiled, err := compiler.Compile("schema.json")
		require.NoError(t, err)
		r := call(t, c, name, arguments[name])
		require.False(t, r.IsError, name)
		require.NoError(t, compiled.Validate(r.StructuredContent), name)
		fields[name] = r.StructuredContent.(map[string]any)
		for field := range fields[name] {
			assert.Contains(t, schema.(map[string]any)["properties"], field, "%s: each field is in the schema", name)
		}
	}
	found := fields["memory_search"]
	assert.Equal(t, "<memory-context/>", found["context"])
	assert.Equal(t, []any{map[string]any{"rank": 1.0, "score": 0.5, "event_ids": []any{"e1", "e2"}, "native_id": "n1"},
		map[string]any{"rank": 2.0, "event_ids": []any{}}}, found["items"])

	s.answers[abi.OpRetrieve] = &abi.RetrieveResult{}
	r := call(t, c, "memory_search", arguments["memory_search"])
	assert.Equal(t, map[string]any{"found": false, "context": "", "items": []any{}, "items_left_out": 0.0},
		r.StructuredContent)
}

func TestItemsThatHaveNoRoomAreCounted(t *testing.T) {
	s := newSlot()
	result := &abi.RetrieveResult{FormattedContext: "<memory-context/>"}
	for i := range 1000 {
		result.Evidence = append(result.Evidence, abi.Evidence{Rank: int64(i + 1),
			SourceEventIDs: []string{fmt.Sprintf("event-%d", i)}})
	}
	s.answers[abi.OpRetrieve] = result
	r := call(t, connect(t, options(s)), "memory_search", map[string]any{"query": "x"})
	text, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	assert.Less(t, len(text), 16_000)
	fields := r.StructuredContent.(map[string]any)
	assert.Equal(t, 1000.0, float64(len(fields["items"].([]any)))+fields["items_left_out"].(float64))
}

// hanging returns a slot whose named operation answers only when the test ends, even if its caller gives up.
func hanging(t *testing.T, operation string) *slot {
	s := newSlot()
	s.answers[abi.OpForget] = &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"turn": nil}}
	s.answers[abi.OpHealth] = &abi.BackendHealth{Status: "ok", BackendName: "probe"}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	answer := s.Answer
	s.Answer = func(ctx context.Context, op string, request any) (any, error) {
		if op == operation {
			<-over
			return nil, abi.NewError(abi.CodeUnavailable, "over")
		}
		return answer(ctx, op, request)
	}
	return s
}

func TestStatusSaysWhatItKnowsWhateverHangs(t *testing.T) {
	// On a busy machine, what does not hang may also take a while.
	status := func(t *testing.T, operation string) *mcp.CallToolResult {
		t.Parallel()
		o := options(hanging(t, operation))
		o.StatusWait = 3 * time.Second
		return call(t, connect(t, o), "memory_status", nil)
	}
	t.Run("health", func(t *testing.T) {
		r := status(t, abi.OpHealth)
		assert.False(t, r.IsError)
		assert.Contains(t, textOf(t, r), "The provider has not answered within 3s: its health is not known. The slot is "+
			"open for writing")
		assert.Equal(t, "unknown", r.StructuredContent.(map[string]any)["health"])
	})
	t.Run("readiness", func(t *testing.T) {
		r := status(t, abi.OpReadiness)
		assert.Contains(t, textOf(t, r), "probe is ok.")
		assert.Contains(t, textOf(t, r), "What was recorded: unknown.")
	})
}

// untilGivenUp answers a search when its caller gives up, and reports that.
func untilGivenUp() (s *slot, givenUp chan error) {
	s, givenUp = newSlot(), make(chan error, 1)
	answer := s.Answer
	s.Answer = func(ctx context.Context, op string, request any) (any, error) {
		if op != abi.OpRetrieve {
			return answer(ctx, op, request)
		}
		<-ctx.Done()
		givenUp <- ctx.Err()
		return nil, abi.NewError(abi.CodeUnavailable, "given up")
	}
	return s, givenUp
}

func TestALongSearchTellsItsProgressAndIsCancelledAtTheSlot(t *testing.T) {
	s, givenUp := untilGivenUp()
	o := options(s)
	o.ProgressEvery = 10 * time.Millisecond
	progress := make(chan *mcp.ProgressNotificationParams, 1000)
	tell := func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params }
	c := connectAs(t, o, &mcp.ClientOptions{ProgressNotificationHandler: tell})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	params := &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": "tea"}}
	params.SetProgressToken("token")
	go func() {
		_, err := c.CallTool(ctx, params)
		ended <- err
	}()
	for n := 1.0; n <= 3; n++ {
		select {
		case told := <-progress:
			assert.Equal(t, "token", told.ProgressToken)
			assert.Equal(t, n, told.Progress)
		case <-time.After(30 * time.Second):
			t.Fatal("no progress")
		}
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	select {
	case err := <-givenUp:
		assert.ErrorIs(t, err, context.Canceled)
	case <-time.After(30 * time.Second):
		t.Fatal("the slot still searches")
	}
	call(t, c, "memory_status", nil) // the session continues
}

func TestASearchIsGivenUpInTimeAndWithoutATokenTellsNoProgress(t *testing.T) {
	s, givenUp := untilGivenUp()
	o := options(s)
	o.SearchTimeout, o.ProgressEvery = 100*time.Millisecond, time.Millisecond
	progress := make(chan struct{}, 1000)
	tell := func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} }
	c := connectAs(t, o, &mcp.ClientOptions{ProgressNotificationHandler: tell})
	r := call(t, c, "memory_search", map[string]any{"query": "tea"})
	assert.True(t, r.IsError)
	require.ErrorIs(t, <-givenUp, context.DeadlineExceeded)
	assert.Empty(t, progress)
}

func TestEachCallOfTheSlotHasADeadline(t *testing.T) {
	s := newSlot()
	s.answers[abi.OpRetrieve] = &abi.RetrieveResult{}
	s.answers[abi.OpRecordEvent] = &abi.WriteReceipt{EventID: "e", Status: abi.StatusCommitted}
	left := map[string]time.Duration{}
	answer := s.Answer
	s.Answer = func(ctx context.Context, op string, request any) (any, error) {
		if at, ok := ctx.Deadline(); ok {
			left[op] = time.Until(at)
		}
		return answer(ctx, op, request)
	}
	o := options(s)
	o.SearchTimeout, o.CallTimeout = time.Hour, 3*time.Hour
	c := connect(t, o)
	require.False(t, call(t, c, "memory_search", map[string]any{"query": "x"}).IsError)
	require.False(t, call(t, c, "memory_add", map[string]any{"text": "x"}).IsError)
	assert.InDelta(t, time.Hour, left[abi.OpRetrieve], float64(30*time.Minute), "a search is waited for")
	assert.InDelta(t, 3*time.Hour, left[abi.OpRecordEvent], float64(30*time.Minute))
	_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "memhost://context"})
	require.NoError(t, err)
	assert.InDelta(t, 3*time.Hour, left[abi.OpRetrieve], float64(30*time.Minute))
}
