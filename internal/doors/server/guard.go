package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// guard decides who may make requests, before a body is read.
//
// There are two dangers: a web page in the user's browser, which reaches loopback as the user does, and any caller once
// the slot listens off loopback. Web pages are kept out by the checks of Host (a page whose name was rebound to
// 127.0.0.1 still sends its own name), of Origin and Sec-Fetch-Site (which reveal a page of another origin), and by
// requiring application/json, which a form cannot send. Other callers are kept out by the token.
type guard struct {
	// digest is the token's hash, so that the comparison takes constant time for tokens of any length. Nil without a
	// token.
	digest *[sha256.Size]byte
	length int    // of the token, in bytes; 0 without one
	scoped []byte // the key of scoped tokens; nil without a token
	page   Page   // nil: none
	// public is the address of the slot behind a proxy; nil: none.
	public *url.URL
}

func newGuard(token string) (guard, error) {
	if token == "" {
		return guard{}, nil
	}
	if !isToken(token) {
		return guard{}, abi.NewError(abi.CodeInvalidArgument,
			"server: the token has characters that an Authorization header cannot carry").
			WithHint("use letters, digits and - . _ ~ + / =, for instance the output of: openssl rand -hex 32")
	}
	digest := sha256.Sum256([]byte(token))
	return guard{digest: &digest, length: len(token), scoped: scopedKey(token)}, nil
}

// isToken reports whether s is a b64token of RFC 6750.
func isToken(s string) bool {
	body := strings.TrimRight(s, "=")
	return body != "" && isOf(body, "-._~+/")
}

// isOf reports whether s is made of ASCII letters, digits and the signs.
func isOf(s, signs string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(signs, r):
		default:
			return false
		}
	}
	return true
}

// check returns why r is rejected, or nil, and the scoped token if r has one.
func (g guard) check(r *http.Request) (*ScopedToken, *abi.Error) {
	// With a token the slot may be behind a proxy with any name, and a rebound page does not know the token.
	if g.digest == nil {
		if e := checkHost(r); e != nil {
			return nil, e
		}
		if e := checkForwarded(r); e != nil {
			return nil, e
		}
	}
	if e := g.checkOrigin(r); e != nil {
		return nil, e
	}
	if r.URL.Path == wire.PathLive || r.URL.Path == wire.PathReady || g.isPage(r) || g.isFront(r) {
		return nil, nil
	}
	if g.page != nil && r.Header.Get(wire.HeaderOrigin) == host.OriginPage {
		if e := g.page.Hides(r.URL.Path); e != nil {
			return nil, e
		}
	}
	return g.checkToken(r)
}

// isPage reports whether r requests the page itself, which contains nothing of memory and gives out keys only for
// codes.
func (g guard) isPage(r *http.Request) bool {
	return g.page != nil && strings.HasPrefix(r.URL.Path, wire.PathPage)
}

// isFront reports whether r requests the bare address, which leads to the page.
func (g guard) isFront(r *http.Request) bool { return g.page != nil && r.URL.Path == "/" }

func checkHost(r *http.Request) *abi.Error {
	if isLoopback(hostOnly(r.Host)) {
		return nil
	}
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("the Host header names %q, which is not this machine",
		r.Host)).WithReason("host").
		WithHint("ask 127.0.0.1 or localhost; to serve other names, set MEMHOST_TOKEN, and behind a proxy server.public_url")
}

// forwardingHeaders are added by proxies, as is every header that starts with X-Forwarded-.
var forwardingHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Original-Host", "X-Cluster-Client-Ip",
	"True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Envoy-External-Address"}

// checkForwarded rejects a request from a proxy. A proxy on this machine connects from loopback and usually sends a
// loopback Host, so its callers could not be told from local programs otherwise. HTTP/1.0 counts as forwarded: nginx
// uses it if only proxy_pass is configured, and then adds no header.
func checkForwarded(r *http.Request) *abi.Error {
	sign := ""
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(forwardingHeaders, name) {
			sign = "has the header " + name
			break
		}
	}
	if sign == "" && r.ProtoMajor == 1 && r.ProtoMinor == 0 {
		sign = "is HTTP/1.0, as nginx sends by default"
	}
	if sign == "" {
		return nil
	}
	return abi.NewError(abi.CodeDenied, "the request "+sign+": it came through a proxy, and without a token the slot "+
		"serves only programs of this machine").WithReason("forwarded").
		WithHint("set MEMHOST_TOKEN for the slot, for instance to the output of: openssl rand -hex 32")
}

// foreignPageHint is for a developer whose own page is rejected.
const foreignPageHint = "a page's own server can ask the slot and pass the answer on: programs, which send no Origin " +
	"header, are served; in a browser, use the slot's own /docs; behind a proxy set server.public_url to the address that " +
	"the browser shows"

// checkOrigin rejects what a browser sends for a page of another origin. Programs send neither header.
func (g guard) checkOrigin(r *http.Request) *abi.Error {
	for _, origin := range r.Header.Values("Origin") {
		if !isOwnOrigin(origin, r) && !g.isPublic(origin) {
			return abi.NewError(abi.CodeDenied, fmt.Sprintf("a web page of %q asked, and this slot serves no web "+
				"pages but its own", origin)).WithReason("origin").WithHint(foreignPageHint)
		}
	}
	// Requests without Origin, for example for an image or a script, are recognised by this header. Following a link to
	// a page is harmless.
	site, isCall := r.Header.Get("Sec-Fetch-Site"), r.URL.Path != wire.PathDocs && r.URL.Path != wire.PathOpenAPI &&
		r.URL.Path != wire.PathPage
	if isCall && site != "" && site != "same-origin" && site != "none" {
		return abi.NewError(abi.CodeDenied, "a web page of another origin asked, and this slot serves no web pages "+
			"but its own").WithReason("origin").WithHint(foreignPageHint)
	}
	return nil
}

// isPublic reports whether origin is that of the public URL. Without a token no proxy is served.
func (g guard) isPublic(origin string) bool {
	return g.public != nil && g.digest != nil && strings.EqualFold(origin, g.public.Scheme+"://"+g.public.Host)
}

// parsePublic parses Options.PublicURL. Its path has no slash at the end.
func parsePublic(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "server.public_url: want https://HOST or https://HOST/PATH")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	defaultPort := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	u.Host = strings.TrimSuffix(u.Host, defaultPort) // browsers omit it
	return u, nil
}

// underPath removes the public URL's path from requests, for proxies that pass it on.
func (s *Server) underPath(next http.Handler) http.Handler {
	if s.guard.public == nil || s.guard.public.Path == "" {
		return next
	}
	prefix := s.guard.public.Path
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, prefix+"/"):
			stripped.ServeHTTP(w, r)
		case r.URL.Path == prefix:
			http.Redirect(w, r, prefix+"/", http.StatusPermanentRedirect)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOwnOrigin reports whether origin is the one that r was sent to, or loopback with the port at which r arrived.
func isOwnOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.User != nil {
		return false
	}
	defaultPort := "80"
	if u.Scheme == "https" {
		defaultPort = "443"
	}
	name, port := hostOnly(u.Host), portOf(u.Host, defaultPort)
	if strings.EqualFold(name, hostOnly(r.Host)) && port == portOf(r.Host, defaultPort) {
		return true
	}
	return isLoopback(name) && port == localPort(r)
}

func (g guard) checkToken(r *http.Request) (*ScopedToken, *abi.Error) {
	if g.digest == nil {
		return nil, nil
	}
	refuse := func(message string) (*ScopedToken, *abi.Error) {
		return nil, abi.NewError(abi.CodeUnauthenticated,
			message).WithReason("token").WithHint("send Authorization: Bearer with the token that the slot was " +
			"started with (MEMHOST_TOKEN)")
	}
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return refuse("this slot wants a bearer token")
	}
	token = strings.TrimSpace(token)
	given := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(given[:], g.digest[:]) == 1 {
		return nil, nil
	}
	if t := readScoped(g.scoped, token); t != nil {
		if e := t.live(time.Now()); e != nil {
			return nil, e
		}
		if r.Method != http.MethodPost || !slices.Contains(scopedPaths, r.URL.Path) {
			return nil, deniedScoped("this token records and retrieves only")
		}
		return t, nil
	}
	if g.page != nil {
		if known, refused := g.page.Admits(token, r.Method, r.URL.Path); known {
			return nil, refused
		}
	}
	return refuse("the bearer token is not the one of this slot")
}

// scopedPaths are the POST routes that a scoped token may call. Their handlers check the request against it.
var scopedPaths = []string{wire.PathEvents, wire.PathEventsBatch, wire.PathRetrieve}

// CheckListen reports, before anything is opened, whether New would accept address and token: a token is required off
// loopback, and must be valid in a header.
func CheckListen(listen, token string) error {
	if _, err := newGuard(token); err != nil {
		return err
	}
	loopback, err := isLoopbackListen(listen)
	if err != nil {
		return err
	}
	return needsToken(loopback, listen, len(token))
}

// minTokenBytes is the shortest token with which the slot listens off loopback.
const minTokenBytes = 16

// needsToken rejects an address off loopback without a token, or with a short one.
func needsToken(loopback bool, address string, length int) error {
	if loopback || length >= minTokenBytes {
		return nil
	}
	if length > 0 {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("listening on %s lets other machines in, and the token's length is %d, want at least %d "+
				"characters", address, length, minTokenBytes)).
			WithReason(ReasonTokenRequired).WithHint("make one: MEMHOST_TOKEN=$(openssl rand -hex 32); or listen on " +
			"127.0.0.1")
	}
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("listening on %s lets other machines in, which takes a "+
		"token", address)).
		WithReason(ReasonTokenRequired).WithHint("set MEMHOST_TOKEN, for instance to the output of: openssl rand " +
		"-hex 32; or listen on 127.0.0.1")
}

// isLoopbackListen reports whether the configured address is on loopback. An address without a host means every
// address.
func isLoopbackListen(listen string) (bool, error) {
	name, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, abi.WrapError(abi.CodeInvalidArgument,
			fmt.Sprintf("server: cannot listen on %q: %s", listen, err),
			err).WithHint("want HOST:PORT, as 127.0.0.1:7077")
	}
	return isLoopback(name), nil
}

// isLoopbackAddr reports whether only this machine can reach a.
func isLoopbackAddr(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}

// isLoopback reports whether a name or address, without port, is this machine. It makes no lookup, because others
// control the answer.
func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// hostOnly is a Host header without port and brackets.
func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func portOf(host, fallback string) string {
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		return port
	}
	return fallback
}

// localPort returns the port at which r arrived, "" if unknown.
func localPort(r *http.Request) string {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	return portOf(a.String(), "")
}
