package egress

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func testOrigin(t testing.TB, raw string) *origin {
	t.Helper()
	o, err := openOrigin(abi.OriginDecl{Name: "api", From: "/url", Protocol: "http"}, map[string]any{"url": raw},
		time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { o.close(context.Background()) })
	return o
}

func TestOriginIsSchemeHostPortAndPathAndNothingElse(t *testing.T) {
	wrong := map[string]string{
		"ftp://h/":               "one of http, https",
		"http:///x":              "names no host",
		"http://user:pw@host/":   "holds credentials",
		"http://host/?q=1":       "has a query or a fragment",
		"http://host/#x":         "has a query or a fragment",
		"127.0.0.1:8000":         "no URL",
		"http://host:port:90000": "no URL",
	}
	for raw, want := range wrong {
		_, err := openOrigin(abi.OriginDecl{From: "/url", Protocol: "http"}, map[string]any{"url": raw}, time.Now)
		if assert.Error(t, err, raw) {
			assert.Contains(t, err.Error(), want, raw)
			assert.True(t, strings.HasPrefix(abi.AsError(err).Message, "url: "), "names the key: %v", err)
		}
	}
	o := testOrigin(t, "https://host:8443/base/")
	assert.Equal(t, "https://host:8443/base", o.base.String())
	absent, err := openOrigin(abi.OriginDecl{From: "/url", Protocol: "http"}, map[string]any{}, time.Now)
	require.NoError(t, err)
	assert.Nil(t, absent, "an origin that the block does not name cannot be reached")
}

func TestAddressOfADatabase(t *testing.T) {
	for raw, want := range map[string]string{
		"http://h:7687":           "one of bolt, bolt+s, bolt+ssc, neo4j, neo4j+s, neo4j+ssc",
		"bolt+unix:///tmp/socket": "one of bolt",
		"bolt://":                 "names no host",
		"bolt://neo4j:pw@h":       "holds credentials",
		"neo4j://h?policy=x":      "has a query",
		"bolt://h/memories":       "has a path",
	} {
		_, err := openOrigin(abi.OriginDecl{From: "/bolt/url", Protocol: "bolt"},
			map[string]any{"bolt": map[string]any{"url": raw}}, time.Now)
		e := requireCode(t, err, abi.CodeInvalidArgument, want, "such as bolt://")
		assert.True(t, strings.HasPrefix(e.Message, "bolt.url: "), e.Message)
	}
	_, err := openOrigin(abi.OriginDecl{From: "/db", Protocol: "bolt", DatabaseFrom: "/name"},
		map[string]any{"db": "bolt://h", "name": 7}, time.Now)
	requireCode(t, err, abi.CodeInvalidArgument, "name: want a string")
}
