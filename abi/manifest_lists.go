package abi

import (
	"slices"
	"strconv"
	"strings"
)

// SafeHeader reports whether a header, in any case, is in the fixed set that a guest may set on a route without a list
// of headers. Only ManifestVersion allows such routes. Headers of declared secrets are allowed in addition.
func SafeHeader(name string) bool { return slices.Contains(safeHeaders, strings.ToLower(name)) }

// SafeHeaders lists that set, in lower case.
func SafeHeaders() []string { return slices.Clone(safeHeaders) }

var safeHeaders = []string{"accept", "accept-encoding", "accept-language", "cache-control", "content-language",
	"content-type",
	"idempotency-key", "if-match", "if-modified-since", "if-none-match", "if-unmodified-since", "last-event-id",
	"mcp-protocol-version", "mcp-session-id", "prefer", "traceparent", "tracestate", "user-agent", "x-correlation-id",
	"x-request-id"}

// WarnRoutesUnlisted is the code of the warning about routes without lists.
const WarnRoutesUnlisted = "routes_unlisted"

// Warnings returns the warnings about a valid manifest. Each begins with a code and a colon.
func (x *ModuleManifest) Warnings() []string {
	n := 0
	for i := range x.Routes {
		if r := &x.Routes[i]; r.Statement == "" && (r.Headers == nil || r.Query == nil) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{WarnRoutesUnlisted + ": " + strconv.Itoa(n) + " of " + strconv.Itoa(len(x.Routes)) +
		" routes do not list their headers or query keys: there the module may set a fixed set of headers, " +
		"and any query key but _method"}
}
