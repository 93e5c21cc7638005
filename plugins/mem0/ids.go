package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Native ids are of [A-Za-z0-9_-] and at most 80 bytes: never "*", empty or blank (wildcards and "everything" to mem0), and nothing in them has a
// meaning in a URL, a filter or SQL.
const (
	slugMax = 32
	hashHex = 32 // 128 bits
)

// scopeIDs are the native ids of a scope's generation. Each of them names the scope alone; both are sent with every call.
type scopeIDs struct{ user, run string }

// idsFor is idsOf the call's scope. Those of the last one are kept, with all that they were made of: most calls are of one scope.
func (s *settings) idsFor(c *sdk.Call) scopeIDs {
	if k := &s.last; k.generation != c.Generation || !k.of(c.Scope) {
		scope := abi.MemoryScope{RunID: strings.Clone(c.Scope.RunID), PersonaID: strings.Clone(c.Scope.PersonaID),
			BackendNamespace: strings.Clone(c.Scope.BackendNamespace), AgentID: strings.Clone(c.Scope.AgentID)}
		*k = keptIDs{scope: scope, generation: c.Generation, ids: idsOf(s.config, scope, c.Generation)}
	}
	return s.last.ids
}

// keptIDs are ids with what they were made of.
type keptIDs struct {
	scope      abi.MemoryScope
	generation int64
	ids        scopeIDs
	search     keptSearch
}

// of tells whether the ids were made, and of this scope: of all of it.
func (k *keptIDs) of(scope abi.MemoryScope) bool { return k.ids.run != "" && k.scope == scope }

// idsOf hashes the whole scope into both ids, behind readable names. Different scopes, generations and providers have different ids.
func idsOf(config *abi.GuestConfig, scope abi.MemoryScope, generation int64) scopeIDs {
	namespace := scope.BackendNamespace
	if namespace == "" {
		namespace = config.Namespace
	}
	hash := hashOf(config.Provider, namespace, scope.RunID, scope.PersonaID, scope.AgentID, sdk.Itoa(generation))
	return scopeIDs{user: "u-" + slug(scope.PersonaID) + "-" + hash, run: "r-" + slug(scope.RunID) + "-" + hash}
}

// agentID is the native id of an event's agent. It is no part of what separates scopes.
func agentID(agent string) string { return "a-" + slug(agent) + "-" + hashOf(agent) }

// hashOf is over the parts with their lengths, so that no two lists of parts look alike.
func hashOf(parts ...string) string {
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	return d.Hex()[:hashHex]
}

// slug is the readable part of an id; what mem0 could take for something else becomes "_".
func slug(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && sdk.AlphaNumeric(byte(r)) {
			return r
		}
		return '_'
	}, text)
	return clean[:min(len(clean), slugMax)]
}
