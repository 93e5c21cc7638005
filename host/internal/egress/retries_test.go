package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// droppingServer is a server that answers the first request of each connection, and drops the connection after reading the
// second. It counts requests by method and body.
type droppingServer struct {
	url      string
	mu       sync.Mutex
	arrivals []string
}

func newForgetful(t *testing.T) *droppingServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &droppingServer{url: "http://" + l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() { require.NoError(t, l.Close()); serving.Wait() })
	return f
}

func (f *droppingServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for n := range 2 {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(request.Body)
		f.mu.Lock()
		f.arrivals = append(f.arrivals, request.Method+" "+string(body)+request.Header.Get("Idempotency-Key"))
		f.mu.Unlock()
		if n == 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
}

// The trace counts requests, and a write is only sent once.
func TestRequestOnAConnectionThatTheBackendDrops(t *testing.T) {
	key := map[string]string{"Idempotency-Key": "key"}
	for _, c := range []struct {
		name, method, body string
		class              abi.Class
		headers            map[string]string
		arrives            string
		retries            int64
	}{
		{"a GET that reads is sent again", "GET", "", abi.ClassRead, nil, "GET ", 1},
		{"a POST that reads is not", "POST", "q", abi.ClassRead, nil, "POST q", 0},
		{"a POST that writes is not", "POST", "w", abi.ClassWrite, nil, "POST w", 0},
		{"a POST that writes is not, with a key either", "POST", "w", abi.ClassWrite, key, "POST wkey", 0},
		{"a GET that writes is not", "GET", "", abi.ClassWrite, nil, "GET ", 0},
		{"a GET with a body that writes is not", "GET", "w", abi.ClassAdmin, nil, "GET w", 0},
		{"a DELETE is not", "DELETE", "", abi.ClassAdmin, nil, "DELETE ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newForgetful(t)
			o := testOrigin(t, f.url)
			send := func(decl abi.RouteDecl, headers map[string]string, body string) (*Call, Answer, error) {
				r := &Route{RouteDecl: decl, origin: o, bodyBytes: 1 << 20}
				call, err := r.HTTP(&abi.HTTPRequest{Headers: headers}, []byte(body))
				require.NoError(t, err)
				answer, err := call.Send(t.Context())
				return call, answer, err
			}
			_, _, err := send(abi.RouteDecl{Name: "open", Method: "GET", Path: "/", Class: abi.ClassRead}, nil, "")
			require.NoError(t, err)
			call, answer, err := send(abi.RouteDecl{Name: "r", Method: c.method, Path: "/", Class: c.class}, c.headers,
				c.body)
			assert.Equal(t, c.retries, call.Retries())
			_, effect := call.Outcome(answer, err)
			want := []string{"GET ", c.arrives}
			if c.retries > 0 {
				want = append(want, c.arrives)
				require.NoError(t, err)
				assert.Equal(t, "ok", string(answer.Body))
			} else {
				require.Error(t, err)
				assert.Equal(t, EffectUnknown, effect)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			assert.Equal(t, want, f.arrivals)
		})
	}
}

func TestEverySendIsCounted(t *testing.T) {
	f := newForgetful(t)
	o := testOrigin(t, f.url)
	r := &Route{RouteDecl: abi.RouteDecl{Method: "POST", Path: "/", Class: abi.ClassWrite}, origin: o,
		bodyBytes: 1 << 20}
	call, err := r.HTTP(&abi.HTTPRequest{}, []byte("w"))
	require.NoError(t, err)
	assert.Zero(t, call.Retries(), "nothing was sent")
	for n := range int64(2) {
		_, err = call.Send(t.Context())
		require.NoError(t, err)
		assert.Equal(t, n, call.Retries())
		o.transport.CloseIdleConnections()
	}
}
