package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/internal/base/address"
)

// Every connection to a backend is made here or, for Bolt, watched here. The address is checked at the moment of
// dialling, after its name was resolved, so that a name cannot resolve differently after the check.

const dialTimeout = 10 * time.Second

// errAddress is the error for an address that is always refused.
var errAddress = address.ErrRefused

// newTransport makes the connections of an http origin. It follows no redirects, ignores proxies from the environment,
// and adds no headers.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, ControlContext: address.Refuse}
	return &http.Transport{DialContext: dialer.DialContext, Proxy: nil, DisableCompression: true, MaxIdleConns: 64,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: dialTimeout,
		ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}
}

// dialWatch checks every address that is dialled under its context. Neo4j's driver does not accept a custom dialler,
// but it dials through package net, which reports the resolved address of each connection to a trace in the context: of
// the configured host and of each host in a routing table. A refused address cancels the context, which closes the
// connection before a byte is sent on it.
type dialWatch struct {
	cancel  context.CancelFunc
	refused atomic.Pointer[error]
}

func watchDials(ctx context.Context) (context.Context, *dialWatch) {
	w := new(dialWatch)
	ctx, w.cancel = context.WithCancel(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectStart: func(_, at string) {
		if err := address.Refuse(ctx, "", at, nil); err != nil {
			w.refused.Store(&err)
			w.cancel()
		}
	}}), w
}

func (w *dialWatch) stop() { w.cancel() }

// explain replaces the error of a call by the refusal that caused it.
func (w *dialWatch) explain(err error) error {
	if refused := w.refused.Load(); refused != nil && err != nil {
		return &unsentError{*refused}
	}
	return err
}

// neverLeft reports whether a call failed before it had a connection.
func neverLeft(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
