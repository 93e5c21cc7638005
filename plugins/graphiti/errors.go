package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// statuses are the HTTP statuses that mean more than that the backend failed.
var statuses = [...]struct {
	status int64
	code   abi.Code
	hint   string
}{
	{301, abi.CodeBackend, redirects}, {302, abi.CodeBackend, redirects}, {303, abi.CodeBackend, redirects},
	{307, abi.CodeBackend, redirects}, {308, abi.CodeBackend, redirects},
	{400, abi.CodeInvalidArgument, ""},
	{401, abi.CodeUnauthenticated, "Graphiti itself has no authentication: this is a proxy's; set api_key or headers"},
	{403, abi.CodeDenied,
		"Graphiti itself has no authorisation: a proxy, or the MCP server's check of the Origin header"},
	{404, abi.CodeBackend, "does url name a Graphiti server, and surface the right one?"},
	{409, abi.CodeConflict, ""},
	{413, abi.CodeTooLarge, ""},
	{421, abi.CodeDenied, "the MCP server takes the hosts 127.0.0.1, localhost and [::1] only, each with a port; " +
		"put a proxy before it that rewrites Host"},
	{422, abi.CodeInvalidArgument, ""},
	{429, abi.CodeRateLimited, ""},
	{500, abi.CodeBackend,
		"the server hides why: Neo4j down, the LLM or embedding provider failing, or a query " +
			"that its index refuses; see its log"},
	{502, abi.CodeUnavailable, ""},
	{503, abi.CodeUnavailable, ""},
	{504, abi.CodeTimeout, ""},
}

const redirects = "memhost follows no redirects: write the URL that answers itself"

// refused is the error in an HTTP answer, nil for 2xx.
func refused(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	if head.Status >= 200 && head.Status < 300 {
		return nil
	}
	e := abi.NewError(abi.CodeBackend, route+": the backend answered "+sdk.Itoa(head.Status))
	for _, known := range statuses {
		if known.status == head.Status {
			e = abi.NewError(known.code, e.Message).WithHint(known.hint)
		}
	}
	if head.Status == 404 && strings.Contains(string(body), " not found") {
		e.Code, e.Hint = abi.CodeNotFound, ""
	}
	e.Retryable = e.Retryable || head.Status == 500
	seconds, err := strconv.ParseInt(head.Headers.Get("retry-after"), 10, 32)
	if err == nil && seconds >= 0 {
		e.RetryAfterMS = sdk.Ptr(seconds * 1000)
	}
	return native(e, route, &head.Status, body)
}

// unusable is a success that cannot be read.
func unusable(route, what string, body []byte) *abi.Error {
	return native(abi.NewError(abi.CodeBackend, route+": the answer is "+what), route, nil, body)
}

// native keeps the backend's own words.
func native(e *abi.Error, route string, status *int64, body []byte) *abi.Error {
	body = body[:min(len(body), abi.NativeBodyLimit)]
	e.Route, e.Native = route, &abi.NativeError{Status: status, Body: strings.ToValidUTF8(string(body), "\uFFFD")}
	return e
}

// phrases are parts of the MCP server's error messages, in lower case, and what they mean.
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
	{"couldn't connect", abi.CodeUnavailable, unreached},
	{"failed to establish connection", abi.CodeUnavailable, unreached},
	{"serviceunavailable", abi.CodeUnavailable, unreached},
	{"connection error", abi.CodeUnavailable, unreached},
	{"connection refused", abi.CodeUnavailable, unreached},
	{"unable to retrieve routing", abi.CodeUnavailable, unreached},
	{"not initialized", abi.CodeUnavailable, ""},
}

const unreached = "Neo4j, or the server's LLM or embedding provider, cannot be reached from it"

// said is the error of a failure that the MCP server reports inside a success: {"error": "Error searching facts: ..."}.
// The prose is all there is.
func said(route, message string) *abi.Error {
	folded := lower(message)
	for _, p := range phrases {
		if strings.Contains(folded, p.phrase) {
			return native(abi.NewError(p.code, route+": "+message).WithHint(p.hint), route, nil, []byte(message))
		}
	}
	return native(abi.NewError(abi.CodeBackend, route+": "+message), route, nil, []byte(message))
}

// foreign is the error for an item of another group.
func foreign(route, group string) *abi.Error {
	e := abi.NewError(abi.CodeIsolationBreach, route+": the backend returned an item of another group")
	return native(e, route, nil, []byte(group))
}
