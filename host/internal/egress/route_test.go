package egress

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

func TestParameterIsOnePathSegmentWhateverIsInIt(t *testing.T) {
	r := &Route{RouteDecl: abi.RouteDecl{Name: "item", Path: "/v1/items/{id}/notes"},
		origin: testOrigin(t, "http://h:1/p")}
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./%\\?#;:@&=+ ]{1,6}`),
			rapid.StringMatching(`(\.\./)+x`)).Draw(rt, "id")
		u, err := r.url(&abi.HTTPRequest{Params: map[string]string{"id": id}})
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
	r := &Route{RouteDecl: abi.RouteDecl{Path: "/s"}, origin: testOrigin(t, "http://h")}
	u, err := r.url(&abi.HTTPRequest{Query: []abi.QueryParam{{Key: "q", Value: "a&b=c#d"}, {Key: "q", Value: "ü"}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a&b=c#d", "ü"}, u.Query()["q"])
}

func TestParametersMustBeThoseOfTheRoute(t *testing.T) {
	r := &Route{RouteDecl: abi.RouteDecl{Name: "item", Path: "/items/{id}"}, origin: testOrigin(t, "http://h")}
	_, err := r.url(&abi.HTTPRequest{})
	assert.ErrorContains(t, err, "params.id: missing")
	_, err = r.url(&abi.HTTPRequest{Params: map[string]string{"id": "1", "other": "2"}})
	assert.ErrorContains(t, err, "2 given, route item takes 1")
}

func TestHeadersThatAreTheHostsAlone(t *testing.T) {
	r := &Route{RouteDecl: abi.RouteDecl{Method: http.MethodGet, Path: "/"}, origin: testOrigin(t, "http://h")}
	for _, name := range []string{"Host", "Content-Length", "transfer-encoding", "Connection", "Proxy-Authorization",
		"Upgrade"} {
		_, err := r.HTTP(&abi.HTTPRequest{Headers: map[string]string{name: "x"}}, nil)
		assert.Equal(t, abi.CodeDenied, abi.CodeOf(err), name)
	}
	_, err := r.HTTP(&abi.HTTPRequest{Headers: map[string]string{"X-A": "a\r\nX-B: b"}}, nil)
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}

func TestRouteMatchReadsTheBodyAsEveryReaderWould(t *testing.T) {
	match, err := compileMatch(map[string]abi.Raw{"/method": abi.Raw(`"tools/call"`),
		"/params/name": abi.Raw(`"search"`)})
	require.NoError(t, err)
	r := &Route{RouteDecl: abi.RouteDecl{Name: "mcp_search"}, match: match}
	for body, allowed := range map[string]bool{
		`{"method":"tools/call","params":{"name":"search"}}`:                           true,
		`{"params":{"name":"search","x":[1,{"a":null}]},"method":"tools/call","id":1}`: true,
		`{"method":"tools/call","params":{"name":"add"}}`:                              false,
		`{"method":"tools/call"}`:                                                      false,
		`{"method":"tools/call","params":{"name":"search","name":"add"}}`:              false,
		`{"method":"tools/call","params":{"name":"search","Name":"add"}}`:              false,
		`{"method":"tools/call","params":{"name":"search"}}{"method":"x"}`:             false,
		`{"method":"tools/call","params":{"name":"search"},"Params":{"name":"add"}}`:   false,
		`{"method":"tools/call","params":{"name":"search"},"param\u017f":{}}`:          false,
		`{"method":"tools/call","params":{"name":"search","x":"\ud800"}}`:              false,
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
