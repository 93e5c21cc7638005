package mcpdoor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	addTea      = `{"jsonrpc":"2.0","id":"add","method":"tools/call","params":` +
		`{"name":"memory_add","arguments":{"text":"I like tea."}}}`
)

// reply is a line that a door wrote.
type reply struct {
	ID     any
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// answers runs a door over lines of input and returns what it wrote, by id. Every line must belong to the protocol.
func answers(t *testing.T, o mcpdoor.Options, input io.Reader) map[any]reply {
	t.Helper()
	d, err := mcpdoor.New(o)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, d.ServeStdio(context.Background(), input, &out, time.Minute))
	return replies(t, &out)
}

func replies(t *testing.T, out io.Reader) map[any]reply {
	t.Helper()
	all := map[any]reply{}
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		var r reply
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &r), scanner.Text())
		if _, twice := all[r.ID]; twice {
			all[all[r.ID].Error.Message] = r
			continue
		}
		all[r.ID] = r
	}
	return all
}

func input(lines ...string) io.Reader { return strings.NewReader(strings.Join(lines, "\n") + "\n") }

func TestTheEndOfInputLosesNoAnswer(t *testing.T) {
	s := newSlot()
	entered, release := make(chan struct{}), make(chan struct{})
	s.Answer = func(ctx context.Context, op string, _ any) (any, error) {
		if op != abi.OpRecordEvent {
			return nil, nil
		}
		close(entered)
		<-release
		return &abi.WriteReceipt{Status: abi.StatusCommitted}, ctx.Err()
	}
	in := &eofSignal{Reader: input(initialize, initialized, addTea), ended: make(chan struct{})}
	go func() {
		<-entered
		<-in.ended
		close(release)
	}()
	got := answers(t, options(s), in)
	require.Nil(t, got["add"].Error)
	assert.Contains(t, string(got["add"].Result), `"status":"committed"`)
}

// eofSignal signals when its reader has reached the end.
type eofSignal struct {
	io.Reader
	ended chan struct{}
}

func (a *eofSignal) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil {
		close(a.ended)
	}
	return n, err
}

func TestAStopLosesNoAnswer(t *testing.T) {
	s := newSlot()
	stop, cancel := context.WithCancel(t.Context())
	s.Answer = func(ctx context.Context, op string, _ any) (any, error) {
		if op == abi.OpRecordEvent {
			cancel() // as a signal does, in the middle of a call
		}
		return nil, ctx.Err()
	}
	d, err := mcpdoor.New(options(s))
	require.NoError(t, err)
	in, feed := io.Pipe() // which does not end
	go func() { _, _ = io.Copy(feed, input(initialize, initialized, addTea)) }()
	var out bytes.Buffer
	require.NoError(t, d.ServeStdio(stop, in, &out, time.Minute))
	assert.Contains(t, string(replies(t, &out)["add"].Result), "event_id")
}

func TestACallThatNeverEndsIsGivenUp(t *testing.T) {
	s := newSlot()
	s.Answer = func(ctx context.Context, op string, _ any) (any, error) {
		if op == abi.OpRecordEvent {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	}
	d, err := mcpdoor.New(options(s))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, d.ServeStdio(context.Background(), input(initialize, initialized, addTea), &out,
		time.Millisecond))
}

func TestALineThatIsNoMessageIsAnsweredAndTheSessionGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		says string
	}{
		"not JSON":              {`hello`, -32700, "not JSON"},
		"half of it":            {`{"jsonrpc":"2.0","id":`, -32700, "not JSON"},
		"not an object":         {`7`, -32600, "no JSON-RPC"},
		"null":                  {`null`, -32600, "no JSON-RPC"},
		"another version":       {`{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600, "no JSON-RPC"},
		"an id that is none":    {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "no JSON-RPC"},
		"an empty batch":        {`[]`, -32600, "an empty batch"},
		"a line without an end": {strings.Repeat("x", 17<<20), -32600, "more than 16777216 bytes"},
		"two messages":          {initialized + initialized, -32700, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers(t, options(newSlot()), input("", c.line, "  ", initialize, initialized,
				`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
			require.NotNil(t, got[nil].Error)
			assert.Equal(t, c.code, got[nil].Error.Code)
			assert.Contains(t, got[nil].Error.Message, c.says)
			assert.Nil(t, got[2.0].Error)
			assert.NotNil(t, got[2.0].Result)
		})
	}
}

func TestMessagesInABatchAreAnsweredEach(t *testing.T) {
	got := answers(t, options(newSlot()), input(initialize, initialized,
		`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/list"},7]`))
	assert.NotNil(t, got[2.0].Result)
	assert.NotNil(t, got[3.0].Result)
	assert.Equal(t, -32600, got[nil].Error.Code)
}

func TestTheLastLineNeedsNoEnd(t *testing.T) {
	got := answers(t, options(newSlot()), strings.NewReader(initialize+"\n"+initialized+"\n"+addTea))
	assert.NotNil(t, got["add"].Result)
}

func TestAClientThatHasGone(t *testing.T) {
	d, err := mcpdoor.New(options(newSlot()))
	require.NoError(t, err)
	err = d.ServeStdio(context.Background(), input(initialize, initialized, addTea), closedPipe{}, time.Minute)
	require.ErrorIs(t, err, errGone)
}

var errGone = errors.New("broken pipe")

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errGone }

func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	s := newSlot()
	got := answers(t, options(s), input(initialize, initialized, strings.Replace(addTea, "tea", "\xff\xfe", 1)))
	require.Empty(t, s.of(abi.OpRecordEvent), "nothing is repaired silently")
	assert.Contains(t, string(got["add"].Result), "invalid_argument: arguments: not valid UTF-8")
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{initialize, addTea, "[" + initialize + "]", "{", "\n\n",
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s := newSlot()
		o := options(s)
		d, err := mcpdoor.New(o)
		require.NoError(t, err)
		var out bytes.Buffer
		_ = d.ServeStdio(context.Background(), input(initialize, initialized, line), &out, time.Minute)
		for scanner := bufio.NewScanner(&out); scanner.Scan(); {
			require.True(t, json.Valid(scanner.Bytes()), scanner.Text())
		}
		for _, e := range s.of(abi.OpRecordEvent) {
			require.Equal(t, "ann", e.(*abi.MemoryEvent).UserID)
		}
	})
}
