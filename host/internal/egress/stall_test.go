package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	stallDeadline = 150 * time.Millisecond
	// stallLimit is the maximum duration of a call; test machines are busy.
	stallLimit = 30 * time.Second
)

// stallingServer is a server that runs a handler for each connection, and counts open connections. A handler returns when its
// connection breaks, or when quit is closed.
type stallingServer struct {
	address string
	quit    chan struct{}
	serving sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newStalling(t *testing.T, handle func(conn net.Conn, quit <-chan struct{})) *stallingServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &stallingServer{address: l.Addr().String(), quit: make(chan struct{}), open: map[net.Conn]bool{}}
	s.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = true
			s.mu.Unlock()
			s.serving.Go(func() {
				handle(conn, s.quit)
				_, _ = io.Copy(io.Discard, conn) // until the client has closed it
				s.mu.Lock()
				defer s.mu.Unlock()
				_ = conn.Close()
				delete(s.open, conn)
			})
		}
	})
	t.Cleanup(func() {
		close(s.quit)
		_ = l.Close()
		s.mu.Lock()
		for conn := range s.open {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return s
}

func (s *stallingServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// endsInTime makes a call whose backend stalls, and requires that it ends soon after its deadline and that every
// connection is closed soon after that. It returns the call's error.
func (s *stallingServer) endsInTime(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stallDeadline)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		if err == nil { // the routing table arrived, and the statement went to the database itself
			return nil
		}
		assert.Eventually(t, func() bool { return s.connections() == 0 }, stallLimit, time.Millisecond,
			"the connection is closed")
		return err
	case <-time.After(stallLimit):
		require.Fail(t, "the call goes on after its deadline")
		return nil
	}
}

// every writes a text repeatedly until the connection breaks.
func every(pause time.Duration, text string) func(conn net.Conn, quit <-chan struct{}) {
	return func(conn net.Conn, quit <-chan struct{}) {
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			select {
			case <-time.After(pause):
			case <-quit:
				return
			}
		}
	}
}

// then answers the first request with a text, then runs next on the connection.
func then(text string, next func(conn net.Conn, quit <-chan struct{})) func(conn net.Conn, quit <-chan struct{}) {
	return func(conn net.Conn, quit <-chan struct{}) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		if _, err := io.WriteString(conn, text); err == nil {
			next(conn, quit)
		}
	}
}

// leaves waits until the client has closed the connection.
func leaves(net.Conn, <-chan struct{}) {}

func halfClose(conn net.Conn, _ <-chan struct{}) { _ = conn.(*net.TCPConn).CloseWrite() }

// TestEveryStallOfHTTPEndsAtTheDeadline: a call ends at its deadline whatever a backend does with the connection, and
// the connection is closed.
func TestEveryStallOfHTTPEndsAtTheDeadline(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name, scheme string
		handle       func(conn net.Conn, quit <-chan struct{})
	}{
		{"the headers do not come", "http", then("", leaves)},
		{"the headers stop", "http", then(ok+"X-A: ", leaves)},
		{"the headers do not end", "http", then(ok, every(10*time.Millisecond, "X-A: b\r\n"))},
		{"1xx without end", "http", then("", every(10*time.Millisecond, "HTTP/1.1 103 Early Hints\r\n\r\n"))},
		{"1xx as fast as can be", "http", then("", every(0, "HTTP/1.1 102 Processing\r\n\r\n"))},
		{"101", "http", then("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", leaves)},
		{"101 and bytes", "http", then("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
			every(10*time.Millisecond, "x"))},
		{"the body does not come", "http", then(ok+"Content-Length: 5\r\n\r\n", leaves)},
		{"the body stops", "http", then(ok+"Content-Length: 5\r\n\r\nab", leaves)},
		{"the body has no end", "http", then(ok+"Connection: close\r\n\r\n", every(10*time.Millisecond, "x"))},
		{"the body is a chunk at a time", "http",
			then(ok+"Transfer-Encoding: chunked\r\n\r\n", every(10*time.Millisecond, "1\r\nx\r\n"))},
		{"the trailers stop", "http", then(ok+"Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-A: ",
			leaves)},
		{"the trailers do not end", "http", then(ok+"Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
			every(10*time.Millisecond, "X-A: b\r\n"))},
		{"half closed before the headers", "http", then("", halfClose)},
		{"half closed in the body", "http", then(ok+"Content-Length: 5\r\n\r\nab", halfClose)},
		{"nothing is read", "http", func(_ net.Conn, quit <-chan struct{}) {
			select {
			case <-time.After(3 * stallDeadline):
			case <-quit:
			}
		}},
		{"no TLS handshake", "https", leaves},
		{"a TLS handshake that stops", "https", func(conn net.Conn, quit <-chan struct{}) {
			_, _ = conn.Write([]byte{22, 3, 3, 0, 100, 2})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStalling(t, c.handle)
			o := testOrigin(t, c.scheme+"://"+s.address)
			r := &Route{RouteDecl: abi.RouteDecl{Name: "r", Method: "POST", Path: "/", Class: abi.ClassWrite},
				origin: o, bodyBytes: 16 << 20}
			o.transport.TLSHandshakeTimeout = 3 * stallDeadline // a handshake may continue for another call
			body := []byte("short")
			if c.name == "nothing is read" {
				body = bytes.Repeat(body, 2<<20)
			}
			call, err := r.HTTP(&abi.HTTPRequest{}, body)
			require.NoError(t, err)
			err = s.endsInTime(t, func(ctx context.Context) error { _, err := call.Send(ctx); return err })
			require.Error(t, err)
			_, effect := call.Outcome(Answer{}, err)
			if c.scheme == "http" {
				assert.Equal(t, EffectUnknown, effect)
			}
		})
	}
}

func TestEveryStallOfHTTP2EndsAtTheDeadline(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"headers": func(http.ResponseWriter, *http.Request) {},
		"1xx": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
				time.Sleep(time.Millisecond) // as fast as it can, they exceed the limit on headers before the deadline
			}
		},
		"body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		},
		"a body at a time": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, ended := make(chan struct{}), make(chan struct{})
			// A repeated call may find that the request of the one before reached the server after all.
			begin, end := sync.OnceFunc(func() { close(began) }), sync.OnceFunc(func() { close(ended) })
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin()
				handle(w, r)
				<-r.Context().Done() // the stream was reset
				end()
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			t.Cleanup(server.Close)
			o := testOrigin(t, server.URL)
			o.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
			r := &Route{RouteDecl: abi.RouteDecl{Name: "r", Method: "GET", Path: "/", Class: abi.ClassRead}, origin: o,
				bodyBytes: 1 << 20}
			// On a busy machine the deadline may pass before the handshake is complete; then repeat the call with more
			// time.
			for deadline, reached := stallDeadline, false; !reached; deadline *= 2 {
				require.Less(t, deadline, stallLimit, "the server is never reached")
				call, err := r.HTTP(&abi.HTTPRequest{}, nil)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err = call.Send(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				select {
				case <-began:
					reached = true
				default:
				}
			}
			select {
			case <-ended:
			case <-time.After(stallLimit):
				assert.Fail(t, "the stream goes on")
			}
		})
	}
}

// TestEveryStallOfBoltEndsAtTheDeadline: a database that stops after any of its messages, or keeps sending empty ones,
// cannot block a call.
func TestEveryStallOfBoltEndsAtTheDeadline(t *testing.T) {
	upstream := graph(t, bolt.Options{Password: "password"})
	run := func(url string) func(context.Context) error {
		return func(ctx context.Context) error {
			d := testDatabase(t, url)
			d.logOnAs("", "password")
			_, _, err := d.run(ctx, statement{text: oneStatement, reads: true, rows: 10, bytes: 1 << 20})
			return err
		}
	}
	ways := map[string]func(conn net.Conn, quit <-chan struct{}){
		"silence":   leaves,
		"no-ops":    every(time.Millisecond, "\x00\x00"),
		"as chunks": every(10*time.Millisecond, "\x00\x01\xb1"),
		"half":      halfClose,
	}
	for _, scheme := range []string{"bolt", "neo4j"} {
		for passed := range messagesOfARun {
			for name, way := range ways {
				t.Run(fmt.Sprintf("%s/%s after %d messages", scheme, name, passed), func(t *testing.T) {
					t.Parallel()
					s := newStalling(t, func(conn net.Conn, quit <-chan struct{}) {
						if passMessages(conn, upstream.Address(), passed) == nil {
							way(conn, quit)
						}
					})
					s.endsInTime(t, run(scheme+"://"+s.address))
				})
			}
		}
	}
	t.Run("no TLS handshake", func(t *testing.T) {
		s := newStalling(t, leaves)
		s.endsInTime(t, run("bolt+ssc://"+s.address))
	})
	t.Run("silence behind the TLS handshake", func(t *testing.T) {
		certificate := httptest.NewUnstartedServer(nil)
		certificate.StartTLS()
		config := certificate.TLS
		certificate.Close()
		s := newStalling(t, func(conn net.Conn, _ <-chan struct{}) {
			_ = tls.Server(conn, &tls.Config{Certificates: config.Certificates}).Handshake()
		})
		s.endsInTime(t, run("bolt+ssc://"+s.address))
	})
	t.Run("nothing is read", func(t *testing.T) {
		s := newStalling(t, func(conn net.Conn, quit <-chan struct{}) {
			if passMessages(conn, upstream.Address(), 3) == nil {
				<-quit
			}
		})
		d := testDatabase(t, "bolt://"+s.address)
		d.logOnAs("", "password")
		ctx, cancel := context.WithTimeout(t.Context(), stallDeadline)
		defer cancel()
		began := time.Now()
		_, _, err := d.run(ctx, statement{text: givenStatement, params: map[string]any{"value": strings.Repeat("x", 16<<20)},
			rows: 10, bytes: 1 << 20})
		require.Error(t, err)
		assert.Less(t, time.Since(began), stallLimit)
	})
}

// messagesOfARun is how many messages a database sends for one statement, including the handshake: version, HELLO,
// LOGON, RUN, PULL and one more.
const messagesOfARun = 6

// passMessages passes bytes between a client and a database until the database has sent a number of messages.
func passMessages(client net.Conn, upstream string, messages int) error {
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	if messages == 0 {
		return nil
	}
	go func() { _, _ = io.Copy(server, client) }()
	in := io.TeeReader(bufio.NewReader(server), client)
	if _, err := io.CopyN(io.Discard, in, 4); err != nil { // the version
		return err
	}
	for range messages - 1 {
		for size := 1; size > 0; {
			var head [2]byte
			if _, err := io.ReadFull(in, head[:]); err != nil {
				return err
			}
			size = int(head[0])<<8 | int(head[1])
			if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
				return err
			}
		}
	}
	return nil
}
