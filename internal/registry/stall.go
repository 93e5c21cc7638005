package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errStalled ends an answer that has stopped.
var errStalled = errors.New("the registry stopped in the middle of its answer")

// stallTransport makes answers fail if nothing arrives for a while. The base transport only limits the wait for the
// start of an answer.
type stallTransport struct {
	base http.RoundTripper
	wait time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *stallTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancelCause(r.Context())
	answer, err := p.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		stop(nil)
		return nil, err
	}
	timer := time.AfterFunc(p.wait, func() { stop(errStalled) })
	answer.Body = &timedBody{body: answer.Body, ctx: ctx, stop: stop, timer: timer, wait: p.wait}
	return answer, nil
}

// timedBody is the body of an answer. Each read restarts its timer.
type timedBody struct {
	body  io.ReadCloser
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
	wait  time.Duration
}

func (w *timedBody) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if err == nil {
		w.timer.Reset(w.wait)
	} else if err != io.EOF && errors.Is(context.Cause(w.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (w *timedBody) Close() error {
	w.timer.Stop()
	defer w.stop(nil)
	return w.body.Close()
}
