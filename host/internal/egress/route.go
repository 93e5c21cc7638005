package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/internal/text/jsonpointer"
	"github.com/memhost/memhost/internal/text/unambiguous"
	"golang.org/x/net/http/httpguts"
)

// Route is one native call of the manifest, ready for use. Its fields Name, Origin and Class come from the manifest.
type Route struct {
	abi.RouteDecl

	origin    *origin // nil if the block does not name it
	match     []bodyMatch
	empty     []emptyAnswer
	bodyBytes int64
	rows      int64
	redactor  Redactor

	secretHeaders   []string          // headers declared for a secret of the origin, in lower case
	operatorHeaders map[string]string // set by the block under headers, by lower-case name
}

// ProtocolOf is the protocol of a route: abi.ProtocolHTTP or abi.ProtocolBolt.
func ProtocolOf(r *abi.RouteDecl) string {
	if r.Statement != "" {
		return abi.ProtocolBolt
	}
	return abi.ProtocolHTTP
}

func newRoute(decl abi.RouteDecl, c Config, n *Network) (*Route, error) {
	r := &Route{RouteDecl: decl, origin: n.origins[decl.Origin], bodyBytes: c.BodyBytes, rows: c.Rows,
		redactor: n.redactor, operatorHeaders: n.headers}
	for _, s := range c.Manifest.Secrets {
		for _, header := range s.Headers {
			if s.Origin == decl.Origin {
				r.secretHeaders = append(r.secretHeaders, strings.ToLower(header))
			}
		}
	}
	var err error
	if r.match, err = compileMatch(decl.Match); err != nil {
		return nil, err
	}
	for _, e := range c.Manifest.Empty {
		if e.Route != decl.Name {
			continue
		}
		body, err := regexp.Compile(e.Body)
		if err != nil {
			return nil, err
		}
		r.empty = append(r.empty, emptyAnswer{int(e.Status), body})
	}
	return r, nil
}

// HTTP checks a guest's request against the route and builds the request to send. The guest supplies parameters, the
// host the URL.
//
// Errors: denied for what the route does not allow; invalid_argument for what cannot be sent.
func (r *Route) HTTP(in *abi.HTTPRequest, body []byte) (*Call, error) {
	if err := r.matches(body); err != nil {
		return nil, err
	}
	target, err := r.url(in)
	if err != nil {
		return nil, err
	}
	header, err := r.header(in.Headers)
	if err != nil {
		return nil, err
	}
	if in.TimeoutMS < 0 {
		return nil, abi.NewError(abi.CodeInvalidArgument, "timeout_ms: want 0 or more")
	}
	request := &http.Request{Method: r.Method, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(body) > 0 {
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	c := &Call{Route: r, Body: body, http: request}
	c.send = c.sendHTTP
	c.timeout = time.Duration(min(in.TimeoutMS, int64(time.Hour/time.Millisecond))) * time.Millisecond
	return c, nil
}

// url fills in the route's path and adds the query. A parameter is always a single path segment, whatever characters it
// has.
func (r *Route) url(in *abi.HTTPRequest) (*url.URL, error) {
	var plain, escaped, query strings.Builder
	plain.WriteString(r.origin.base.Path)
	escaped.WriteString(r.origin.base.EscapedPath())
	used := 0
	for rest := r.Path; rest != ""; {
		literal, behind, more := strings.Cut(rest, "{")
		plain.WriteString(literal)
		escaped.WriteString(literal)
		if !more {
			break
		}
		name, behind, _ := strings.Cut(behind, "}")
		value, ok := in.Params[name]
		switch {
		case !ok:
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("params.%s: missing, route %s has the path %s", name, r.Name, r.Path))
		case value == "" || value == "." || value == "..":
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("params.%s: %q would change the path", name, value)).
				WithHint("map ids to the backend's alphabet before they become part of a path")
		}
		used++
		plain.WriteString(value)
		escaped.WriteString(url.PathEscape(value))
		rest = behind
	}
	if used != len(in.Params) {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("params: %d given, route %s takes %d", len(in.Params), r.Name, used))
	}
	for i, q := range in.Query {
		if err := r.maySetQuery(q.Key); err != nil {
			return nil, err
		}
		if i > 0 {
			query.WriteByte('&')
		}
		query.WriteString(url.QueryEscape(q.Key) + "=" + url.QueryEscape(q.Value))
	}
	return &url.URL{Scheme: r.origin.base.Scheme, Host: r.origin.base.Host, Path: plain.String(),
		RawPath: escaped.String(), RawQuery: query.String()}, nil
}

// header checks the guest's headers and inserts the secrets.
func (r *Route) header(in map[string]string) (http.Header, error) {
	header := http.Header{"User-Agent": {"memhost"}}
	for _, given := range abi.SortedKeys(in) {
		name, value := strings.ToLower(given), in[given]
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("headers.%q: not a header that can be sent", short(given)))
		}
		if err := r.maySetHeader(name, value); err != nil {
			return nil, err
		}
		value, err := r.origin.withSecrets(name, value)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, "idempotency-key") {
			header[name] = []string{value} // in this spelling net/http does not treat it as permission to resend a write
			continue
		}
		header.Set(name, value)
	}
	return header, nil
}

// maySetHeader decides whether a guest may set a header. It may set those that the route lists, those that the manifest
// declares for a secret of the origin, and those that the operator's block sets under headers, to that value.
func (r *Route) maySetHeader(name, value string) error {
	switch {
	case abi.HostHeader(name, len(r.origin.secrets) > 0):
		return abi.NewError(abi.CodeDenied, fmt.Sprintf("headers.%s: set by the host alone", name))
	case slices.Contains(r.secretHeaders, name):
		return nil
	case r.operatorHeaders[name] == value && value != "":
		return nil
	case r.Headers == nil && abi.SafeHeader(name):
		return nil
	case r.Headers == nil:
		return abi.NewError(abi.CodeDenied,
			fmt.Sprintf("headers.%s: route %s lists no headers, and this one is not in the fixed set", name,
				r.Name)).WithHint(
			"in the module's manifest, list headers and query of each route; the fixed set is " +
				strings.Join(abi.SafeHeaders(), ", "))
	case slices.ContainsFunc(r.Headers, func(listed string) bool { return strings.EqualFold(listed, name) }):
		return nil
	}
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("headers.%s: route %s does not list it", name, r.Name)).
		WithHint("a module may set the headers that its manifest lists for the route: " + orNone(r.Headers))
}

// methodKey is the query key with which several web frameworks let a request override its method.
const methodKey = "_method"

// maySetQuery decides whether a guest may set a query key: one that the route lists, or any except _method if it has no
// list.
func (r *Route) maySetQuery(key string) error {
	if slices.Contains(r.Query, key) || r.Query == nil && !strings.EqualFold(key, methodKey) {
		return nil
	}
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("query.%s: route %s does not list it", short(key), r.Name)).
		WithHint("a module may set the query keys that its manifest lists for the route: " + orNone(r.Query))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Bolt checks the parameters of a route's statement. timeout bounds the transaction if the context of Send has no
// deadline.
//
// Errors: invalid_argument, whose message starts with the path of the parameter.
func (r *Route) Bolt(in *abi.BoltRequest, timeout time.Duration) (*Call, error) {
	params, err := boltParams(in.Params)
	if err != nil {
		return nil, err
	}
	s := statement{text: r.Statement, params: params, reads: r.Class == abi.ClassRead, timeout: timeout, rows: r.rows,
		bytes: r.bodyBytes}
	c := &Call{Route: r, Body: in.Params, bolt: s}
	c.send = c.sendBolt
	return c, nil
}

// bodyMatch is a place in a JSON body and the value required there.
type bodyMatch struct {
	pointer string
	value   any
}

func compileMatch(match map[string]abi.Raw) ([]bodyMatch, error) {
	list := make([]bodyMatch, 0, len(match))
	for _, at := range abi.SortedKeys(match) {
		var value any
		if err := json.Unmarshal(match[at], &value); err != nil {
			return nil, fmt.Errorf("match %s: %w", at, err)
		}
		list = append(list, bodyMatch{at, value})
	}
	return list, nil
}

// matches checks the JSON body against the route's match. It rejects a body that different parsers could read
// differently.
func (r *Route) matches(body []byte) error {
	if len(r.match) == 0 {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return abi.NewError(abi.CodeDenied, fmt.Sprintf("body of route %s: ", r.Name)+fmt.Sprintf(format, args...))
	}
	value, err := read(body)
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

// emptyAnswer is an answer that means "nothing found", as declared in the manifest.
type emptyAnswer struct {
	status int
	body   *regexp.Regexp
}

func (r *Route) isEmpty(status int, body []byte) bool {
	return slices.ContainsFunc(r.empty, func(e emptyAnswer) bool { return e.status == status && e.body.Match(body) })
}

// read parses JSON that every parser reads the same way, and rejects any other. Numbers become float64.
func read(text []byte) (value any, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not UTF-8") // parsers differ in what they make of invalid bytes, even in keys
	}
	if err := wirejson.DecodeBytes(text).Limit(abi.MaxDepth).Validate(); err != nil {
		return nil, fmt.Errorf("is not JSON, or nests deeper than %d: %w", abi.MaxDepth, err)
	}
	if err := unambiguous.Check(text); err != nil {
		return nil, errors.New(abi.AsError(err).Message)
	}
	err = json.Unmarshal(text, &value)
	return value, err
}

// operatorHeaders reads the headers that a block sets under headers, by lower-case name: for example those that a
// reverse proxy requires.
func operatorHeaders(block any) map[string]string {
	headers := map[string]string{}
	found, _ := jsonpointer.Find(block, "/headers")
	object, _ := found.(map[string]any)
	for name, value := range object {
		if text, ok := value.(string); ok {
			headers[strings.ToLower(name)] = text
		}
	}
	return headers
}
