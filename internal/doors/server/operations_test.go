package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// TestOperationsAreStreamed reads a stream while a slot serves: the host's reports become lines, and the end of the
// slot ends the stream without waiting for its reader.
func TestOperationsAreStreamed(t *testing.T) {
	operations := server.NewOperations()
	operations.Observe(host.Observation{Operation: "nobody reads yet"})
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Operations = operations })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()

	response, err := http.Get("http://" + l.Addr().String() + wire.PathOperations)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, wire.MediaLines, response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	next := func() (line wire.OperationLine) {
		require.True(t, lines.Scan())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.NotEmpty(t, line.At)
		return line
	}
	require.Equal(t, wire.LineAlive, next().Kind)
	operations.Observe(host.Observation{Operation: abi.OpRetrieve, Provider: "p", Code: abi.CodeTimeout,
		Latency: 1500 * time.Microsecond, IO: []abi.IO{{Route: "search"}}})
	operations.Step(report.RunStep{Name: "health", Verdict: "pass"})
	line := next()
	require.Equal(t, wire.LineOperation, line.Kind)
	require.Equal(t, "retrieve p timeout", line.Operation+" "+line.Provider+" "+line.Code)
	require.Equal(t, 1.5, line.LatencyMS)
	require.Equal(t, "search", line.IO[0].Route)
	line = next()
	require.Equal(t, wire.LineStep, line.Kind)
	require.Equal(t, "health", line.Step.Name)

	stop()
	require.False(t, lines.Scan(), "the stream ends with the slot")
	require.NoError(t, <-ended)
}

// TestAReaderGetsTheOperationsBeforeIt: the last 2000, oldest first, and then a line that says that they are over.
func TestAReaderGetsTheOperationsBeforeIt(t *testing.T) {
	operations := server.NewOperations()
	operations.Step(report.RunStep{Name: "health", Verdict: "pass"}) // the manifest has the steps
	for i := range 2003 {
		operations.Observe(host.Observation{Operation: strconv.Itoa(i)})
	}
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Operations = operations })
	door := httptest.NewServer(s.Handler())
	defer door.Close()
	response, err := http.Get(door.URL + wire.PathOperations + "?past=true")
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	last := ""
	for i := 3; i < 2003; i++ {
		var line wire.OperationLine
		require.True(t, lines.Scan())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.Equal(t, strconv.Itoa(i), line.Operation)
		require.GreaterOrEqual(t, line.At, last)
		last = line.At[:23]
	}
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), wire.LineAlive)
}

func TestASlowReaderIsToldWhatItMissed(t *testing.T) {
	operations := server.NewOperations()
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Operations = operations })
	w := &blockingWriter{header: http.Header{}, wrote: make(chan string), goOn: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:7077"+wire.PathOperations, nil)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { defer close(done); s.Handler().ServeHTTP(w, r) }()
	require.Contains(t, <-w.wrote, wire.LineAlive) // the handler hangs in this write
	for range 4140 {
		operations.Observe(host.Observation{Operation: abi.OpRetrieve})
	}
	w.goOn <- struct{}{}
	together := <-w.wrote
	require.Equal(t, 4096, strings.Count(together, `"operation":"retrieve"`), "what waited is one write")
	require.Contains(t, together, `"missed":44`)
	stop()
	close(w.goOn)
	for {
		select {
		case <-w.wrote:
			continue
		case <-done:
		}
		break
	}
}

// blockingWriter passes each write on and blocks until it is released.
type blockingWriter struct {
	header http.Header
	wrote  chan string
	goOn   chan struct{}
}

func (w *blockingWriter) Header() http.Header { return w.header }
func (w *blockingWriter) WriteHeader(int)     {}
func (w *blockingWriter) Flush()              {}
func (w *blockingWriter) Write(p []byte) (int, error) {
	w.wrote <- string(p)
	<-w.goOn
	return len(p), nil
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	operations := server.NewOperations()
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Operations = operations })
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	for range 16 {
		w := &blockingWriter{header: http.Header{}, wrote: make(chan string), goOn: make(chan struct{})}
		r, err := http.NewRequestWithContext(gone, http.MethodGet, "http://127.0.0.1:7077"+wire.PathOperations, nil)
		require.NoError(t, err)
		go s.Handler().ServeHTTP(w, r)
		<-w.wrote
		close(w.goOn)
	}
	e := problem(t, ask(s.Handler(), "GET", wire.PathOperations, ""))
	require.Equal(t, abi.CodeRateLimited, e.Code)
	none, _ := newServer(t, new(servertest.Slot))
	require.Equal(t, 501, ask(none.Handler(), "GET", wire.PathOperations, "").Code)
}
