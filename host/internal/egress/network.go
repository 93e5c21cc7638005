// Package egress is the network policy in one place: what a guest may reach, with which requests. It also keeps the
// operator's secrets from guests.
//
//   - [Open] reads origins, routes and secrets from the manifest and the operator's block.
//   - [Network.Route] finds a route; the caller decides whether its class may be used now.
//   - [Route.HTTP] and [Route.Bolt] check a request completely, before anything leaves the machine.
//   - [Call.Send] sends it. Every address is checked when it is dialled; redirects are returned, never followed.
//   - [Call.HTTPAnswer] and [Call.BoltAnswer] turn the result into what the guest gets, without secrets.
//
// The package knows nothing about operations, read-only mode, ledger and tape: the caller deals with these between
// Route and Send.
package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
)

// Network is what one provider may reach. It is safe for concurrent use.
type Network struct {
	provider string
	origins  map[string]*origin
	routes   map[string]*Route
	key      string
	secrets  []string
	redactor Redactor
	headers  map[string]string // set by the block under headers, by lower-case name
}

// Config configures a Network.
type Config struct {
	// Provider is the provider's name, for messages.
	Provider string
	Manifest *abi.ModuleManifest
	// Block is the provider's effective configuration: a JSON object.
	Block abi.Raw
	// Secrets are the operator's secrets, by name. Block refers to them as {"secret": NAME}.
	Secrets map[string]Secret
	// BodyBytes bounds the body of one HTTP answer, and the rows of one Bolt answer as JSON, in bytes. Rows bounds the
	// rows of one Bolt answer.
	BodyBytes, Rows int64
	// Now is the clock.
	Now func() time.Time
}

// Open resolves the manifest's origins, secrets and routes. It connects to nothing.
//
// Errors: invalid_argument, whose message starts with the path of the key in the block.
func Open(c Config) (*Network, error) {
	var block any
	if err := json.Unmarshal(c.Block, &block); err != nil {
		return nil, err
	}
	n := &Network{provider: c.Provider, origins: map[string]*origin{}, routes: map[string]*Route{},
		headers: operatorHeaders(block)}
	for _, decl := range c.Manifest.Origins {
		o, err := openOrigin(decl, block, c.Now)
		if err != nil {
			return nil, err
		}
		if o != nil {
			n.origins[decl.Name] = o
		}
	}
	n.key = keyOf(c.Manifest.Origins, n.origins)
	var err error
	if n.secrets, n.redactor, err = openSecrets(c, block, n.origins); err != nil {
		return nil, err
	}
	for _, decl := range c.Manifest.Routes {
		r, err := newRoute(decl, c, n)
		if err != nil {
			return nil, err
		}
		n.routes[decl.Name] = r
	}
	return n, nil
}

// Key identifies the backend by the URLs of its origins: "api=http://127.0.0.1:8000". It is part of the key of every
// scope. A database is included only if it is the whole backend. Next to a server it is a second way to the same
// memory, and adding it must not change the scopes.
func (n *Network) Key() string { return n.key }

// Secrets lists the manifest's names of the secrets that are set.
func (n *Network) Secrets() []string { return n.secrets }

// Redactor returns the Redactor of this network's secrets.
func (n *Network) Redactor() Redactor { return n.redactor }

// SideEffects is what a read by this route changes in the backend, according to the manifest; empty if nothing.
func (n *Network) SideEffects(route string) string {
	if r := n.routes[route]; r != nil {
		return r.SideEffects
	}
	return ""
}

// Route finds a route of a protocol, abi.ProtocolHTTP or abi.ProtocolBolt.
//
// Errors: denied if there is no route with that name and protocol, or its origin is not configured.
func (n *Network) Route(name, protocol string) (*Route, error) {
	r, ok := n.routes[name]
	if !ok {
		e := abi.NewError(abi.CodeDenied, fmt.Sprintf("route %q is not in the manifest of %s", short(name), n.provider))
		if near := abi.Nearest(name, abi.SortedKeys(n.routes)); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, e
	}
	if of := ProtocolOf(&r.RouteDecl); of != protocol {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("route %s is of protocol %s, not %s", name, of, protocol))
	}
	if r.origin == nil {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("route %s: its origin %s is not configured", name,
			r.Origin))
	}
	return r, nil
}

// Close closes every connection. No call may be running.
func (n *Network) Close(ctx context.Context) {
	for _, o := range n.origins {
		o.close(ctx)
	}
}

// Call is one native call that the route table allows. Only one goroutine may use it, but another one may call Send:
// not at all, once, or repeatedly.
type Call struct {
	Route *Route
	// Body is the body of an HTTP request, or the parameters of a Bolt statement as JSON. It must not be changed.
	Body []byte
	// Traceparent is sent as the header of that name with an HTTP request; "" sends none.
	Traceparent string

	http    *http.Request
	timeout time.Duration // of one HTTP exchange; 0: only the context limits it
	bolt    statement
	send    func(context.Context) (Answer, error)
	sent    atomic.Int64 // how often a request was written to a connection
}

// URL is the URL of an HTTP request; empty for Bolt.
func (c *Call) URL() string {
	if c.http == nil {
		return ""
	}
	return c.http.URL.String()
}

// Send makes the call and returns the raw answer, which may contain secrets. Each Send makes the call again.
//
// Errors: those of the network; a *Failure is a failure that a Bolt server returned.
func (c *Call) Send(ctx context.Context) (Answer, error) { return c.send(ctx) }

// Retries is how often the call was sent after the first time: by net/http, for a read whose connection broke, and by
// every further Send.
func (c *Call) Retries() int64 { return max(0, c.sent.Load()-1) }

// Answer is a backend's answer.
type Answer struct {
	// Status and Header are set for HTTP; a Bolt answer has 0 and nil.
	Status int
	Header http.Header
	// Body is the body of an HTTP answer, or the rows of a Bolt answer, each a JSON array followed by a newline.
	Body []byte
	// Bolt is the head of a Bolt answer, or nil if an interceptor left it out.
	Bolt *abi.BoltResult
}

// Effect is what is known about the effect of a call on the backend.
type Effect int

const (
	// EffectNone means that the call was not sent, or the backend rejected it as a whole.
	EffectNone Effect = iota
	// EffectUnknown means that there was no answer, or an inconclusive one.
	EffectUnknown
	// EffectDone means that the backend accepted the call.
	EffectDone
)

// EffectOfStatus judges an HTTP status. A rejected request (4xx) stores nothing; after a timeout (408), a server error
// (5xx) or no answer (0) the effect is unknown.
func EffectOfStatus(status int) Effect {
	switch {
	case status >= 200 && status < 300:
		return EffectDone
	case status == http.StatusRequestTimeout || status == 0 || status >= 500:
		return EffectUnknown
	}
	return EffectNone
}

// Outcome judges a call by the result of Send. status is the status for the trace: the backend's own for HTTP; 200,
// 400, 500 or 503 for Bolt; 0 if there was no answer.
func (c *Call) Outcome(answer Answer, err error) (status int64, effect Effect) {
	if ProtocolOf(&c.Route.RouteDecl) == abi.ProtocolBolt {
		return boltStatus(err), boltEffect(c.Route.Statement, err)
	}
	if err != nil && neverLeft(err) {
		return 0, EffectNone
	}
	return int64(answer.Status), EffectOfStatus(answer.Status)
}

// timedOut reports whether a call failed because the deadline of ctx has passed.
func timedOut(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// short shortens a guest's text for a message.
func short(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
