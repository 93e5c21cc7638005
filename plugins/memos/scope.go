package main

import (
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// hashedID returns prefix and the SHA-256 of the parts, each with its length: 52 characters of [a-z2-7] after the
// prefix.
func hashedID(prefix string, parts ...string) string {
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	return prefix + base32OfHex(d.Hex())
}

// base32OfHex converts a digest from hex to RFC 4648's base32 in lower case without padding, which MemOS, Redis and
// file names distinguish reliably. (encoding/hex would take one line, but add 28 KB of package fmt to the module.)
func base32OfHex(text string) string {
	raw := make([]byte, len(text)/2)
	for i := range raw {
		n, _ := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		raw[i] = byte(n)
	}
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding).EncodeToString(raw)
}

// cubeMax is the maximum length of a cube id that is spelled out.
const cubeMax = 100

// cubeOf returns the scope's cube, which is also its user: a cube is only a property of nodes, and tasks are stored by
// user only. It is never empty, because MemOS maps an empty id to a bucket shared by everybody, and has no colons,
// which join Redis keys.
func (s *settings) cubeOf(scope abi.MemoryScope, generation int64) string {
	if s.template != nil {
		return s.template.ID(s.config.Namespace, scope, generation, cubeMax)
	}
	return hashedID("mh1-", s.config.Provider, s.config.Namespace, scope.RunID, scope.PersonaID, scope.AgentID,
		sdk.Itoa(generation))
}

// canary is one of the two cubes of the isolation probe: "a" holds one memory, "b" none, ever.
func (s *settings) canary(which string) string {
	return hashedID("mh1-", s.config.Provider, s.config.Namespace, "canary", which)
}

// recordOf returns the record id under which a cube is reset. It depends on the cube only, so repeating a reset that
// was interrupted between marking and removing finishes it; a new id would never match the marked nodes (POST
// /product/delete_memory_by_record_id).
func recordOf(cube string) string { return hashedID("mh1r-", cube) }

// taskOf returns the business id of an event's background work. The client sets it; the answer does not contain it
// (POST /product/add).
func taskOf(cube, eventID string) string { return hashedID("mh1t-", cube, eventID) }

// sessionPrefix begins a hashed session id.
const sessionPrefix = "mh1s-"

// sessionOf returns a session's native id: the id itself if it is plain, else its hash. No plain id begins like a
// hashed one.
func sessionOf(session string) string {
	if session == "" || len(session) > 100 || strings.HasPrefix(session, sessionPrefix) {
		return hashedID(sessionPrefix, session)
	}
	for i := 0; i < len(session); i++ {
		if b := session[i]; !sdk.AlphaNumeric(b) && b != '-' && b != '_' && b != '.' {
			return hashedID(sessionPrefix, session)
		}
	}
	return session
}

// labelRules are the rules for ids that carry labels through an async extraction: legible as far as they are plain.
var labelRules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 200}

// labelTriple encodes scenario, context and attribute for an async write, in project_id; "" for no labels.
func labelTriple(scenario, context, attribute string) string {
	if scenario == "" && context == "" && attribute == "" {
		return ""
	}
	return "cs-" + sdk.NativeID(labelRules, scenario, context, attribute)
}

// labelScenario encodes the scenario only, in manager_user_id.
func labelScenario(scenario string) string {
	if scenario == "" {
		return ""
	}
	return "sc-" + sdk.NativeID(labelRules, scenario)
}

// messageID is the id that a memory's sources contain: the event, and the number of its message.
func messageID(eventID string, i int) string { return eventID + "#" + sdk.Itoa(i) }

// eventOf returns the event of a message id, or "" if it is not memhost's.
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
