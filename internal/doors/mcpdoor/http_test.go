package mcpdoor_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
	"github.com/memhost/memhost/internal/doors/server"
)

// mounted is a slot's HTTP door with MCP at /mcp.
func mounted(t *testing.T, s *slot, token string) *httptest.Server {
	t.Helper()
	d, err := mcpdoor.New(options(s))
	require.NoError(t, err)
	door, err := server.New(server.Options{Slot: s, Token: token,
		Mounts: map[string]http.Handler{"/mcp": d.Handler(1 << 16)}})
	require.NoError(t, err)
	web := httptest.NewServer(door.Handler())
	t.Cleanup(web.Close)
	return web
}

func TestStreamableHTTP(t *testing.T) {
	s := newSlot()
	s.answers[abi.OpRecordEvent] = &abi.WriteReceipt{Status: abi.StatusCommitted}
	web := mounted(t, s, "")
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	require.NoError(t, err)
	assert.Len(t, tools(t, c), 3)
	assert.False(t, c.InitializeResult().Capabilities.Tools.ListChanged, "nobody could be told")
	assert.Equal(t, "Recorded. It can be found from now on.",
		textOf(t, call(t, c, "memory_add", map[string]any{"text": "x"})))
	assert.Equal(t, abi.CodeDenied, problem(t, call(t, c, "memory_add",
		map[string]any{"text": "x", "user_id": "bob"})).Code)
	require.NoError(t, c.Close())
}

func TestMCPStandsBehindTheGuardOfTheHTTPDoor(t *testing.T) {
	for _, c := range []struct {
		name, token string
		header      http.Header
		host        string
		status      int
		says        string
	}{
		{name: "a program", status: 200, says: `"protocolVersion":"2025-06-18"`},
		{name: "a page whose name was rebound", host: "evil.example", status: 403, says: "names \\\"evil.example\\\""},
		{name: "a page of another origin", header: http.Header{"Origin": {"http://evil.example"}}, status: 403,
			says: "a web page of"},
		{name: "the origin null", header: http.Header{"Origin": {"null"}}, status: 403, says: "a web page of"},
		{name: "an image in a page", header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, status: 403,
			says: "another origin"},
		{name: "no token", token: "t0ken", status: 401, says: "wants a bearer token"},
		{name: "a wrong token", token: "t0ken", header: http.Header{"Authorization": {"Bearer t0kem"}}, status: 401,
			says: "not the one of this slot"},
		{name: "the token", token: "t0ken", header: http.Header{"Authorization": {"Bearer t0ken"}}, status: 200,
			says: `"protocolVersion"`},
		{name: "the token, behind a proxy", token: "t0ken", host: "memory.example",
			header: http.Header{"Authorization": {"Bearer t0ken"}}, status: 200, says: `"protocolVersion"`},
		{name: "a form", header: http.Header{"Content-Type": {"text/plain"}}, status: 415, says: "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := mounted(t, newSlot(), c.token)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp",
				strings.NewReader(initialize))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			maps.Copy(r.Header, c.header)
			if c.host != "" {
				r.Host = c.host
			}
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			assert.Equal(t, c.status, answer.StatusCode)
			assert.Contains(t, string(text), c.says)
			assert.Empty(t, answer.Header.Get("Mcp-Session-Id"), "no session is kept")
		})
	}
}

func TestRequestsThatAreTooLarge(t *testing.T) {
	s := newSlot()
	web := mounted(t, s, "")
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	require.NoError(t, err)
	_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: mcpdoor.ToolAdd,
		Arguments: map[string]any{"text": strings.Repeat("x", 1<<17)}})
	require.Error(t, err)
	assert.Empty(t, s.of(abi.OpRecordEvent))
}

func TestAClientGoesOnAfterARestartOfTheSlot(t *testing.T) {
	first, second := mounted(t, newSlot(), ""), mounted(t, newSlot(), "")
	behind := first
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behind.Config.Handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: front.URL + "/mcp"}, nil)
	require.NoError(t, err)
	call(t, c, "memory_search", map[string]any{"query": "x"})
	behind = second
	assert.False(t, call(t, c, "memory_search", map[string]any{"query": "x"}).IsError)
}

func TestABatchOfRequestsIsBounded(t *testing.T) {
	d, err := mcpdoor.New(options(newSlot()))
	require.NoError(t, err)
	web := httptest.NewServer(d.Handler(1 << 20))
	defer web.Close()
	for n, status := range map[int]int{100: http.StatusOK, 2000: http.StatusRequestEntityTooLarge} {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp",
			strings.NewReader(" \n["+strings.Join(list, ",")+"]"))
		require.NoError(t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2025-03-26"},
			"Accept": {"application/json, text/event-stream"}}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, status, answer.StatusCode, "%d requests", n)
	}
}
