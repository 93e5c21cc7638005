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

// hanging is a slot whose operation named answers only when the test ends, even if its caller gives up.
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
	status := func(operation string) *mcp.CallToolResult {
		o := options(hanging(t, operation))
		o.StatusWait = 20 * time.Millisecond
		return call(t, connect(t, o), "memory_status", nil)
	}
	r := status(abi.OpHealth)
	assert.False(t, r.IsError)
	assert.Contains(t, textOf(t, r), "The provider has not answered within 20ms: its health is not known. The slot is "+
		"open for writing")
	assert.Equal(t, "unknown", r.StructuredContent.(map[string]any)["health"])
	r = status(abi.OpReadiness)
	assert.Contains(t, textOf(t, r), "probe is ok.")
	assert.Contains(t, textOf(t, r), "What was recorded: unknown.")
}

func TestAStatusOfASlotThatNeverAnswersIsATimeout(t *testing.T) {
	o := options(newSlot())
	o.ListWait, o.StatusWait = time.Millisecond, time.Millisecond
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	o.Slot = func(context.Context, func(context.Context, hostContract) error) error {
		<-over
		return abi.NewError(abi.CodeUnavailable, "over")
	}
	e := problem(t, call(t, connect(t, o), "memory_status", nil))
	assert.Equal(t, abi.CodeTimeout, e.Code)
	assert.Contains(t, e.Message, "the slot has not answered within 1ms")
}

// waiting is a slot whose searches wait until the caller's deadline, which they report.
func waiting() (o mcpdoor.Options, began, ended chan struct{}) {
	began, ended = make(chan struct{}), make(chan struct{})
	s := newSlot()
	s.Answer = func(ctx context.Context, op string, _ any) (any, error) {
		if op != abi.OpRetrieve {
			return nil, nil
		}
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, abi.WrapError(abi.CodeTimeout, "the search took too long", ctx.Err())
	}
	return options(s), began, ended
}

// connectImpatient is connect for a client that may go before the answer to a call that it has cancelled is written.
func connectImpatient(t *testing.T, o mcpdoor.Options, client *mcp.Client) *mcp.ClientSession {
	d, err := mcpdoor.New(o)
	require.NoError(t, err)
	here, there := newPipes()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = d.ServeStdio(context.Background(), there.in, there.out, time.Minute)
	}()
	c, err := client.Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-served
	})
	return c
}

func TestASearchHasADeadlineOfItsOwn(t *testing.T) {
	o, _, _ := waiting()
	o.SearchTimeout = 10 * time.Millisecond
	e := problem(t, call(t, connect(t, o), "memory_search", map[string]any{"query": "x"}))
	assert.Equal(t, abi.CodeTimeout, e.Code)
}

func TestACancelledCallIsCancelledAtTheSlot(t *testing.T) {
	o, began, ended := waiting()
	c := connectImpatient(t, o, mcp.NewClient(&mcp.Implementation{Name: "test"}, nil))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": "x"}})
		failed <- err
	}()
	<-began
	cancel()
	<-ended
	require.Error(t, <-failed)
}

func TestProgressIsToldToAClientThatAskedForIt(t *testing.T) {
	o, _, _ := waiting()
	o.ProgressEvery, o.SearchTimeout = time.Millisecond, time.Minute
	told := make(chan float64, 1000)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			assert.Equal(t, "token", r.Params.ProgressToken)
			told <- r.Params.Progress
		}})
	c := connectImpatient(t, o, client)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for want := 1.0; want <= 3; want++ {
			assert.Equal(t, want, <-told)
		}
		cancel()
	}()
	params := &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": "x"}}
	params.SetProgressToken("token")
	_, err := c.CallTool(ctx, params)
	require.Error(t, err)
}
