package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// statusError returns the error of an HTTP answer, nil for 2xx.
func statusError(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	if head.Status >= 200 && head.Status < 300 {
		return nil
	}
	e := sdk.Failure(route, head, body, "")
	switch head.Status {
	case 301, 302, 303, 307, 308:
		e.Hint = "memhost follows no redirects: write the URL that answers itself"
	case 401:
		e.Hint = "Graphiti itself has no authentication: this is a proxy's; set api_key or headers"
	case 403:
		e.Hint = "Graphiti itself has no authorisation: a proxy, or the MCP server's check of the Origin header"
	case 404:
		if !strings.Contains(string(body), " not found") {
			e.Code, e.Hint = abi.CodeBackend, "does url name a Graphiti server, and surface the right one?"
		}
	case 421:
		e.Code, e.Hint = abi.CodeDenied, "the MCP server takes the hosts 127.0.0.1, localhost and [::1] only, each "+
			"with a port; put a proxy before it that rewrites Host"
	case 500:
		e.Retryable, e.Hint = true, "the server hides why: Neo4j down, the LLM or embedding provider failing, or a "+
			"query that its index refuses; see its log"
	}
	return e
}

// unusable returns the error for a success that cannot be read.
func unusable(route, what string, body []byte) *abi.Error {
	return native(sdk.Unusable(route, 0, body, "is "+what), route, body)
}

// native keeps the backend's words if they have no HTTP status: a row of Neo4j, a tool's text, a part of an answer.
func native(e *abi.Error, route string, body []byte) *abi.Error {
	e.Route, e.Native = route, sdk.Native(0, body)
	e.Native.Status = nil
	return e
}

// phrases maps parts of the MCP server's error messages, in lower case, to error codes.
var phrases = [...]struct {
	phrase string
	code   abi.Code
	hint   string
}{
	{" not found", abi.CodeNotFound, ""},
	{"must contain only alphanumeric", abi.CodeInvalidArgument, ""},
	{"invalid reference_time", abi.CodeInvalidArgument, ""},
	{"must be a positive", abi.CodeInvalidArgument, ""},
	{"must be greater", abi.CodeInvalidArgument, ""},
	{"rate limit", abi.CodeRateLimited, ""},
	{"error code: 429", abi.CodeRateLimited, ""},
	{"couldn't connect", abi.CodeUnavailable, unreachableMessage},
	{"failed to establish connection", abi.CodeUnavailable, unreachableMessage},
	{"serviceunavailable", abi.CodeUnavailable, unreachableMessage},
	{"connection error", abi.CodeUnavailable, unreachableMessage},
	{"connection refused", abi.CodeUnavailable, unreachableMessage},
	{"unable to retrieve routing", abi.CodeUnavailable, unreachableMessage},
	{"not initialized", abi.CodeUnavailable, ""},
}

const unreachableMessage = "Neo4j, or the server's LLM or embedding provider, cannot be reached from it"

// reportedError returns the error for a failure that the MCP server reports inside a success: {"error": "Error
// searching facts: ..."}. Nothing else tells failures apart.
func reportedError(route, message string) *abi.Error {
	folded := lower(message)
	for _, p := range phrases {
		if strings.Contains(folded, p.phrase) {
			return native(abi.NewError(p.code, route+": "+message).WithHint(p.hint), route, []byte(message))
		}
	}
	return native(abi.NewError(abi.CodeBackend, route+": "+message), route, []byte(message))
}

// foreignItemError returns the error for an item of another group.
func foreignItemError(route, group string) *abi.Error {
	e := abi.NewError(abi.CodeIsolationBreach, route+": the backend returned an item of another group")
	return native(e, route, []byte(group))
}
