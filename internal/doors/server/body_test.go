package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestRequestsThatAreWrong(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	for _, c := range []struct{ name, path, body, says string }{
		{"nothing", wire.PathEvents, ``, "not JSON: the body is empty"},
		{"no JSON", wire.PathEvents, `event_id=7`, "not JSON"},
		{"cut short", wire.PathEvents, anEvent[:40], "unexpected end"},
		{"more behind it", wire.PathEvents, anEvent + "x", "after the end"},
		{"another type", wire.PathEvents, `[]`, "want an object, got an array"},
		{"a field of another type", wire.PathEvents, `{"messages":[{"role":"user","content":7}]}`,
			"messages[0].content: want a string, got a number"},
		{"an unknown field", wire.PathEvents, `{"evnt_id":"7"}`, `evnt_id: unknown field, did you mean "event_id"?`},
		{"an unknown field further in", wire.PathRetrieve, `{"scope":{"persona":"x"}}`, `scope.persona: unknown field`},
		{"invalid UTF-8", wire.PathEvents, "{\"event_id\":\"\xff\"}", "invalid UTF-8 at byte 13"},
		{"half a surrogate pair in UTF-8", wire.PathEvents, "{\"event_id\":\"\xed\xa0\x80\"}", "invalid UTF-8"},
		{"nested too deep", wire.PathEvents, `{"metadata":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) +
			"}}", "deep"},
		{"half a surrogate pair, escaped", wire.PathEvents,
			strings.Replace(anEvent, `"session_id":"`, `"session_id":"\ud83d`, 1), `\ud83d at byte`},
		{"a scope's id twice", wire.PathScopes, `{"run_id":"r","persona_id":"ann","persona_id":"bob"}`,
			"persona_id: given twice"},
		{"a name twice further in", wire.PathRetrieve,
			`{"query":"q","session_id":"s","scope":{"run_id":"r","persona_id":"a","run_id":"s"}}`,
			"scope.run_id: given twice"},
		{"a batch's events twice", wire.PathEventsBatch, `{"events":[` + anEvent + `],"events":[]}`,
			"events: given twice"},
		{"a whole batch", wire.PathEventsBatch, `{"event":[]}`, `event: unknown field, did you mean "events"?`},
		{"a batch that is none", wire.PathEventsBatch, `{"events":{}}`, "events: want an array, got an object"},
		{"a batch cut short", wire.PathEventsBatch, `{"events":[` + anEvent, "unexpected end"},
		{"a swap", wire.PathSwap, `{"backnd":"mem0"}`, `backnd: unknown field, did you mean "backend"?`},
		{"a swap of another type", wire.PathSwap, `{"backend":7}`, "backend: want a string, got a number"},
		{"a swap to nothing", wire.PathSwap, `{}`, "got neither"},
		{"a swap to two", wire.PathSwap, `{"backend":"a","condition":"b"}`, "got both"},
		{"a swap with half a config", wire.PathSwap, `{"backend":"a","config":[]}`, "config: want an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(s.Handler(), "POST", c.path, c.body)
			require.Equal(t, 400, w.Code)
			e := problem(t, w)
			require.Equal(t, abi.CodeInvalidArgument, e.Code)
			require.Contains(t, e.Message, c.says)
			require.NotEmpty(t, e.Operation)
		})
	}
}

// A backend's words are returned verbatim, so they must be accepted again.
func TestAResultIsTakenBackWithWhatTheBackendSaid(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	w := ask(s.Handler(), "POST", wire.PathFormat,
		`{"scope":{"run_id":"r","persona_id":"u"},"result":{"raw":{"calls":[{"route":"search","body":{"a":1,"a":"\ud83d"}}]}}}`)
	require.Equal(t, 200, w.Code, w.Body)
}

// A body without read_only would end the read-only mode, and spoil a run that was to be clean.
func TestTheModeIsNotGuessed(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	for _, body := range []string{`{}`, `null`, `{"read_only":null}`, `{"reason":"evaluation"}`,
		`{"scope":{"run_id":"r","persona_id":"u"}}`} {
		w := ask(s.Handler(), "PUT", wire.PathMode, body)
		require.Equal(t, 400, w.Code, body)
		require.Contains(t, problem(t, w).Message, "read_only: missing", body)
	}
}

func TestTheSwapperMayBeMissing(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	w := ask(s.Handler(), "POST", wire.PathSwap, `{"condition":"no_memory","config":null}`)
	require.Equal(t, 501, w.Code)
	require.Equal(t, abi.CodeUnsupported, problem(t, w).Code)
}

// padded is an event of exactly n bytes.
func padded(n int) string { return anEvent + strings.Repeat(" ", n-len(anEvent)) }

// withoutLength hides how long a body is.
type withoutLength struct{ io.Reader }

func TestABodyMayHaveTheLimitAndNoByteMore(t *testing.T) {
	const limit = 1000
	limited := func(o *server.Options) { o.MaxBody = limit }
	open, _ := newServer(t, new(servertest.Slot), limited)
	closed, _ := newServer(t, untouchable(t), limited)
	for name, body := range map[string]func(n int) io.Reader{
		"announced": func(n int) io.Reader { return strings.NewReader(padded(n)) },
		"chunked":   func(n int) io.Reader { return withoutLength{strings.NewReader(padded(n))} },
	} {
		require.Equal(t, 200, askFrom(open.Handler(), "POST", wire.PathEvents, body(limit)).Code, name)
		w := askFrom(closed.Handler(), "POST", wire.PathEvents, body(limit+1))
		require.Equal(t, 413, w.Code, name)
		e := problem(t, w)
		require.Equal(t, abi.CodeTooLarge, e.Code)
		require.Contains(t, e.Message, "1000")
		require.Equal(t, abi.OpRecordEvent, e.Operation)
	}
}

func TestLargeBodiesAreFineByDefault(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	require.Equal(t, 200, askFrom(s.Handler(), "POST", wire.PathEvents,
		withoutLength{strings.NewReader(padded(16 << 20))}).Code)
	require.Equal(t, 413, ask(s.Handler(), "POST", wire.PathEvents, padded(16<<20+1)).Code)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

func TestABodyThatBreaksOff(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	w := askFrom(s.Handler(), "POST", wire.PathEvents, io.MultiReader(strings.NewReader("{"), brokenReader{}))
	require.Equal(t, 400, w.Code)
	require.Contains(t, problem(t, w).Message, "broke off")
}

func TestASlowBodyEndsWithItsTimeAndTheSlotIsNotAsked(t *testing.T) {
	s, _ := newServer(t, untouchable(t), func(o *server.Options) { o.BodyTimeout = 20 * time.Millisecond })
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{", wire.PathEvents)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn) // the server closes the connection, but the rest may still arrive
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTP/1.1 408 ")
	require.Contains(t, string(answer), `"code":"timeout"`)
}

func TestASlowBodyOfARefusedRequestHoldsNothing(t *testing.T) {
	s, _ := newServer(t, untouchable(t), withToken("secret"), func(o *server.Options) {
		o.BodyTimeout = 20 * time.Millisecond
	})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{", wire.PathEvents)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTP/1.1 401 ")
}

func TestAConnectionServesOneRequestAfterAnother(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.BodyTimeout, o.WriteTimeout = short, short })
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for range 2 {
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s", wire.PathEvents, len(anEvent), anEvent)
		require.NoError(t, err)
		r, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 200, r.StatusCode)
		<-time.After(short + short/4) // the deadlines apply to the request, not to the connection
	}
}

func TestAReadDeadlineOfTheBodyDoesNotEndTheCall(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	slot := &servertest.Slot{Answer: func(ctx context.Context, _ string, _ any) (any, error) {
		longer, cancel := context.WithTimeout(ctx, timeout+timeout/4)
		defer cancel()
		<-longer.Done()
		return nil, ctx.Err() // nil unless the server believes that the client has gone
	}}
	s, _ := newServer(t, slot, func(o *server.Options) { o.BodyTimeout = timeout })
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	r, err := web.Client().Post(web.URL+wire.PathEvents, wire.MediaJSON, strings.NewReader(anEvent))
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	require.Equal(t, 200, r.StatusCode)
}

func TestAClientThatLeavesEndsTheWaiting(t *testing.T) {
	reached, ended := make(chan struct{}), make(chan error, 1)
	slot := &servertest.Slot{Answer: func(ctx context.Context, _ string, _ any) (any, error) {
		close(reached)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, abi.WrapError(abi.CodeTimeout, "the caller went away", ctx.Err())
	}}
	s, _ := newServer(t, slot)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	require.NoError(t, err)
	const body = `{"query":"q","scope":{"run_id":"r","persona_id":"u"},"session_id":"s"}`
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", wire.PathRetrieve, len(body), body)
	require.NoError(t, err)
	<-reached
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAnswersHaveNoSchemaFieldAndAreExactlyTheCodecs(t *testing.T) {
	receipt := &abi.WriteReceipt{EventID: "<é>\u2028", Status: abi.StatusQueued, Markers: []string{}}
	s, _ := newServer(t, &servertest.Slot{Answer: func(context.Context, string, any) (any, error) {
		return receipt, nil
	}})
	w := ask(s.Handler(), "POST", wire.PathEvents, anEvent)
	require.Equal(t, string(abi.Marshal(receipt)), w.Body.String())
	require.Equal(t, wire.MediaJSON, w.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Empty(t, w.Header().Get("Link"))
}

func TestLargeBodiesAreBounded(t *testing.T) {
	for _, bound := range []struct{ size, atATime int }{{100 << 10, 256}, {2 << 20, 16}} {
		for _, path := range []string{wire.PathEvents, "/parts"} {
			t.Run(fmt.Sprintf("%d KiB at %s", bound.size>>10, path), func(t *testing.T) {
				boundedAt(t, path, bound.size, bound.atATime)
			})
		}
	}
}

// boundedAt keeps atATime bodies of size open, and sends one more.
func boundedAt(t *testing.T, path string, size, atATime int) {
	s, _ := newServer(t, recorder(new([][]string)), func(o *server.Options) {
		o.Mounts = map[string]http.Handler{"/parts": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			w.WriteHeader(map[bool]int{true: 200, false: 400}[strings.TrimSpace(string(body)) == "{}"])
		})}
	})
	send := func(body io.Reader) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	large := strings.Repeat(" ", size)
	end := make(chan struct{})
	var held sync.WaitGroup
	for range atATime {
		body := &heldBody{text: strings.NewReader(large), read: make(chan struct{}), end: end}
		held.Go(func() { assert.Equal(t, 400, send(body)) })
		<-body.read
	}
	require.Equal(t, 429, send(strings.NewReader(large)))
	assert.Equal(t, 200, send(strings.NewReader("{}")), "a small one")
	close(end)
	held.Wait()
	require.Equal(t, 400, send(strings.NewReader(large)))
}

// heldBody is a text that ends when end is closed. It closes read when all of the text was read and more is requested.
type heldBody struct {
	text      *strings.Reader
	read, end chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.text.Len() == 0 {
		close(b.read)
		<-b.end
	}
	return b.text.Read(p)
}

func TestALargeBodyCountsUntilItsCallHasEnded(t *testing.T) {
	entered, free := make(chan struct{}, 16), make(chan struct{})
	var begun atomic.Int64
	s, _ := newServer(t, &servertest.Slot{Answer: func(context.Context, string, any) (any, error) {
		if begun.Add(1) <= 16 {
			entered <- struct{}{}
			<-free
		}
		return &abi.WriteReceipt{}, nil
	}})
	large := strings.Repeat(" ", 1<<20) + anEvent
	var calls sync.WaitGroup
	for range 16 {
		caller, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(caller, http.MethodPost, wire.PathEvents, strings.NewReader(large))
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		calls.Go(func() { s.Handler().ServeHTTP(httptest.NewRecorder(), r) })
		<-entered
		leave()
	}
	time.Sleep(10 * time.Millisecond) // what follows from leaving has happened
	require.Equal(t, 429, ask(s.Handler(), "POST", wire.PathEvents, large).Code)
	close(free)
	calls.Wait()
	require.Equal(t, 400, ask(s.Handler(), "POST", wire.PathEvents, large+"x").Code)
}
