package main

import (
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// hashed is prefix and the SHA-256 of the parts, each with its length: 52 characters of [a-z2-7] after the prefix.
func hashed(prefix string, parts ...string) string {
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	return prefix + base32OfHex(d.Hex())
}

// base32OfHex writes a digest's hex as RFC 4648's base32 in lower case without padding: letters that MemOS, Redis and
// a folder's name keep apart. (encoding/hex would read it in one line, and bring 28 KB of package fmt into the
// module.)
func base32OfHex(text string) string {
	raw := make([]byte, len(text)/2)
	for i := range raw {
		n, _ := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		raw[i] = byte(n)
	}
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding).EncodeToString(raw)
}

// cubeMax is the longest cube id that is spelled out.
const cubeMax = 100

// cubeOf is the scope's cube and at the same time its user: a cube is only a property of nodes, and tasks are kept by
// user alone. Never empty: an empty id leads into the bucket that MemOS shares among everybody. Without colons: Redis
// keys are joined by them.
func (s *settings) cubeOf(scope abi.MemoryScope, generation int64) string {
	if s.template != nil {
		return s.template.ID(s.config.Namespace, scope, generation, cubeMax)
	}
	return hashed("mh1-", s.config.Provider, s.config.Namespace, scope.RunID, scope.PersonaID, scope.AgentID,
		sdk.Itoa(generation))
}

// canary is one of the two cubes of the isolation probe: "a" holds one memory, "b" none, ever.
func (s *settings) canary(which string) string {
	return hashed("mh1-", s.config.Provider, s.config.Namespace, "canary", which)
}

// recordOf is the record id under which a cube is reset. It depends on the cube alone: a reset that was interrupted
// between marking and removing is finished by repeating it, where a new id would never meet the nodes that carry the
// old one (POST /product/delete_memory_by_record_id).
func recordOf(cube string) string { return hashed("mh1r-", cube) }

// taskOf is the business id of the background work for an event. The client gives it, the answer does not (POST
// /product/add).
func taskOf(cube, eventID string) string { return hashed("mh1t-", cube, eventID) }

// sessionPrefix begins a session id that is not the clear one.
const sessionPrefix = "mh1s-"

// sessionOf is a session's native id: itself when it is plain, else hashed. No plain one begins like a hashed one.
func sessionOf(session string) string {
	if session == "" || len(session) > 100 || strings.HasPrefix(session, sessionPrefix) {
		return hashed(sessionPrefix, session)
	}
	for i := 0; i < len(session); i++ {
		if b := session[i]; !sdk.AlphaNumeric(b) && b != '-' && b != '_' && b != '.' {
			return hashed(sessionPrefix, session)
		}
	}
	return session
}

// labelRules are the ids in which labels outlive an async extraction: legible as far as they are plain.
var labelRules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 200}

// labelTriple carries scenario, context and attribute together through an async write, in project_id; the empty
// string for no labels.
func labelTriple(scenario, context, attribute string) string {
	if scenario == "" && context == "" && attribute == "" {
		return ""
	}
	return "cs-" + sdk.NativeID(labelRules, scenario, context, attribute)
}

// labelScenario carries the scenario alone, in manager_user_id.
func labelScenario(scenario string) string {
	if scenario == "" {
		return ""
	}
	return "sc-" + sdk.NativeID(labelRules, scenario)
}

// messageID is what a memory's sources name: the event, and which of its messages.
func messageID(eventID string, i int) string { return eventID + "#" + sdk.Itoa(i) }

// eventOf is the event of a message id, or nothing if it is not one of ours.
func eventOf(messageID string) string {
	at := strings.LastIndexByte(messageID, '#')
	if at <= 0 || at == len(messageID)-1 {
		return ""
	}
	for _, digit := range messageID[at+1:] {
		if digit < '0' || digit > '9' {
			return ""
		}
	}
	return messageID[:at]
}
