package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// call makes one request to the slot. request is nil for no body.
func (c *Client) call(ctx context.Context, op, method, path string, request abi.Encodable, answer abi.Decodable) error {
	response, err := c.send(ctx, op, method, path, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := c.text(ctx, op, response)
	if err != nil {
		return err
	}
	return c.read(op, response, text, answer)
}

// text reads an answer completely.
func (c *Client) text(ctx context.Context, op string, response *http.Response) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, op, err)
	}
	if len(text) > maxAnswer {
		return nil, inOperation(op, abi.NewError(abi.CodeTooLarge,
			fmt.Sprintf("the answer of %s has more than %d bytes", c.base, maxAnswer)))
	}
	return text, nil
}

// send sends a request and returns the answer, whose body the caller closes.
func (c *Client) send(ctx context.Context, op, method, path string, request abi.Encodable) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if request != nil {
		body = bytes.NewReader(abi.Marshal(request))
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, inOperation(op, abi.WrapError(abi.CodeInternal, "making the request: "+err.Error(), err))
	}
	if request != nil {
		r.Header.Set("Content-Type", wire.MediaJSON)
	}
	r.Header.Set("Accept", wire.MediaJSON+", "+wire.MediaProblem)
	if c.Door != "" {
		r.Header.Set(wire.HeaderDoor, c.Door)
	}
	if parent := traceparent.Of(ctx); parent.Present() {
		r.Header.Set(traceparent.Header, parent.String())
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, op, err)
	}
	c.answered.Store(true)
	return response, nil
}

// read checks an answer and decodes it.
func (c *Client) read(op string, response *http.Response, text []byte, answer abi.Decodable) error {
	if err := c.refusal(op, response, text, wire.MediaJSON); err != nil {
		return err
	}
	if err := abi.Unmarshal(text, answer); err != nil {
		e := abi.AsError(err)
		return c.notASlot(op, "answered with what is not the contract's: "+e.Message)
	}
	if name := missing(text, answer); name != "" {
		return c.notASlot(op, "answered without the field "+name)
	}
	return nil
}

// refusal returns the error of an answer that is not a success of that media type, or nil.
func (c *Client) refusal(op string, response *http.Response, text []byte, want string) error {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case media == wire.MediaProblem:
		if e := wire.DecodeProblem(text); e != nil {
			return e
		}
		return c.foreign(op, response)
	case response.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "HTTP request to an HTTPS"):
		return c.wrongScheme(op, "speaks https, not http", "https://")
	case response.StatusCode != http.StatusOK:
		return c.foreign(op, response)
	case media != want:
		return c.notASlot(op, fmt.Sprintf("answered with %q, not %s", response.Header.Get("Content-Type"), want))
	}
	return nil
}

// unreachable explains why there was no answer.
func (c *Client) unreachable(ctx context.Context, op string, err error) error {
	const again = "whether it was done is not known; recording an event again is safe"
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		e := abi.WrapError(abi.CodeTimeout, fmt.Sprintf("the slot at %s had not answered when the caller's time was "+
			"over", c.base), context.Cause(ctx))
		if errors.Is(ctx.Err(), context.Canceled) {
			e.Message = fmt.Sprintf("the caller went away before the slot at %s answered", c.base)
		}
		return inOperation(op, e.WithReason(ReasonDeadline).WithHint(again))
	case errors.Is(err, http.ErrSchemeMismatch):
		return c.wrongScheme(op, "speaks http, not https", "http://")
	case errors.As(err, &certificate):
		return inOperation(op, abi.WrapError(abi.CodeUnavailable,
			fmt.Sprintf("this machine does not trust the certificate at %s: %s", c.base, certificate.Err), err).
			WithReason(ReasonNoSlot).WithHint("add its authority to the system's, or name its file in SSL_CERT_FILE; nothing "+
			"was sent"))
	case errors.As(err, &dial) && dial.Op == "dial":
		return inOperation(op, abi.WrapError(abi.CodeUnavailable,
			fmt.Sprintf("no slot answers at %s: %s", c.base, dial.Err), err).
			WithReason(ReasonNoSlot).WithHint("start one with memhost run, or name another with --server or "+
			"MEMHOST_SERVER"))
	case c.speaksTLS(ctx):
		return c.wrongScheme(op, "speaks https, not http", "https://")
	default:
		return inOperation(op, abi.WrapError(abi.CodeUnavailable,
			fmt.Sprintf("the connection to the slot at %s broke: %s", c.base, err), err).
			WithReason(ReasonConnection).WithHint(again))
	}
}

// foreign is the error for a status without a problem document of ours, which comes from a server in front of the slot
// or in its place.
func (c *Client) foreign(op string, response *http.Response) error {
	status := response.StatusCode
	if status < 400 {
		what := fmt.Sprintf("answered %s", response.Status)
		if to := response.Header.Get("Location"); to != "" {
			what += " to " + strconv.Quote(to) + "; redirects are not followed"
		}
		return c.notASlot(op, what)
	}
	e := abi.NewError(codeOf(status), fmt.Sprintf("%s answered %s, and not in the form of a slot", c.base,
		response.Status)).
		WithReason(ReasonNotASlot).WithHint("look for a proxy before the slot, or another program at the address")
	if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil && seconds >= 0 {
		ms := seconds * time.Second.Milliseconds()
		e.RetryAfterMS = &ms
	}
	return inOperation(op, e)
}

// codeOf returns the code for a status without a problem document. A gateway's 502 means that it could not reach the
// slot.
func codeOf(status int) abi.Code {
	for _, code := range []abi.Code{abi.CodeUnauthenticated, abi.CodeDenied, abi.CodeNotFound, abi.CodeConflict,
		abi.CodeTooLarge, abi.CodeRateLimited,
		abi.CodeUnsupported, abi.CodeTimeout} {
		if code.HTTPStatus(false) == status {
			return code
		}
	}
	if status < 500 {
		return abi.CodeInvalidArgument
	}
	return abi.CodeUnavailable
}

func (c *Client) notASlot(op, what string) error {
	e := abi.NewError(abi.CodeUnavailable, fmt.Sprintf("what listens at %s is no memhost slot: it %s", c.base, what)).
		WithReason(ReasonNotASlot).WithHint("look which program has the port; memhost run --listen chooses another")
	e.Retryable = false
	return inOperation(op, e)
}

// tlsWithin bounds the probe for https at an http address.
const tlsWithin = time.Second

// speaksTLS reports whether an http address that never answered accepts TLS: some servers silently close other
// connections. Only a handshake is sent, so the owner of the certificate does not matter.
func (c *Client) speaksTLS(ctx context.Context) bool {
	u, err := url.Parse(c.base)
	if err != nil || u.Scheme != "http" || c.answered.Load() {
		return false
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	ctx, cancel := context.WithTimeout(ctx, tlsWithin)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// wrongScheme is the error for a server that speaks https instead of http, or vice versa. The error is not about the
// token.
func (c *Client) wrongScheme(op, what, want string) error {
	_, rest, _ := strings.Cut(c.base, "://")
	e := abi.NewError(abi.CodeUnavailable, "what listens at "+c.base+" "+what).WithReason(ReasonNotASlot).
		WithHint("name it as " + want + rest)
	e.Retryable = false
	return inOperation(op, e)
}

func inOperation(op string, e *abi.Error) error {
	e.Operation = op
	return e
}
