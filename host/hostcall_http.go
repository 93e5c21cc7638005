package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/internal/jsonpointer"
	"golang.org/x/net/http/httpguts"
)

// hostHTTPSend sends one request by a route of the manifest and holds the answer for the guest.
func hostHTTPSend(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		var r abi.HTTPRequest
		if err := m.parse(stack[0], stack[1], &r); err != nil {
			return c.refuse(err)
		}
		head, body, err := c.send(&r, bytes.Clone(m.view(stack[2], stack[3])))
		if err != nil {
			e := *abi.AsError(err)
			e.Route = r.Route
			return c.refuse(&e)
		}
		return c.answer(head, body)
	}()
}

// send checks a request against policy and mode, sends it and accounts for it.
func (c *call) send(r *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error) {
	route, err := c.routeFor(r.Route, abi.ProtocolHTTP)
	if err != nil {
		return nil, nil, err
	}
	if err := route.matches(body); err != nil {
		return nil, nil, err
	}
	request, err := route.request(r, body)
	if err != nil {
		return nil, nil, err
	}
	if err := c.willSend(route.decl.Class); err != nil {
		return nil, nil, err
	}
	if r.TimeoutMS < 0 {
		return nil, nil, abi.NewError(abi.CodeInvalidArgument, "timeout_ms: want 0 or more")
	}
	began := time.Now()
	seen := abi.IO{Route: route.decl.Name, Class: string(route.decl.Class), BytesOut: int64(len(body))}
	answer, err := c.intercepted(func() NativeCall {
		return NativeCall{Route: route.decl.Name, Class: route.decl.Class, Origin: route.decl.Origin, Protocol: "http",
			Method: request.Method, URL: request.URL.String(), Body: body}
	}, func(ctx context.Context) (NativeAnswer, error) {
		if r.TimeoutMS > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(min(r.TimeoutMS, int64(time.Hour/time.Millisecond)))*time.Millisecond)
			defer cancel()
		}
		return route.origin.exchange(request.WithContext(ctx), c.provider.limits.BodyBytes)
	})
	took := time.Since(began)
	c.backend += took
	seen.Status, seen.MS, seen.BytesIn = int64(answer.Status), ms(took), int64(len(answer.Body))
	c.io = append(c.io, seen)
	if err != nil {
		if !neverLeft(err) {
			c.didSend(route.decl.Class, landingOf(answer.Status))
		}
		return nil, nil, c.sendError(route, err)
	}
	c.didSend(route.decl.Class, landingOf(answer.Status))
	clean := c.provider.redactor
	head := &abi.HTTPResponse{Status: int64(answer.Status), Headers: make(abi.Members[string], 0, len(answer.Header)), Empty: route.isEmpty(answer.Status, answer.Body)}
	for name, values := range answer.Header {
		head.Headers = append(head.Headers, abi.Member[string]{Name: strings.ToLower(name), Value: clean.text(strings.Join(values, ", "))})
	}
	slices.SortFunc(head.Headers, func(a, b abi.Member[string]) int { return strings.Compare(a.Name, b.Name) })
	return head, clean.bytes(answer.Body), nil
}

// routeFor finds the route, of one protocol, and asks whether this call may use its class now.
func (c *call) routeFor(name, protocol string) (*route, error) {
	route, ok := c.provider.routes[name]
	if !ok {
		e := abi.NewError(abi.CodeDenied, fmt.Sprintf("route %q is not in the manifest of %s", short(name), c.provider.name))
		if near := abi.Nearest(name, names(c.provider.routes)); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, e
	}
	if of := route.protocol(); of != protocol {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("route %s is of protocol %s, not %s", name, of, protocol))
	}
	if route.origin == nil {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("route %s: its origin %s is not configured", name, route.decl.Origin))
	}
	if c.readOnly && route.decl.Class != abi.ClassRead {
		return nil, abi.NewError(abi.CodeReadOnly, fmt.Sprintf("route %s is of class %s, and the slot is read-only", name, route.decl.Class))
	}
	if route.decl.Class == abi.ClassAdmin && !slices.Contains([]string{abi.OpSetupScope, abi.OpResetScope, abi.OpNativeMutation}, c.op) {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("route %s is of class admin, which %s may not use", name, c.op))
	}
	return route, nil
}

func (r *route) protocol() string {
	if r.decl.Statement != "" {
		return abi.ProtocolBolt
	}
	return abi.ProtocolHTTP
}

// request builds the request, still without a context: the guest gives parameters, the host the URL.
func (r *route) request(in *abi.HTTPRequest, body []byte) (*http.Request, error) {
	target, err := r.url(in)
	if err != nil {
		return nil, err
	}
	request := &http.Request{Method: r.decl.Method, URL: target, Host: target.Host, Header: http.Header{"User-Agent": {"memhost"}},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(body) > 0 {
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	for _, h := range in.Headers {
		name, value, lower := h.Name, h.Value, strings.ToLower(h.Name)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("headers.%q: not a header that can be sent", short(name)))
		}
		if slices.Contains(hostHeaders, lower) {
			return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("headers.%s: set by the host alone", lower))
		}
		if value, err = r.origin.withSecrets(lower, value); err != nil {
			return nil, err
		}
		request.Header.Set(name, value)
	}
	return request, nil
}

// hostHeaders are not a guest's to set: they frame the message or steer connections.
var hostHeaders = []string{"host", "content-length", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate",
	"te", "trailer", "transfer-encoding", "upgrade", "expect"}

// url fills the route's path and adds the query. A parameter is one path segment, whatever is in it.
func (r *route) url(in *abi.HTTPRequest) (*url.URL, error) {
	var rooms [3][256]byte // on the stack, as long as they suffice
	plain, escaped, query := append(rooms[0][:0], r.origin.base.Path...), append(rooms[1][:0], r.origin.base.EscapedPath()...), rooms[2][:0]
	used := 0
	for rest := r.decl.Path; rest != ""; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			plain, escaped = append(plain, rest...), append(escaped, rest...)
			break
		}
		end := open + strings.IndexByte(rest[open:], '}')
		name := rest[open+1 : end]
		value, ok := in.Params.Find(name)
		switch {
		case !ok:
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("params.%s: missing, route %s has the path %s", name, r.decl.Name, r.decl.Path))
		case value == "" || value == "." || value == "..":
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("params.%s: %q would change the path", name, value)).
				WithHint("map ids to the backend's alphabet before they become part of a path")
		}
		used++
		plain = append(append(plain, rest[:open]...), value...)
		escaped = append(append(escaped, rest[:open]...), url.PathEscape(value)...)
		rest = rest[end+1:]
	}
	if used != len(in.Params) {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("params: %d given, route %s takes %d", len(in.Params), r.decl.Name, used))
	}
	for i, q := range in.Query {
		if i > 0 {
			query = append(query, '&')
		}
		query = append(append(query, url.QueryEscape(q.Key)...), '=')
		query = append(query, url.QueryEscape(q.Value)...)
	}
	u := &url.URL{Scheme: r.origin.base.Scheme, Host: r.origin.base.Host, Path: string(plain), RawQuery: string(query)}
	if u.Path != string(escaped) { // else it would be undone and compared with each use
		u.RawPath = string(escaped)
	}
	return u, nil
}

// withSecrets replaces {{secret:NAME}} in a header that the manifest declares for that secret. Elsewhere such a text stays text.
func (o *origin) withSecrets(header, value string) (string, error) {
	for name, secret := range o.secrets[header] {
		if value = strings.ReplaceAll(value, "{{secret:"+name+"}}", secret); !httpguts.ValidHeaderFieldValue(value) {
			return "", abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("secret %s holds characters that no header may have", name))
		}
	}
	return value, nil
}

var errBodyTooLarge = errors.New("the answer is larger than the limit")

// exchange sends one request, which it may do again with the same one. What comes back is returned as it is, redirects too.
func (o *origin) exchange(request *http.Request, limit int64) (answer NativeAnswer, err error) {
	if request.GetBody != nil {
		if request.Body, err = request.GetBody(); err != nil {
			return answer, err
		}
	}
	response, err := o.transport.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	answer = NativeAnswer{Status: response.StatusCode, Header: response.Header}
	var body bytes.Buffer
	if n := response.ContentLength; n > 0 {
		body.Grow(int(min(n, limit)) + bytes.MinRead) // so that it never grows while it is read, to the end, after which the connection can be used again
	}
	_, err = body.ReadFrom(io.LimitReader(response.Body, limit+1))
	answer.Body = body.Bytes()
	if err == nil && int64(len(answer.Body)) > limit {
		answer.Body, err = nil, errBodyTooLarge
	}
	return answer, err
}

// neverLeft tells whether an exchange failed before there was a connection.
func neverLeft(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// sendError says why no answer came.
func (c *call) sendError(r *route, err error) *abi.Error {
	at := r.origin.base.Scheme + "://" + r.origin.base.Host
	switch {
	case errors.Is(err, errBodyTooLarge):
		return abi.WrapError(abi.CodeTooLarge, fmt.Sprintf("%s answered route %s with more than %d bytes", at, r.decl.Name, c.provider.limits.BodyBytes), err)
	case errors.Is(err, errAddress):
		return abi.WrapError(abi.CodeDenied, fmt.Sprintf("%s: %v", at, err), err).WithReason("address")
	case c.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("%s did not answer route %s in time", at, r.decl.Name), err)
	}
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("%s cannot be reached for route %s: %v", at, r.decl.Name, err), err).WithHint(hintUnreached(err))
}

// hintUnreached says what an operator does about a backend that no connection came about to.
func hintUnreached(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return "this machine cannot find the backend's name: is its URL right?"
	case errors.As(err, &certificate):
		return "this machine does not trust the backend's certificate: add its authority to the system's, or name its file in SSL_CERT_FILE"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the backend speaks no TLS there: is its URL right, http instead of https?"
	}
	return "is the backend running, and is its URL right?"
}

// matches checks the JSON body against the route's match. A body in which two readers could see two different things is refused.
func (r *route) matches(body []byte) error {
	if len(r.match) == 0 {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return abi.NewError(abi.CodeDenied, fmt.Sprintf("body of route %s: ", r.decl.Name)+fmt.Sprintf(format, args...))
	}
	value, err := unambiguous(body)
	if err != nil {
		return wrong("%v", err)
	}
	for _, m := range r.match {
		found, ok := jsonpointer.Find(value, m.pointer)
		if !ok {
			return wrong("nothing at %s, the manifest wants %v", m.pointer, m.value)
		}
		if !reflect.DeepEqual(found, m.value) {
			return wrong("another value at %s than %v, which the manifest wants", m.pointer, m.value)
		}
	}
	return nil
}

// unambiguous parses JSON in which no object has two keys that are equal, or equal but for case. Numbers come back as float64.
func unambiguous(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not UTF-8") // readers differ in what they make of the bad bytes, in a key too
	}
	d := jsontext.DecodeBytes(text).Limit(abi.MaxDepth)
	value, err := unambiguousValue(d)
	var syntax *jsontext.SyntaxError
	switch {
	case errors.As(err, &syntax):
		if _, deep := jsontext.DepthError(syntax); deep {
			return nil, fmt.Errorf("nests deeper than %d", abi.MaxDepth)
		}
		return nil, fmt.Errorf("is not JSON: %w", err)
	case err != nil:
		return nil, err
	case !d.AtEnd():
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

func unambiguousValue(d *jsontext.Decoder) (value any, err error) {
	switch d.Next() {
	case jsontext.String:
		return d.Str()
	case jsontext.Number:
		return d.Float64()
	case jsontext.Bool:
		return d.Bool()
	case jsontext.Array:
		list := []any{}
		err := d.Arr(func(d *jsontext.Decoder) error {
			v, err := unambiguousValue(d)
			list = append(list, v)
			return err
		})
		return list, err
	case jsontext.Object:
		object, folded := map[string]any{}, map[string]bool{}
		err := d.Obj(func(d *jsontext.Decoder, name string) (err error) {
			fold := strings.ToLower(name)
			if folded[fold] {
				return fmt.Errorf("has the key %q twice", short(name))
			}
			folded[fold] = true
			object[name], err = unambiguousValue(d)
			return err
		})
		return object, err
	}
	return nil, d.Null()
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
