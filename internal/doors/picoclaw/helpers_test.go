package picoclaw_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/picoclaw"
	"github.com/memhost/memhost/internal/test/logs"
)

const memory = "<memory-context backend=\"probe\" scope=\"run1/user_a\">\n- likes oolong tea\n</memory-context>"

// slot answers every question with memory, and keeps its requests. Retrieve, if a test sets it, is called first.
type slot struct {
	mu       sync.Mutex
	retrieve func(ctx context.Context, q *abi.RetrieveRequest) (string, error)
	record   func(e *abi.MemoryEvent) error
	asked    []abi.RetrieveRequest
	told     []abi.MemoryEvent
}

func (s *slot) Retrieve(ctx context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s.mu.Lock()
	s.asked = append(s.asked, *q)
	s.mu.Unlock()
	if s.retrieve == nil {
		return &abi.RetrieveResult{FormattedContext: memory}, nil
	}
	text, err := s.retrieve(ctx, q)
	return &abi.RetrieveResult{FormattedContext: text}, err
}

func (s *slot) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	if s.record != nil {
		if err := s.record(e); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, *e)
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func (s *slot) Mode(context.Context) (*abi.ModeReceipt, error) { return new(abi.ModeReceipt), nil }

func down(context.Context, *abi.RetrieveRequest) (string, error) {
	return "", abi.NewError(abi.CodeUnavailable, "no slot answers").WithReason("no_slot")
}

// agent is PicoClaw as the hook sees it.
type agent struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	log  *logs.Buffer
	done chan error
	box  *outbox.Box
}

// start starts a hook. configure may change its options.
func start(t *testing.T, s *slot, configure ...func(o *picoclaw.Options)) *agent {
	t.Helper()
	return startAt(t, t.TempDir(), s, configure...)
}

func startAt(t *testing.T, dir string, s *slot, configure ...func(o *picoclaw.Options)) *agent {
	t.Helper()
	a := &agent{t: t, log: new(logs.Buffer), done: make(chan error, 1)}
	logger := hclog.New(&hclog.LoggerOptions{Output: a.log, Level: hclog.Info})
	var err error
	a.box, err = outbox.Open(dir, outbox.Options{Logger: logger})
	require.NoError(t, err)
	o := picoclaw.Options{Slot: s, Box: a.box, Scope: abi.MemoryScope{RunID: "run1", PersonaID: "user_a"},
		Logger: logger}
	for _, c := range configure {
		c(&o)
	}
	hookIn, in := io.Pipe()
	out, hookOut := io.Pipe()
	a.in, a.out = in, bufio.NewReaderSize(out, 1<<20)
	a.serve(out, func() error { return picoclaw.New(o).Serve(context.Background(), hookIn, hookOut) })
	return a
}

// serve runs a hook. When the test ends, it ends the input, reads the remaining answers and waits for the hook, which
// would otherwise write into a folder that is being removed.
func (a *agent) serve(out *io.PipeReader, serve func() error) {
	go func() {
		a.done <- serve()
		close(a.done)
	}()
	a.t.Cleanup(func() {
		_ = a.in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		<-a.done
	})
}

// send writes a line.
func (a *agent) send(line string) {
	a.t.Helper()
	_, err := io.WriteString(a.in, line+"\n")
	require.NoError(a.t, err)
}

// answer is one of the hook's, as PicoClaw decodes it.
type answer struct {
	Text    []byte
	JSONRPC string
	ID      uint64
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
}

// modified returns the request in an answer, nil if it has none.
func (a *answer) modified(t *testing.T) map[string]any {
	t.Helper()
	var result struct {
		Action  string
		Request map[string]any
	}
	require.NoError(t, json.Unmarshal(a.Result, &result))
	if result.Request == nil {
		require.JSONEq(t, `{"action":"continue"}`, string(a.Result), "a continue is bare")
		return nil
	}
	require.Equal(t, "modify", result.Action)
	return result.Request
}

// call sends a call and reads its answer, which must have its id.
func (a *agent) call(line string) *answer {
	a.t.Helper()
	a.send(line)
	text, err := a.out.ReadBytes('\n')
	require.NoError(a.t, err)
	got := &answer{Text: text}
	require.NoError(a.t, json.Unmarshal(text, got), "%s", text)
	require.Equal(a.t, "2.0", got.JSONRPC)
	var sent struct{ ID uint64 }
	require.NoError(a.t, json.Unmarshal([]byte(line), &sent))
	require.Equal(a.t, sent.ID, got.ID)
	return got
}

// end closes the hook's input and waits for its end.
func (a *agent) end() {
	a.t.Helper()
	require.NoError(a.t, a.in.Close())
	require.NoError(a.t, <-a.done)
}

// before is a call of hook.before_llm with messages that end in a user message.
func before(id int, session, turn string, iteration int, said string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_llm","params":{"meta":{"AgentID":"main","TurnID":%q,"ParentTurnID":"","SessionKey":%q,"Iteration":%d,"Source":"runTurn"},`+
		`"context":{"inbound":{"channel":"cli","sender_id":"cron"}},"model":"stub","messages":[{"role":"system","content":"be brief"},{"role":"user","content":%s}],`+
		`"options":{"max_tokens":2048,"temperature":0.70}}}`, id, turn, session, iteration, quoted(said))
}

// ended is the event that ends a turn.
func ended(session, turn, at, status, said, answered string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"id":"evt-4","kind":"agent.turn.end","time":%q,"scope":{"agent_id":"main","session_key":%q,"turn_id":%q,`+
		`"channel":"cli","chat_id":"direct","sender_id":"cron"},"payload":{"Status":%q,"UserMessage":%s,"FinalContent":%s}}}`, at, session, turn, status, quoted(said), quoted(answered))
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"hook.hello","params":{"name":"memhost","version":1,"modes":["observe","llm"]}}`

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// lastContent returns the content of the last user message of a request.
func lastContent(t *testing.T, request map[string]any) string {
	t.Helper()
	list, ok := request["messages"].([]any)
	require.True(t, ok)
	content := ""
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["role"] == "user" {
			content, _ = m["content"].(string)
		}
	}
	return content
}
