package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/noswitch"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// errBodyTooLarge is the error for an answer larger than Config.BodyBytes.
var errBodyTooLarge = errors.New("the answer is larger than the limit")

// sendHTTP is Send for an HTTP call. It returns the answer unchanged, including redirects.
//
// net/http resends a request on its own when a reused connection breaks: always if nothing of the request was written,
// and otherwise only if [repeatable] holds. The first case is harmless. The second is allowed for reads, and counted. A
// write that left is never sent again here: the ledger finds out what became of it.
func (c *Call) sendHTTP(ctx context.Context) (answer Answer, err error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Add(1) }})
	request := c.http.WithContext(ctx)
	if c.Traceparent != "" {
		request.Header = request.Header.Clone()
		request.Header.Set(traceparent.Header, c.Traceparent)
	}
	if len(c.Body) > 0 {
		request.Body = io.NopCloser(bytes.NewReader(c.Body))
	}
	if c.Route.Class != abi.ClassRead && repeatable(request) {
		// net/http never resends a request with a body that cannot be rewound.
		request.Body, request.GetBody = io.NopCloser(bytes.NewReader(c.Body)), nil
	}
	response, err := c.Route.origin.transport.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	if err := noswitch.Refuse(response); err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	answer = Answer{Status: response.StatusCode, Header: response.Header}
	var body bytes.Buffer
	limit := c.Route.bodyBytes
	if n := response.ContentLength; n > 0 {
		// Room for the whole body and the final read that finds EOF, so that the buffer never grows while reading.
		body.Grow(int(min(n, limit)) + bytes.MinRead)
	}
	_, err = body.ReadFrom(io.LimitReader(response.Body, limit+1))
	answer.Body = body.Bytes()
	if err == nil && int64(len(answer.Body)) > limit {
		answer.Body, err = nil, errBodyTooLarge
	}
	return answer, err
}

// repeatable reports whether net/http considers a request safe to send twice. It would also look for a header
// Idempotency-Key, but does not recognise it in lower case, as [Route.HTTP] spells it.
func repeatable(r *http.Request) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, r.Method)
}

// HTTPAnswer turns the result of Send into what the guest gets: head and body, without secrets. ctx is the context of
// the whole operation.
//
// Errors: too_large for a body beyond the limit; denied (reason address) for a refused address; timeout; unavailable if
// there was no answer for any other reason. A status is never an error.
func (c *Call) HTTPAnswer(ctx context.Context, answer Answer, err error) (*abi.HTTPResponse, []byte, error) {
	if err != nil {
		return nil, nil, c.httpError(ctx, err)
	}
	clean := c.Route.redactor
	head := &abi.HTTPResponse{Status: int64(answer.Status), Headers: make(map[string]string, len(answer.Header)),
		Empty: c.Route.isEmpty(answer.Status, answer.Body)}
	for name, values := range answer.Header {
		head.Headers[clean.HeaderName(name)] = clean.Text(strings.Join(values, ", "))
	}
	return head, clean.Bytes(answer.Body), nil
}

// httpError explains why there is no answer.
func (c *Call) httpError(ctx context.Context, err error) *abi.Error {
	at, route := c.Route.origin.address(), c.Route.Name
	switch {
	case errors.Is(err, errBodyTooLarge):
		return abi.WrapError(abi.CodeTooLarge,
			fmt.Sprintf("%s answered route %s with more than %d bytes", at, route, c.Route.bodyBytes), err)
	case errors.Is(err, errAddress):
		return abi.WrapError(abi.CodeDenied, fmt.Sprintf("%s: %v", at, err), err).WithReason("address")
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("%s did not answer route %s in time", at, route), err)
	}
	if errors.Is(err, noswitch.ErrSwitched) {
		return abi.WrapError(abi.CodeBackend, fmt.Sprintf("%s on route %s: %v", at, route, err), err)
	}
	e := abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("%s cannot be reached for route %s: %v", at, route, err), err).
		WithHint(hintUnreached(err))
	e.NothingStored = c.Route.Class != abi.ClassRead && neverLeft(err)
	return e
}

// hintUnreached tells the operator what to do if no connection to a backend can be made.
func hintUnreached(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return "this machine cannot find the backend's name: is its URL right?"
	case errors.As(err, &certificate):
		return "this machine does not trust the backend's certificate: add its authority to the system's, " +
			"or name its file in SSL_CERT_FILE"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the backend speaks no TLS there: is its URL right, http instead of https?"
	}
	return "is the backend running, and is its URL right?"
}
