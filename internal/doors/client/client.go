// Package client speaks to a running slot over HTTP as if it were the slot itself: a Client is a host.Contract.
//
// Every error is an *abi.Error: the slot's own with all its fields, or one that explains why the slot could not be
// asked (unavailable with ReasonNoSlot, ReasonNotASlot or ReasonConnection; timeout with ReasonDeadline).
package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/noswitch"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Reasons of the errors that are the client's own.
const (
	// ReasonNoSlot: nothing accepts connections at the address. Nothing was sent.
	ReasonNoSlot = "no_slot"
	// ReasonNotASlot: something other than a slot answers there.
	ReasonNotASlot = "not_a_slot"
	// ReasonConnection: the connection broke during the call. The slot may have carried it out.
	ReasonConnection = "connection"
	// ReasonDeadline: the caller's context ended. The slot may have carried out the call.
	ReasonDeadline = "deadline"
)

const (
	dialTimeout = 10 * time.Second
	// defaultPort is that of server.listen.
	defaultPort = "7077"
	// maxAnswer bounds an answer, in bytes: four times what the host accepts from a plugin.
	maxAnswer = 64 << 20
)

// Client asks one slot. Make one with New. It is safe for concurrent use.
type Client struct {
	// Door is the kind of door that uses this client, wire.DoorHook or wire.DoorMCP; "" for none. Set it before the
	// first call.
	Door string

	base      string
	token     string
	http      *http.Client
	transport *http.Transport
	answered  atomic.Bool // something answered, so the scheme is right
}

// New makes a client of the slot at base: a URL (http or https, perhaps with a path behind a proxy), or HOST:PORT as in
// slot.json. token is the slot's bearer token, empty if it has none. Nothing is sent yet.
//
// Redirects are not followed and proxies of the environment are not used: the token is sent to base only.
//
// Errors: invalid_argument.
func New(base, token string) (*Client, error) {
	u, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"the slot's token has characters that an Authorization header cannot carry").WithHint(
			"look at MEMHOST_TOKEN for blanks and line ends")
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, DisableCompression: true}
	return &Client{base: strings.TrimSuffix(u.String(), "/"), token: token, transport: transport,
		http: &http.Client{Transport: noswitch.Transport{Base: transport}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}, nil
}

func parseBase(base string) (*url.URL, error) {
	refuse := func(why string) error {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("the address of the slot, %q, %s", redacted(base),
				why)).WithHint("want a URL as http://127.0.0.1:7077, or HOST:PORT")
	}
	text := base
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, refuse("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("is neither http nor https")
	case u.Hostname() == "":
		return nil, refuse("names no host")
	case u.User != nil:
		return nil, refuse("has credentials in it; the token is given apart")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, refuse("has a query or a fragment")
	}
	if u.Port() == "" && u.Scheme == "http" && !strings.Contains(base, "://") {
		u.Host = net.JoinHostPort(u.Hostname(), defaultPort) // HOST alone means the default port
	}
	// A slot that listens on every address can be reached on loopback.
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		loopback := "127.0.0.1"
		if ip.Is6() {
			loopback = "::1"
		}
		u.Host = strings.TrimSuffix(net.JoinHostPort(loopback, u.Port()), ":")
	}
	return u, nil
}

// redacted returns base in a form that an error may show.
func redacted(base string) string {
	if i := strings.LastIndex(base, "@"); i >= 0 {
		return "..." + base[i:]
	}
	return base
}

// Base returns the address in use.
func (c *Client) Base() string { return c.base }

// Close closes idle connections. Calls in progress continue.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Healthz asks whether a slot's process is up at the address. It needs no token.
//
// Errors: unavailable, with ReasonNotASlot if something else answers, for example another program that took the port of
// a killed slot.
func (c *Client) Healthz(ctx context.Context) (*wire.Liveness, error) {
	return c.alive(ctx, wire.PathLive)
}

// alive requests a path that needs no token.
func (c *Client) alive(ctx context.Context, path string) (*wire.Liveness, error) {
	live := new(wire.Liveness)
	if err := c.call(ctx, "", http.MethodGet, path, nil, live); err != nil {
		return nil, err
	}
	if live.Service != wire.Service {
		return nil, c.notASlot("", "calls itself "+fmt.Sprintf("%q", live.Service))
	}
	return live, nil
}

// Readyz returns nil when the slot serves. It needs no token.
func (c *Client) Readyz(ctx context.Context) error {
	_, err := c.alive(ctx, wire.PathReady)
	return err
}

// Swap exchanges the provider behind the slot. If it fails the old one keeps serving.
func (c *Client) Swap(ctx context.Context, request wire.SwapRequest) (*report.RunManifest, error) {
	return post[report.RunManifest](ctx, c, wire.OpSwap, wire.PathSwap, &request)
}
