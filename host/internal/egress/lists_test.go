package egress

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// network opens a manifest with the routes old (without lists), listed, and closed (with empty lists).
func network(t *testing.T, block string) *Network {
	t.Helper()
	secret := Secret{Value: func() (string, error) { return "sk-12345678", nil }, Origin: "http://127.0.0.1:9"}
	n, err := Open(Config{Provider: "probe", Block: abi.Raw(block), Secrets: map[string]Secret{"K": secret},
		Now: time.Now,
		Manifest: &abi.ModuleManifest{
			Origins: []abi.OriginDecl{{Name: "api", From: "/url", Protocol: abi.ProtocolHTTP}},
			Secrets: []abi.SecretDecl{{Name: "api_key", From: "/api_key", Headers: []string{"X-Api-Key"},
				Origin: "api"}},
			Routes: []abi.RouteDecl{
				{Name: "old", Origin: "api", Method: "GET", Path: "/", Class: abi.ClassRead},
				{Name: "listed", Origin: "api", Method: "GET", Path: "/", Class: abi.ClassRead,
					Headers: []string{"Content-Type", "x-mine"}, Query: []string{"limit"}},
				{Name: "closed", Origin: "api", Method: "GET", Path: "/", Class: abi.ClassRead, Headers: []string{},
					Query: []string{}},
			}}})
	require.NoError(t, err)
	return n
}

const plainBlock = `{"url":"http://127.0.0.1:9"}`

func setHeader(t *testing.T, n *Network, route, name, value string) (*Call, error) {
	t.Helper()
	r, err := n.Route(route, abi.ProtocolHTTP)
	require.NoError(t, err)
	return r.HTTP(&abi.HTTPRequest{Headers: map[string]string{name: value}}, nil)
}

// Guests may never set headers that override the route's method or URL, or that request a part of an answer, even if a
// list allows them.
func TestHeadersThatWouldReplaceTheRouteAreRefused(t *testing.T) {
	n := network(t, `{"url":"http://127.0.0.1:9","headers":{"X-HTTP-Method-Override":"DELETE"}}`)
	for _, name := range []string{"X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X-Original-URL",
		"X-Rewrite-URL",
		"X_HTTP_Method_Override", "x-original_url", "X-Forwarded-Prefix", "X-Forwarded-Host", "X-Original-Method",
		"Transfer_Encoding",
		"Content_Length", "Range", "Host"} {
		for _, route := range []string{"old", "listed"} {
			_, err := setHeader(t, n, route, name, "DELETE")
			requireCode(t, err, abi.CodeDenied, strings.ToLower(name)+": set by the host alone")
		}
	}
}

func TestHeadersThatAGuestMaySet(t *testing.T) {
	block := `{"url":"http://127.0.0.1:9","headers":{"X-Team":"blue","x-count":7}}`
	for _, c := range []struct{ route, name, value, refused string }{
		{"old", "Content-Type", "application/json", ""},
		{"old", "mcp-session-id", "1", ""},
		{"old", "x-api-key", "none", ""},
		{"old", "x-mine", "1", "route old lists no headers, and this one is not in the fixed set"},
		{"old", "authorization", "Bearer none", "not in the fixed set"},
		{"listed", "CONTENT-TYPE", "application/json", ""},
		{"listed", "X-Mine", "1", ""},
		{"listed", "X-Api-Key", "none", ""},
		{"listed", "accept", "*/*", "route listed does not list it"},
		{"closed", "accept", "*/*", "lists for the route: none"},
		{"closed", "x-api-key", "none", ""},
		{"closed", "x-team", "blue", ""},
		{"closed", "x-team", "red", "does not list it"},
		{"closed", "x-count", "7", "does not list it"},
	} {
		call, err := setHeader(t, network(t, block), c.route, c.name, c.value)
		if c.refused != "" {
			requireCode(t, err, abi.CodeDenied, c.refused)
			continue
		}
		require.NoError(t, err, "%v", c)
		assert.Equal(t, c.value, call.http.Header.Get(c.name))
	}
}

// A compressed or partial answer could hide a secret that the backend echoes.
func TestEncodingIsTheHostsWhereTheOriginHoldsASecret(t *testing.T) {
	_, err := setHeader(t, network(t, plainBlock), "old", "Accept-Encoding", "gzip")
	require.NoError(t, err)
	n := network(t, `{"url":"http://127.0.0.1:9","api_key":{"secret":"K"}}`)
	for _, name := range []string{"Accept-Encoding", "range"} {
		_, err = setHeader(t, n, "old", name, "gzip")
		requireCode(t, err, abi.CodeDenied, "set by the host alone")
	}
}

func TestQueryKeysThatAGuestMaySet(t *testing.T) {
	n := network(t, plainBlock)
	for _, c := range []struct{ route, key, refused string }{
		{"old", "anything", ""},
		{"old", "_method", "query._method: route old does not list it"},
		{"old", "_METHOD", "does not list it"},
		{"listed", "limit", ""},
		{"listed", "Limit", "lists for the route: limit"},
		{"closed", "limit", "lists for the route: none"},
	} {
		r, err := n.Route(c.route, abi.ProtocolHTTP)
		require.NoError(t, err)
		_, err = r.HTTP(&abi.HTTPRequest{Query: []abi.QueryParam{{Key: c.key, Value: "x"}}}, nil)
		if c.refused == "" {
			require.NoError(t, err)
			continue
		}
		requireCode(t, err, abi.CodeDenied, c.refused)
	}
}
