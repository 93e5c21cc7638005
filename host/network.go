package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/jsonpointer"
	"github.com/memhost/memhost/internal/schema"
)

// origin is a place on the network that the operator's block names: the only kind of place that a guest can reach.
type origin struct {
	name string
	// base is scheme, host, port and path prefix; nothing else of a URL.
	base *url.URL
	// transport is of an http origin, database of a bolt origin.
	transport *http.Transport
	database  *database
	// secrets are what the host may put into headers of requests to this origin: by lower-case header name, then by secret name.
	secrets map[string]map[string]string
}

// route is a native call of the manifest, ready for use.
type route struct {
	decl   abi.RouteDecl
	origin *origin
	match  []bodyMatch
	empty  []emptyAnswer
}

// openNetwork reads origins, routes and secrets out of the block. It returns the names of the secrets that are set.
func (p *Provider) openNetwork() (secrets []string, err error) {
	var block any
	if err := json.Unmarshal(p.block, &block); err != nil {
		return nil, err
	}
	p.origins, p.routes = map[string]*origin{}, map[string]*route{}
	for _, decl := range p.module.Manifest.Origins {
		o, err := openOrigin(decl, block, p.host.now)
		if err != nil {
			return nil, err
		}
		if o != nil {
			p.origins[decl.Name] = o
		}
	}
	p.originKey = p.keyOfOrigins()
	if secrets, err = p.openSecrets(block); err != nil {
		return nil, err
	}
	for _, decl := range p.module.Manifest.Routes {
		r := &route{decl: decl, origin: p.origins[decl.Origin]}
		if r.match, err = compileMatch(decl.Match); err != nil {
			return nil, err
		}
		for _, e := range p.module.Manifest.Empty {
			if e.Route == decl.Name {
				empty, err := compileEmpty(e)
				if err != nil {
					return nil, err
				}
				r.empty = append(r.empty, empty)
			}
		}
		p.routes[decl.Name] = r
	}
	return secrets, nil
}

// keyOfOrigins names the backend. A database is a part of it only where it is the whole backend: beside a server it is a second door to the same
// memory, and opening it must not make the scopes new.
func (p *Provider) keyOfOrigins() string {
	var servers, databases []string
	for _, decl := range p.module.Manifest.Origins {
		o := p.origins[decl.Name]
		switch {
		case o == nil:
		case o.database == nil:
			servers = append(servers, decl.Name+"="+o.base.String())
		default:
			databases = append(databases, decl.Name+"="+o.base.String()+"/"+o.database.name)
		}
	}
	if len(servers) == 0 {
		servers = databases
	}
	return strings.Join(servers, " ")
}

// inBlockAt is a pointer into a block, as messages write it.
func inBlockAt(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// openOrigin resolves an origin's URL; nil when the block does not name it.
func openOrigin(decl abi.OriginDecl, block any, now func() time.Time) (*origin, error) {
	value, ok := jsonpointer.Find(block, decl.From)
	if !ok || value == nil {
		return nil, nil
	}
	schemes, example := []string{"http", "https"}, "http://127.0.0.1:8000"
	if decl.Protocol == abi.ProtocolBolt {
		schemes, example = boltSchemes, "bolt://127.0.0.1:7687"
	}
	wrong := func(what string) error {
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: %s", inBlockAt(decl.From), what)).WithHint("write a URL such as " + example)
	}
	text, ok := value.(string)
	if !ok {
		return nil, wrong("want a URL as a string")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, wrong("is no URL")
	case !slices.Contains(schemes, u.Scheme):
		return nil, wrong(fmt.Sprintf("scheme %q is none of %s", u.Scheme, strings.Join(schemes, ", ")))
	case u.Hostname() == "":
		return nil, wrong("names no host")
	case u.User != nil:
		return nil, wrong("holds credentials; they belong under secrets")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, wrong("has a query or a fragment; only scheme, host, port and path count")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	o := &origin{name: decl.Name, base: u, secrets: map[string]map[string]string{}}
	if decl.Protocol == abi.ProtocolHTTP {
		o.transport = newTransport()
		return o, nil
	}
	if u.Path != "" {
		return nil, wrong("has a path; the database's name has a key of its own")
	}
	name, err := optionalText(block, decl.DatabaseFrom)
	if err != nil {
		return nil, err
	}
	o.database = newDatabase(u, name, now)
	return o, nil
}

// optionalText reads the string that a pointer leads to; empty where there is no pointer, or nothing at its end.
func optionalText(block any, from string) (string, error) {
	if from == "" {
		return "", nil
	}
	value, ok := jsonpointer.Find(block, from)
	if !ok || value == nil {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", abi.NewError(abi.CodeInvalidArgument, inBlockAt(from)+": want a string")
	}
	return text, nil
}

// close gives up the connections.
func (o *origin) close(ctx context.Context) {
	if o.database != nil {
		o.database.close(ctx)
		return
	}
	o.transport.CloseIdleConnections()
}

// openSecrets reads the values of the secrets that the block refers to and binds each to its origin and headers.
func (p *Provider) openSecrets(block any) ([]string, error) {
	set := []string{}
	var values []string
	for _, decl := range p.module.Manifest.Secrets {
		path := inBlockAt(decl.From)
		wrong := func(format string, args ...any) error {
			return abi.NewError(abi.CodeInvalidArgument, path+": "+fmt.Sprintf(format, args...))
		}
		value, ok := jsonpointer.Find(block, decl.From)
		if !ok || value == nil {
			continue
		}
		name, ok := schema.SecretRef(value)
		if !ok {
			return nil, wrong("want {secret: NAME}, a secret's value has no place in a config block")
		}
		secret, ok := p.config.Secrets[name]
		if !ok {
			known := names(p.config.Secrets)
			slices.Sort(known)
			e := abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: there is no secret %q under secrets", path, name))
			if near := abi.Nearest(name, known); near != "" {
				e.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return nil, e
		}
		o := p.origins[decl.Origin]
		if o == nil {
			return nil, wrong("its origin %s is not configured", decl.Origin)
		}
		if !sameOrigin(secret.Origin, o.base) {
			return nil, wrong("secret %s is bound to %s, not to %s", name, secret.Origin, o.base)
		}
		text, err := secret.Value()
		if err != nil {
			return nil, wrong("secret %s: %s", name, strings.TrimPrefix(abi.AsError(err).Message, "secret "+name+": ")) // which most say themselves
		}
		if len(text) < 4 {
			return nil, wrong("secret %s has %d bytes; one that short cannot be kept out of logs", name, len(text))
		}
		values = append(values, text)
		if o.database != nil {
			user, err := optionalText(block, decl.UserFrom)
			if err != nil {
				return nil, err
			}
			o.database.logOnAs(user, text)
		}
		for _, header := range decl.Headers {
			header = strings.ToLower(header)
			if o.secrets[header] == nil {
				o.secrets[header] = map[string]string{}
			}
			o.secrets[header][decl.Name] = text
		}
		set = append(set, decl.Name)
	}
	p.redactor = newRedactor(values)
	return set, nil
}

// sameOrigin compares scheme, host and port.
func sameOrigin(bound string, u *url.URL) bool {
	b, err := url.Parse(bound)
	return err == nil && strings.EqualFold(b.Scheme, u.Scheme) && strings.EqualFold(b.Hostname(), u.Hostname()) && port(b) == port(u)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "https":
		return "443"
	case slices.Contains(boltSchemes, scheme):
		return "7687"
	}
	return "80"
}

// newTransport makes a client side that follows nothing, uses no ambient proxy, adds no header of its own and looks at each address when it dials.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, ControlContext: refuseAddress}
	return &http.Transport{DialContext: dialer.DialContext, Proxy: nil, DisableCompression: true, MaxIdleConns: 64, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}
}

// metadata lists the addresses of cloud metadata services outside the link-local ranges.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}

// errAddress is the refusal of an address that no plugin may reach, whatever name led there.
var errAddress = errors.New("the address is link-local, a metadata service, multicast or unspecified, which are always refused")

// refuseAddress checks what a name resolved to at the moment of dialling, so that a name cannot change its meaning after a check.
func refuseAddress(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(metadata, ip) {
		return fmt.Errorf("%s: %w", address, errAddress)
	}
	return nil
}

// emptyAnswer is an answer that the manifest declares to mean "nothing there".
type emptyAnswer struct {
	status int
	body   *regexp.Regexp
}

func compileEmpty(decl abi.EmptyDecl) (emptyAnswer, error) {
	body, err := regexp.Compile(decl.Body)
	return emptyAnswer{int(decl.Status), body}, err
}

func (r *route) isEmpty(status int, body []byte) bool {
	return slices.ContainsFunc(r.empty, func(e emptyAnswer) bool { return e.status == status && e.body.Match(body) })
}

// bodyMatch is a place in a JSON body with the value that it must have.
type bodyMatch struct {
	pointer string
	value   any
}

func compileMatch(match map[string]abi.Raw) ([]bodyMatch, error) {
	list := make([]bodyMatch, 0, len(match))
	for at, raw := range match {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("match %s: %w", at, err)
		}
		list = append(list, bodyMatch{at, value})
	}
	slices.SortFunc(list, func(a, b bodyMatch) int { return strings.Compare(a.pointer, b.pointer) })
	return list, nil
}
