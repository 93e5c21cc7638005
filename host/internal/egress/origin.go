package egress

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// origin is a network address from the operator's block. Guests can reach no other addresses.
type origin struct {
	// base has only scheme, host, port and path prefix.
	base *url.URL
	// transport is set for an http origin, database for a bolt origin.
	transport *http.Transport
	database  *database
	// secrets are what the host may put into headers of requests to this origin: by lower-case header name, then by the
	// manifest's name of the secret.
	secrets map[string]map[string]string
	// missing are the names of secrets that are declared and have no value, by lower-case header name.
	missing map[string][]string
}

// address is scheme, host and port, for messages.
func (o *origin) address() string { return o.base.Scheme + "://" + o.base.Host }

// close closes the connections.
func (o *origin) close(ctx context.Context) {
	if o.database != nil {
		o.database.close(ctx)
		return
	}
	o.transport.CloseIdleConnections()
}

// keyOf is Network.Key.
func keyOf(decls []abi.OriginDecl, origins map[string]*origin) string {
	var servers, databases []string
	for _, decl := range decls {
		o := origins[decl.Name]
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

// inBlockAt formats a JSON Pointer into a block for messages: /llm/url becomes llm.url.
func inBlockAt(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// openOrigin resolves an origin's URL; nil if the block does not name it.
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
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: %s", inBlockAt(decl.From), what)).
			WithHint("write a URL such as " + example)
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
		return nil, wrong(fmt.Sprintf("scheme %q is not one of %s", u.Scheme, strings.Join(schemes, ", ")))
	case u.Hostname() == "":
		return nil, wrong("names no host")
	case u.User != nil:
		return nil, wrong("holds credentials; they belong under secrets")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, wrong("has a query or a fragment; only scheme, host, port and path count")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	o := &origin{base: u, secrets: map[string]map[string]string{}, missing: map[string][]string{}}
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
	o.database = newDatabase(o.address(), name, now)
	return o, nil
}

// optionalText reads the string at a JSON Pointer; empty without a pointer, or if there is nothing at it.
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

// sameOrigin compares scheme, host and port.
func sameOrigin(bound string, u *url.URL) bool {
	b, err := url.Parse(bound)
	return err == nil && strings.EqualFold(b.Scheme, u.Scheme) && strings.EqualFold(b.Hostname(), u.Hostname()) &&
		port(b) == port(u)
}

// port returns a URL's port, or the default port of its scheme.
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
