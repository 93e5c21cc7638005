package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// busyServer is a serving door with one call that waits inside the slot.
type busyServer struct {
	server  *server.Server
	address string
	stop    context.CancelFunc
	ended   chan error
	// reached is closed when the call is in the slot; it returns when release is closed or its context ends.
	reached, release chan struct{}
	// answered receives the status of the call, or 0 if its connection broke.
	answered chan int
}

func serve(t *testing.T, change ...func(o *server.Options)) *busyServer {
	t.Helper()
	v := &busyServer{ended: make(chan error, 1), reached: make(chan struct{}), release: make(chan struct{}),
		answered: make(chan int, 1)}
	slot := &servertest.Slot{Answer: func(ctx context.Context, op string, _ any) (any, error) {
		if op != abi.OpRecordEvent {
			return nil, nil
		}
		close(v.reached)
		select {
		case <-v.release:
			return nil, nil
		case <-ctx.Done():
			return nil, abi.WrapError(abi.CodeTimeout, "cut off", ctx.Err())
		}
	}}
	v.server, _ = newServer(t, slot, change...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	v.address = l.Addr().String()
	var ctx context.Context
	ctx, v.stop = context.WithCancel(context.Background())
	t.Cleanup(v.stop)
	go func() { v.ended <- v.server.Serve(ctx, l) }()
	return v
}

// call starts the waiting call and returns when it is in the slot.
func (v *busyServer) call() {
	go func() {
		r, err := http.Post("http://"+v.address+wire.PathEvents, wire.MediaJSON, strings.NewReader(anEvent))
		if err != nil {
			v.answered <- 0
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		v.answered <- r.StatusCode
	}()
	<-v.reached
}

func TestAGracefulStop(t *testing.T) {
	v := serve(t)
	v.call()
	require.Equal(t, 200, ask(v.server.Handler(), "GET", wire.PathReady, "").Code)
	v.stop()
	// The door is not ready before it stops accepting: once connections are refused, /readyz has reported that for a
	// while.
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", v.address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)
	w := ask(v.server.Handler(), "GET", wire.PathReady, "")
	require.Equal(t, 503, w.Code)
	require.Equal(t, "stopping", problem(t, w).Reason)
	require.Equal(t, 200, ask(v.server.Handler(), "GET", wire.PathLive, "").Code, "the process is still up")
	select {
	case err := <-v.ended:
		t.Fatalf("Serve ended before the call under way: %v", err)
	default:
	}
	close(v.release)
	require.Equal(t, 200, <-v.answered)
	require.NoError(t, <-v.ended)
}

func TestCallsThatDoNotEndAreCutOff(t *testing.T) {
	v := serve(t, func(o *server.Options) { o.Shutdown = time.Millisecond })
	v.call()
	v.stop()
	err := <-v.ended
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeTimeout})
	require.Equal(t, "shutdown", abi.AsError(err).Reason)
	require.Contains(t, err.Error(), "1 calls")
	<-v.answered // the slot saw its context end; otherwise the call would wait forever
}

func TestAServerThatIsToldToStopBeforeItStarts(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, s.Serve(ctx, l))
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err, "the listener is closed")
}

func TestAListenerOffLoopbackWithoutAToken(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot)) // configured for 127.0.0.1, but given another listener
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	err = s.Serve(context.Background(), l)
	require.Equal(t, server.ReasonTokenRequired, abi.AsError(err).Reason)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAListenerThatFails(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, s.Serve(context.Background(), l), &abi.Error{Code: abi.CodeUnavailable})
}

func TestReadinessIsTheSlots(t *testing.T) {
	closed := abi.NewError(abi.CodeUnavailable, "the slot is closed").WithReason("closed")
	s, _ := newServer(t, failing(closed))
	w := ask(s.Handler(), "GET", wire.PathReady, "")
	require.Equal(t, 503, w.Code)
	require.Equal(t, "closed", problem(t, w).Reason)
	require.Equal(t, 200, ask(s.Handler(), "GET", wire.PathLive, "").Code)
}

func TestARequestsIDIsEchoedWhenItIsOne(t *testing.T) {
	s, log := newServer(t, new(servertest.Slot))
	require.Equal(t, "abc-1.2_3", ask(s.Handler(), "GET", wire.PathLive, "", "X-Request-Id",
		"abc-1.2_3").Header().Get("X-Request-Id"))
	for _, id := range []string{"", "a b", "a\"", strings.Repeat("a", 65), "é"} {
		got := ask(s.Handler(), "GET", wire.PathLive, "", "X-Request-Id", id).Header().Get("X-Request-Id")
		require.NotEqual(t, id, got)
		require.NotEmpty(t, got)
	}
	require.Contains(t, log.String(), "request_id=abc-1.2_3")
	require.NotContains(t, log.String(), `a"`)
}

// A write that has started is finished when its caller goes: an agent's child process that ends right after a turn
// leaves nothing half done.
func TestAWriteOutlivesItsCaller(t *testing.T) {
	for op, c := range map[string]struct {
		path, body string
		outlives   bool
	}{
		abi.OpRecordEvent:  {wire.PathEvents, anEvent, true},
		abi.OpRecordEvents: {wire.PathEventsBatch, `{"events":[` + anEvent + `]}`, true},
		abi.OpRetrieve:     {wire.PathRetrieve, `{"query":"q","scope":{"run_id":"r","persona_id":"u"},"session_id":"s"}`, false},
	} {
		t.Run(op, func(t *testing.T) {
			reached, gone, left := make(chan struct{}), make(chan (<-chan struct{}), 1), make(chan error, 1)
			slot := &servertest.Slot{Answer: func(ctx context.Context, _ string, _ any) (any, error) {
				close(reached)
				<-<-gone // the server has noticed
				left <- ctx.Err()
				return nil, nil
			}}
			s, _ := newServer(t, slot)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				gone <- r.Context().Done()
				s.Handler().ServeHTTP(w, r)
			}))
			defer web.Close()
			ctx, cancel := context.WithCancel(context.Background())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+c.path, strings.NewReader(c.body))
			require.NoError(t, err)
			r.Header.Set("Content-Type", wire.MediaJSON)
			go func() { <-reached; cancel() }()
			response, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = response.Body.Close()
			}
			require.ErrorIs(t, err, context.Canceled)
			if c.outlives {
				require.NoError(t, <-left)
			} else {
				require.ErrorIs(t, <-left, context.Canceled)
			}
		})
	}
}

// exhaustedListener is a listener that twice has no file descriptor left.
type exhaustedListener struct {
	net.Listener
	left int
}

func (l *exhaustedListener) Accept() (net.Conn, error) {
	if l.left > 0 {
		l.left--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestADoorThatCannotAcceptSaysSoOnceAndGoesOn(t *testing.T) {
	s, log := newServer(t, new(servertest.Slot))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, &exhaustedListener{l, 2}) }()
	answer, err := http.Get("http://" + l.Addr().String() + wire.PathLive)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, 1, strings.Count(log.String(), "[WARN]  http: no further connection is let in"))
	require.Contains(t, log.String(), "too many open files")
}

func TestALongPathIsNotRepeated(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	w := ask(s.Handler(), "GET", "/"+strings.Repeat("a", 60_000), "")
	require.Equal(t, 404, w.Code)
	require.Less(t, w.Body.Len(), 1000)
}
