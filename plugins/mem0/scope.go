package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Native ids consist of [A-Za-z0-9_-] and have at most 80 bytes. They are never "*", empty or blank (which mem0 treats
// as wildcards and "everything"), and contain nothing with a meaning in a URL, a filter or SQL.
const (
	slugMax = 32
	hashHex = 32 // 128 bits
)

// scopeIDs are the native ids of a scope's generation. Each of them alone identifies the scope; both are sent with
// every call.
type scopeIDs struct{ user, run string }

// idsOf hashes the whole scope into both ids, after readable names. Different scopes, generations and providers have
// different ids.
func idsOf(config *abi.GuestConfig, scope abi.MemoryScope, generation int64) scopeIDs {
	namespace := scope.BackendNamespace
	if namespace == "" {
		namespace = config.Namespace
	}
	hash := hashOf(config.Provider, namespace, scope.RunID, scope.PersonaID, scope.AgentID, sdk.Itoa(generation))
	return scopeIDs{user: "u-" + slug(scope.PersonaID) + "-" + hash, run: "r-" + slug(scope.RunID) + "-" + hash}
}

// agentID returns the native id of an event's agent. It does not separate scopes.
func agentID(agent string) string { return "a-" + slug(agent) + "-" + hashOf(agent) }

// hashOf hashes the parts with their lengths, so that two different lists of parts have different hashes.
func hashOf(parts ...string) string {
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	return d.Hex()[:hashHex]
}

// slug returns the readable part of an id; characters with a meaning in mem0 become "_".
func slug(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && sdk.AlphaNumeric(byte(r)) {
			return r
		}
		return '_'
	}, text)
	return clean[:min(len(clean), slugMax)]
}
