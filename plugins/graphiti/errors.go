package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// refused is the error in an HTTP answer, nil for 2xx.
func refused(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	if head.Status >= 200 && head.Status < 300 {
		return nil
	}
	code, hint := abi.CodeBackend, ""
	switch head.Status {
	case 400, 422:
		code = abi.CodeInvalidArgument
	case 401:
		code, hint = abi.CodeUnauthenticated, "Graphiti itself has no authentication: this is a proxy's; set api_key or headers"
	case 403:
		code, hint = abi.CodeDenied, "Graphiti itself has no authorisation: a proxy, or the MCP server's check of the Origin header"
	case 404:
		if strings.Contains(string(body), " not found") {
			code = abi.CodeNotFound
		} else {
			hint = "does url name a Graphiti server, and surface the right one?"
		}
	case 409:
		code = abi.CodeConflict
	case 413:
		code = abi.CodeTooLarge
	case 421:
		code, hint = abi.CodeDenied, "the MCP server takes the hosts 127.0.0.1, localhost and [::1] only, each with a port; put a proxy before it that rewrites Host"
	case 429:
		code = abi.CodeRateLimited
	case 502, 503:
		code = abi.CodeUnavailable
	case 504:
		code = abi.CodeTimeout
	case 500:
		hint = "the server hides why: Neo4j down, the LLM or embedding provider failing, or a query that its index refuses; see its log"
	case 301, 302, 303, 307, 308:
		hint = "memhost follows no redirects: write the URL that answers itself"
	}
	e := abi.NewError(code, route+": the backend answered "+sdk.Itoa(head.Status)).WithHint(hint)
	e.Retryable = e.Retryable || head.Status == 500
	if seconds, err := strconv.ParseInt(head.Headers.Get("retry-after"), 10, 64); err == nil && seconds >= 0 && seconds < 1<<31 {
		ms := seconds * 1000
		e.RetryAfterMS = &ms
	}
	return native(e, route, &head.Status, body)
}

// unusable is a success that cannot be read.
func unusable(route, what string, body []byte) *abi.Error {
	return native(abi.NewError(abi.CodeBackend, route+": the answer is "+what), route, nil, body)
}

// native keeps what the backend said.
func native(e *abi.Error, route string, status *int64, body []byte) *abi.Error {
	e.Route = route
	if len(body) > abi.NativeBodyLimit {
		body = body[:abi.NativeBodyLimit]
	}
	e.Native = &abi.NativeError{Status: status, Body: strings.ToValidUTF8(string(body), "\uFFFD")}
	return e
}

// said is the error of an application failure that the MCP server reports inside a success: {"error": "Error searching facts: ..."}.
// The prose is all there is.
func said(route, message string) *abi.Error {
	has := func(parts ...string) bool {
		folded := lower(message)
		for _, p := range parts {
			if strings.Contains(folded, p) {
				return true
			}
		}
		return false
	}
	code, hint := abi.CodeBackend, ""
	switch {
	case has(" not found"):
		code = abi.CodeNotFound
	case has("must contain only alphanumeric", "invalid reference_time", "must be a positive", "must be greater"):
		code = abi.CodeInvalidArgument
	case has("rate limit", "error code: 429"):
		code = abi.CodeRateLimited
	case has("couldn't connect", "failed to establish connection", "serviceunavailable", "connection error", "connection refused", "unable to retrieve routing"):
		code, hint = abi.CodeUnavailable, "Neo4j, or the server's LLM or embedding provider, cannot be reached from it"
	case has("not initialized"):
		code = abi.CodeUnavailable
	}
	return native(abi.NewError(code, route+": "+message).WithHint(hint), route, nil, []byte(message))
}

// foreign is the error for an item of another group.
func foreign(route, group string) *abi.Error {
	e := abi.NewError(abi.CodeIsolationBreach, route+": the backend returned an item of another group")
	return native(e, route, nil, []byte(group))
}
