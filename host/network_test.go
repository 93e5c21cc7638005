package host

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/jsonpointer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func testOrigin(t testing.TB, raw string) *origin {
	t.Helper()
	o, err := openOrigin(abi.OriginDecl{Name: "api", From: "/url", Protocol: "http"}, map[string]any{"url": raw}, time.Now)
	require.NoError(t, err)
	return o
}

func TestOriginIsSchemeHostPortAndPathAndNothingElse(t *testing.T) {
	wrong := map[string]string{
		"ftp://h/":               "none of http, https",
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

func TestParameterIsOnePathSegmentWhateverIsInIt(t *testing.T) {
	r := &route{decl: abi.RouteDecl{Name: "item", Path: "/v1/items/{id}/notes"}, origin: testOrigin(t, "http://h:1/p")}
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./%\\?#;:@&=+ ]{1,6}`), rapid.StringMatching(`(\.\./)+x`)).Draw(rt, "id")
		u, err := r.url(&abi.HTTPRequest{Params: abi.Members[string]{{Name: "id", Value: id}}})
		if id == "" || id == "." || id == ".." {
			require.Error(rt, err)
			return
		}
		require.NoError(rt, err)
		segments := strings.Split(u.EscapedPath(), "/")
		require.Len(rt, segments, 6, "%s", u)
		back, err := url.PathUnescape(segments[4])
		require.NoError(rt, err)
		require.Equal(rt, id, back)
		require.Equal(rt, "/p/v1/items", strings.Join(segments[:4], "/"))
		require.Empty(rt, u.RawQuery+u.Fragment)
		require.Equal(rt, "h:1", u.Host)
	})
}

func TestQueryCannotBreakOut(t *testing.T) {
	r := &route{decl: abi.RouteDecl{Path: "/s"}, origin: testOrigin(t, "http://h")}
	u, err := r.url(&abi.HTTPRequest{Query: []abi.QueryParam{{Key: "q", Value: "a&b=c#d"}, {Key: "q", Value: "ü"}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a&b=c#d", "ü"}, u.Query()["q"])
}

func TestParametersMustBeThoseOfTheRoute(t *testing.T) {
	r := &route{decl: abi.RouteDecl{Name: "item", Path: "/items/{id}"}, origin: testOrigin(t, "http://h")}
	_, err := r.url(&abi.HTTPRequest{})
	assert.ErrorContains(t, err, "params.id: missing")
	_, err = r.url(&abi.HTTPRequest{Params: abi.Members[string]{{Name: "id", Value: "1"}, {Name: "other", Value: "2"}}})
	assert.ErrorContains(t, err, "2 given, route item takes 1")
}

func TestAddressesThatAreAlwaysRefused(t *testing.T) {
	for address, refused := range map[string]bool{
		"169.254.169.254:80": true, "[fe80::1%eth0]:80": true, "[::ffff:169.254.169.254]:80": true, "[fd00:ec2::254]:80": true,
		"0.0.0.0:80": true, "[::]:80": true, "224.0.0.1:80": true, "100.100.100.200:80": true,
		"127.0.0.1:80": false, "10.1.2.3:80": false, "[::1]:80": false, "93.184.216.34:443": false,
	} {
		_, err := netip.ParseAddrPort(address)
		require.NoError(t, err, address)
		err = refuseAddress(context.Background(), "tcp", address, nil)
		assert.Equal(t, refused, err != nil, "%s: %v", address, err)
	}
}

func TestRedirectIsReturnedNotFollowed(t *testing.T) {
	followed := false
	mux := http.NewServeMux()
	mux.HandleFunc("/from", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/to", http.StatusFound) })
	mux.HandleFunc("/to", func(http.ResponseWriter, *http.Request) { followed = true })
	server := httptest.NewServer(mux)
	defer server.Close()
	r := &route{decl: abi.RouteDecl{Method: http.MethodGet, Path: "/from"}, origin: testOrigin(t, server.URL)}
	request, err := r.request(&abi.HTTPRequest{}, nil)
	require.NoError(t, err)
	answer, err := r.origin.exchange(request, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, http.StatusFound, answer.Status)
	assert.Equal(t, "/to", answer.Header.Get("Location"))
	assert.False(t, followed)
}

func TestSecretGoesOnlyIntoItsHeader(t *testing.T) {
	o := testOrigin(t, "http://h")
	o.secrets["x-api-key"] = map[string]string{"api_key": "s3cr3t-value"}
	r := &route{decl: abi.RouteDecl{Method: http.MethodPost, Path: "/x/{id}"}, origin: o}
	placeholder := "{{secret:api_key}}"
	request, err := r.request(&abi.HTTPRequest{Params: abi.Members[string]{{Name: "id", Value: placeholder}},
		Query:   []abi.QueryParam{{Key: "q", Value: placeholder}},
		Headers: abi.Members[string]{{Name: "X-Api-Key", Value: "Key " + placeholder}, {Name: "X-Other", Value: placeholder}}}, []byte(placeholder))
	require.NoError(t, err)
	assert.Equal(t, "Key s3cr3t-value", request.Header.Get("X-Api-Key"))
	assert.Equal(t, placeholder, request.Header.Get("X-Other"), "elsewhere it stays text")
	assert.NotContains(t, request.URL.String(), "s3cr3t")
}

func TestHeadersThatAreTheHostsAlone(t *testing.T) {
	r := &route{decl: abi.RouteDecl{Method: http.MethodGet, Path: "/"}, origin: testOrigin(t, "http://h")}
	for _, name := range []string{"Host", "Content-Length", "transfer-encoding", "Connection", "Proxy-Authorization", "Upgrade"} {
		_, err := r.request(&abi.HTTPRequest{Headers: abi.Members[string]{{Name: name, Value: "x"}}}, nil)
		assert.Equal(t, abi.CodeDenied, abi.CodeOf(err), name)
	}
	_, err := r.request(&abi.HTTPRequest{Headers: abi.Members[string]{{Name: "X-A", Value: "a\r\nX-B: b"}}}, nil)
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}

func TestRouteMatchReadsTheBodyAsEveryReaderWould(t *testing.T) {
	match, err := compileMatch(map[string]abi.Raw{"/method": abi.Raw(`"tools/call"`), "/params/name": abi.Raw(`"search"`)})
	require.NoError(t, err)
	r := &route{decl: abi.RouteDecl{Name: "mcp_search"}, match: match}
	for body, allowed := range map[string]bool{
		`{"method":"tools/call","params":{"name":"search"}}`:                           true,
		`{"params":{"name":"search","x":[1,{"a":null}]},"method":"tools/call","id":1}`: true,
		`{"method":"tools/call","params":{"name":"add"}}`:                              false,
		`{"method":"tools/call"}`:                                                      false,
		`{"method":"tools/call","params":{"name":"search","name":"add"}}`:              false,
		`{"method":"tools/call","params":{"name":"search","Name":"add"}}`:              false,
		`{"method":"tools/call","params":{"name":"search"}}{"method":"x"}`:             false,
		`{"method":"tools/call","params":{"name":"search"},"Params":{"name":"add"}}`:   false,
		`[{"method":"tools/call","params":{"name":"search"}}]`:                         false,
		``: false,
		"{\"method\":\"tools/call\",\"params\":{\"name\":\"search\",\"\xff\":1}}": false,
		`{"method":"tools/call","params":{"name":"search"`:                        false,
		strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100):             false,
	} {
		err := r.matches([]byte(body))
		assert.Equal(t, allowed, err == nil, "%s: %v", body, err)
		if err != nil {
			assert.Equal(t, abi.CodeDenied, abi.CodeOf(err))
		}
	}
}

func FuzzUnambiguousAgreesWithEncodingJSON(f *testing.F) {
	f.Add(`{"a":[1,"x",null,true],"b":{}}`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := unambiguous([]byte(text))
		if err != nil {
			return
		}
		var want any
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.Equal(t, want, got)
	})
}

func TestPointerIsRFC6901(t *testing.T) {
	var doc any
	require.NoError(t, json.Unmarshal([]byte(`{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8,"o":{"p":null}}`), &doc))
	for at, want := range map[string]any{"/foo/0": "bar", "/": 0.0, "/a~1b": 1.0, "/m~0n": 8.0, "/o/p": nil} {
		got, ok := jsonpointer.Find(doc, at)
		assert.True(t, ok, at)
		assert.Equal(t, want, got, at)
	}
	for _, at := range []string{"/foo/2", "/foo/-1", "/foo/x", "/nope", "/foo/0/x"} {
		_, ok := jsonpointer.Find(doc, at)
		assert.False(t, ok, at)
	}
}

func TestRedactorRemovesSecretsWhateverTheirForm(t *testing.T) {
	r := newRedactor([]string{`pa"ss\word`, "tok-12345"})
	assert.Equal(t, "a "+redacted+" b", r.text("a tok-12345 b"))
	assert.NotContains(t, r.text(`{"k":"pa\"ss\\word"}`), "ss")
	status := int64(500)
	e := r.error(&abi.Error{Code: abi.CodeBackend, Message: "m tok-12345", Hint: "tok-12345",
		Native: &abi.NativeError{Status: &status, Body: strings.Repeat("é", 3000) + "tok-12345"}})
	assert.NotContains(t, e.Message+e.Hint+e.Native.Body, "tok-12345")
	assert.LessOrEqual(t, len(e.Native.Body), abi.NativeBodyLimit)
}
