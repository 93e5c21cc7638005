package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestServerSentEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"one event", "event: message\r\ndata: {\"a\":1}\r\n\r\n", []string{`{"a":1}`}},
		{"pings before it", ": ping - 2026-11-21 04:21:31+00:00\r\n\r\n: ping\r\n\r\nevent: message\r\ndata: x\r\n\r\n",
			[]string{"x"}},
		{"two events, line ends of all kinds", "data: a\n\ndata:b\r\r", []string{"a", "b"}},
		{"data over several lines", "data: a\ndata: b\nid: 7\n\n", []string{"a\nb"}},
		{"empty data", "data\n\n", []string{""}},
		{"broken off", "data: a\n\ndata: b\n", []string{"a"}},
		{"broken off in a line", "data: {\"a\":", nil},
		{"nothing", "", nil},
		{"other fields", "retry: 10\nevent: x\n\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range events([]byte(c.stream)) {
				got = append(got, string(e))
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// FuzzServerSentEvents compares with a reader that works line by line.
func FuzzServerSentEvents(f *testing.F) {
	f.Add([]byte("event: message\r\ndata: {}\r\n\r\n"))
	f.Add([]byte("data\rdata: \r\r: x\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\r", "\n"), "\n")
		var want, data []string
		for _, line := range lines[:len(lines)-1] {
			name, value, _ := strings.Cut(line, ":")
			switch {
			case line == "" && data != nil:
				want, data = append(want, strings.Join(data, "\n")), nil
			case line != "" && name == "data":
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		var got []string
		for _, e := range events(stream) {
			got = append(got, string(e))
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") || len(got) != len(want) {
			t.Fatalf("%q\n%q, want\n%q", stream, got, want)
		}
	})
}

func TestRPCResponses(t *testing.T) {
	stream := func(messages ...string) string { return "data: " + strings.Join(messages, "\n\ndata: ") + "\n\n" }
	const sse, plain = "text/event-stream", "application/json"
	for _, c := range []struct {
		name, kind, body, want string
		code                   abi.Code
	}{
		{"a result", sse, stream(`{"jsonrpc":"2.0","id":7,"result":{"a":1}}`), `{"a":1}`, ""},
		{"a notification before it", sse, stream(`{"jsonrpc":"2.0","method":"notifications/progress"}`,
			`{"id":7,"result":{}}`), `{}`, ""},
		{"plain JSON", plain + "; charset=utf-8", `{"id":7,"result":[]}`, `[]`, ""},
		{"another request's", sse, stream(`{"id":8,"result":{}}`), "", abi.CodeBackend},
		{"an error", sse, stream(`{"id":7,"error":{"code":-32602,"message":"Invalid request parameters","data":""}}`),
			"", abi.CodeBackend},
		{"neither", sse, stream(`{"id":7}`), "", abi.CodeBackend},
		{"truncated", sse, `data: {"id":7,"resu`, "", abi.CodeBackend},
		{"truncated JSON", plain, `{"id":7,"result":{`, "", abi.CodeBackend},
		{"HTML", "text/html", "<html>", "", abi.CodeBackend},
		{"too deep", sse, stream(`{"id":7,"result":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), "",
			abi.CodeBackend},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := rpcResult("r", &abi.HTTPResponse{Status: 200,
				Headers: map[string]string{"content-type": c.kind}}, []byte(c.body), 7)
			assert.Equal(t, c.code, abi.CodeOf(err))
			assert.Equal(t, c.want, string(got))
		})
	}
}

// rpcTexts maps answers to tools/call to the text that is read from them: "" if there is none.
var rpcTexts = []struct{ body, text string }{
	{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"facts\": []}"}],"isError":false}}`,
		`{"facts": []}`},
	{`{"id":7,"jsonrpc":"2.0","result":{"structuredContent":{},"content":[{"text":"a"},{"text":"b"}]}}`, `a`},
	{`{"id":8,"jsonrpc":"2.0","result":{"content":[{"text":"another's"}]}}`, ``},
	{`{"id":"\"result\":","result":{"content":[{"text":"a"}]}}`, ``},
	{`{"x":"\"result\":","id":7,"result":{"content":[{"text":"a"}]}}`, `a`},
	{`{"x":{"result":{"content":[{"text":"a"}]}},"id":7,"result":{"content":[{"text":"b"}]}}`, `b`},
	{`{"id":7,"error":{"message":"x"},"result":{"content":[{"text":"a"}]}}`, ``},
	{`{"id":7,"result":{"content":[{"text":"a"}]},"error":{"message":"x"}}`, ``},
	{`{"id":7,"result":{"content":[{"text":"a"}]},"result":{}}`, ``},
	{`{"result":{"content":[{"text":"a"}]},"id":7}`, `a`},
	{`{"id":7,"result":{"content":[{"text":"a"}],"isError":true}}`, ``},
	{`{"id":7,"result":{"content":[{"text":"a"}]}]}`, ``},
	{`{"id":7,"result":{"content":[]}}`, ``},
	{`{"id":7,"result":[]}`, ``},
}

func TestTheTextOfATool(t *testing.T) {
	read := func(body string) (string, error) {
		head := &abi.HTTPResponse{Status: 200, Headers: map[string]string{"content-type": "application/json"}}
		result, err := rpcResult("r", head, []byte(body), 7)
		if err != nil {
			return "", err
		}
		text, err := toolText("r", result)
		return string(text), err
	}
	for _, c := range rpcTexts {
		text, err := read(c.body)
		assert.Equal(t, c.text, text, c.body)
		assert.Equal(t, c.text == "", err != nil, c.body)
	}
	deep := `{"id":7,"result":{"content":[{"text":"a"}],"x":` + strings.Repeat("[", abi.MaxDepth-2) +
		strings.Repeat("]", abi.MaxDepth-2) + `}}`
	_, err := read(deep)
	require.NoError(t, err)
	_, err = read(strings.Replace(deep, "[]", "[[]]", 1))
	assert.Error(t, err, "one level more than is read")
}

func FuzzRPC(f *testing.F) {
	f.Add([]byte("data: {\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{}\"}]," +
		"\"isError\":false}}\n\n"))
	f.Add([]byte(`{"id":7,"result":{"content":[{"text":"{\"error\":\"x not found\"}"}]}}`))
	f.Add([]byte(`{"id":7,"result":{"content":null}}`))
	for _, c := range rpcTexts {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			head := &abi.HTTPResponse{Status: 200, Headers: map[string]string{"content-type": kind}}
			result, err := rpcResult("r", head, body, 7)
			if err != nil {
				continue
			}
			text, err := toolText("r", result)
			if err == nil {
				err = toolError("r", text)
			}
			if err == nil && !abi.ValidJSON(text) {
				t.Fatalf("%q came through as %q", body, text)
			}
			if err == nil {
				_, _ = itemsIn("r", "facts", bytes.Clone(text))
			}
		}
	})
}

func FuzzItems(f *testing.F) {
	f.Add([]byte(`{"facts":[{"uuid":"u","fact":"f","valid_at":null,"episodes":["e"]}]}`))
	f.Add([]byte(`{"facts":[{"uuid":7}]}`))
	f.Add([]byte(`{"facts":[{"":7,"uuie":8,"valid_by":"","expires_at":[],"entity_edge_":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := itemsIn("r", "facts", body)
		if err != nil && len(found) > 0 && abi.CodeOf(err) != abi.CodeBackend {
			t.Fatalf("%v", err)
		}
		for i := range found {
			_ = found[i].block("fact", "")
		}
	})
}

// TestErrors checks each surface's errors and what the module makes of them. An outage is never an empty result.
func TestErrors(t *testing.T) {
	status := func(code int64, body string) sdktest.Reply {
		return sdktest.Reply{Status: code, Headers: map[string]string{"content-type": "application/json"}, Body: body}
	}
	failing := func(text string) sdktest.Reply {
		return sdktest.Reply{Headers: map[string]string{"content-type": "application/json"},
			Body: `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":` + text + `}],"isError":false}}`}
	}
	for _, c := range []struct {
		name, surface string
		reply         sdktest.Reply
		code          abi.Code
		retryable     bool
	}{
		{"422", surfaceREST,
			status(422, `{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required"}]}`),
			abi.CodeInvalidArgument, false},
		{"404 of an id", surfaceREST, status(404, `{"detail":"edge 8be2 not found"}`), abi.CodeNotFound, false},
		{"404 of a path: another server", surfaceREST, status(404, `{"detail":"Not Found"}`), abi.CodeBackend, false},
		{"405", surfaceREST, status(405, `{"detail":"Method Not Allowed"}`), abi.CodeBackend, false},
		{"500 in plain text", surfaceREST, status(500, "Internal Server Error"), abi.CodeBackend, true},
		{"401 of a proxy", surfaceREST, status(401, ""), abi.CodeUnauthenticated, false},
		{"409 of a proxy", surfaceREST, status(409, ""), abi.CodeConflict, false},
		{"413 of a proxy", surfaceREST, status(413, ""), abi.CodeTooLarge, false},
		{"429 of a proxy", surfaceREST, sdktest.Reply{Status: 429, Headers: map[string]string{"retry-after": "7"}},
			abi.CodeRateLimited, true},
		{"502 of a proxy", surfaceREST, status(502, "Bad Gateway"), abi.CodeUnavailable, true},
		{"a redirect", surfaceREST, status(307, ""), abi.CodeBackend, false},
		{"an error inside a 200", surfaceREST, status(200, `{"error":"down"}`), abi.CodeBackend, false},
		{"truncated JSON", surfaceREST, status(200, `{"facts":[{"uuid":`), abi.CodeBackend, false},
		{"facts that are no list", surfaceREST, status(200, `{"facts":7}`), abi.CodeBackend, false},
		{"not UTF-8", surfaceREST, status(500, "\xff\xfe"), abi.CodeBackend, true},
		{"dropped connection", surfaceREST, sdktest.Reply{Err: abi.NewError(abi.CodeUnavailable, "reset")},
			abi.CodeUnavailable, true},
		{"slow", surfaceREST, sdktest.Reply{Err: abi.NewError(abi.CodeTimeout, "late")}, abi.CodeTimeout, true},
		{"the host wall", surfaceMCP, status(421, "Invalid Host header"), abi.CodeDenied, false},
		{"the origin wall", surfaceMCP, status(403, "Invalid Origin header"), abi.CodeDenied, false},
		{"406", surfaceMCP, status(406, `{"error":{}}`), abi.CodeBackend, false},
		{"illegal group, said inside a success", surfaceMCP,
			failing(`"{\"error\":\"Error searching facts: group_id \\\"a:b\\\" ` +
				`must contain only alphanumeric characters, dashes, or underscores\"}"`),
			abi.CodeInvalidArgument, false},
		{"database down, said inside a success", surfaceMCP,
			failing(`"{\"error\":\"Error searching facts: Couldn't connect to 127.0.0.1:7687\"}"`), abi.CodeUnavailable,
			true},
		{"provider down", surfaceMCP, failing(`"{\"error\":\"Error searching facts: Connection error.\"}"`),
			abi.CodeUnavailable, true},
		{"provider's quota", surfaceMCP,
			failing(`"{\"error\":\"Error searching facts: Rate limit exceeded. Please try again later.\"}"`),
			abi.CodeRateLimited, true},
		{"something else", surfaceMCP, failing(`"{\"error\":\"Error searching facts: 'NoneType'\"}"`), abi.CodeBackend,
			false},
		{"prose instead of JSON", surfaceMCP, failing(`"done"`), abi.CodeBackend, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := plug(t, providerSetup{c.surface, false}, "")
			r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
				return c.reply, q.Route == routeRESTSearch || q.Route == routeMCPSearch
			}
			_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope,
				SessionID: "n"})
			e := abi.AsError(err)
			require.NotNil(t, e)
			assert.Equal(t, c.code, e.Code, e.Message)
			assert.Equal(t, c.retryable, e.Retryable)
			if c.reply.Err == nil {
				assert.NotNil(t, e.Native, "the backend's own words are kept")
			}
			if c.reply.Headers["retry-after"] != "" {
				assert.Equal(t, int64(7000), *e.RetryAfterMS)
			}
		})
	}
}

func TestAnItemOfAnotherGroupIsABreach(t *testing.T) {
	r := plug(t, providerSetup{surfaceMCP, false}, "")
	r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
		return sdktest.Reply{Headers: map[string]string{"content-type": "application/json"},
			Body: `{"id":2,"result":{"content":[{"text":"{\"facts\":[{\"uuid\":\"u\",` +
				`\"group_id\":\"mh1_other\",\"fact\":\"x\"}]}"}]}}`}, q.Route == routeMCPSearch
	}
	_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n"})
	assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
	r = plug(t, providerSetup{surfaceREST, false}, "")
	r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
		return sdktest.Reply{Body: `[{"uuid":"u","name":"e","group_id":"mh1_other"}]`}, q.Route == "rest_episodes"
	}
	_, err = direct(r, abi.OpInventory, inventory, &abi.Empty{})
	assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
}

func TestFalkorDBIsRefused(t *testing.T) {
	r := plug(t, providerSetup{surfaceMCP, false}, "")
	r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
		return sdktest.Reply{Headers: map[string]string{"content-type": "application/json"},
				Body: `{"id":2,"result":{"content":[{"text":"{\"status\":\"ok\",` +
					`\"message\":\"Graphiti MCP server is running and connected to falkordb database\"}"}]}}`},
			q.Route == "mcp_get_status"
	}
	_, err := direct(r, abi.OpSetupScope, setupScope, &abi.Empty{})
	assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
}

func TestAnAnswerWithoutItsListIsNoEmptyResult(t *testing.T) {
	for _, body := range []string{`{}`, `{"facts":null}`, `{"facts":{}}`, `null`, `[]`, `{"facts":[]}{`} {
		_, err := itemsIn("r", "facts", []byte(body))
		assert.Equal(t, abi.CodeBackend, abi.CodeOf(err), body)
	}
	found, err := itemsIn("r", "facts", []byte(`{"facts":[]}`))
	require.NoError(t, err)
	assert.Empty(t, found)
}
