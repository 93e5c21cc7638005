package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
)

// Limits on a connection before its first request is read.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Serve serves l until ctx ends: then /readyz returns 503, no connection is accepted any more, and calls in progress
// have Options.Shutdown to finish. The remaining ones are cut off by cancelling their context. l is always closed.
// Serve may be called once.
//
// Errors: invalid_argument with ReasonTokenRequired if l is off loopback and there is no token of at least 16
// characters; timeout if calls were cut off; unavailable if l fails.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := needsToken(isLoopbackAddr(l.Addr()), l.Addr().String(), s.guard.length); err != nil {
		_ = l.Close()
		return err
	}
	// The context of calls outlives ctx, whose end asks for a graceful stop.
	calls, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	web := &http.Server{Handler: s.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		BaseContext:    func(net.Listener) context.Context { return context.WithValue(calls, servingKey{}, calls) },
		ErrorLog:       s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})}
	s.log.Info("listening", "address", l.Addr().String(), "token", s.guard.digest != nil)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(&loggedListener{Listener: l, log: s.log}) }()
	select {
	case err := <-ended:
		return abi.WrapError(abi.CodeUnavailable, "the listener failed: "+err.Error(), err)
	case <-ctx.Done():
	}
	err := s.stop(web, cutOff)
	<-ended // the listener is closed
	return err
}

// loggedListener logs, once a minute, why it accepts no connections, for example because the process has no file
// descriptor left. The server tries again by itself.
type loggedListener struct {
	net.Listener
	log      hclog.Logger
	loggedAt time.Time
}

// Accept implements net.Listener.
func (l *loggedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && time.Since(l.loggedAt) > time.Minute {
		l.loggedAt = time.Now()
		l.log.Warn("no further connection is let in", "error", err)
	}
	return c, err
}

// stop ends the server gracefully, or by force if that takes too long.
func (s *Server) stop(web *http.Server, cutOff context.CancelFunc) error {
	s.stopping.Store(true)
	close(s.ending)
	s.log.Info("stopping", "calls_under_way", s.calls.Load(), "wait_at_most", s.options.Shutdown.String())
	patience, done := context.WithTimeout(context.Background(), s.options.Shutdown)
	defer done()
	err := web.Shutdown(patience)
	if err == nil {
		return nil
	}
	left := s.calls.Load()
	cutOff()
	_ = web.Close()
	if !errors.Is(err, context.DeadlineExceeded) {
		return abi.WrapError(abi.CodeUnavailable, "stopping: "+err.Error(), err)
	}
	return abi.NewError(abi.CodeTimeout, fmt.Sprintf("%d calls had not ended after %s and were cut off", left,
		s.options.Shutdown)).WithReason("shutdown").
		WithHint("writes that were cut off are uncertain: recording their events again is safe")
}

// servingKey is the key of the context that ends when the server cuts calls off.
type servingKey struct{}

// detached returns the context of a call that continues after its caller has gone, until it is done or the server cuts
// it off. release must be called.
//
// A write that has started is finished: half of it would be uncertain, and an agent that ends right after its last turn
// cannot wait for a slow backend. The operation's own deadline applies.
func detached(ctx context.Context) (_ context.Context, release func()) {
	free, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	serving, ok := ctx.Value(servingKey{}).(context.Context)
	if !ok {
		return free, func() { cancel(nil) }
	}
	stop := context.AfterFunc(serving, func() { cancel(context.Cause(serving)) })
	return free, func() { stop(); cancel(nil) }
}
