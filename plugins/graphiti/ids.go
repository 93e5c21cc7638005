package main

import (
	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// groupPrefix begins every group id that memhost makes, hashedPrefix one of a scope whose ids are long.
const (
	groupPrefix  = "mh1_"
	hashedPrefix = "mh1h_"
	// groupMax is the longest group id spelled out: Neo4j's range indexes take some 8 kB, Lucene's terms less.
	groupMax = 200
)

// base32hex writes the lower-case base32hex of the bytes, without padding (RFC 4648, section 7), to dst, and tells how much of it that is.
func base32hex(dst []byte, s string) (n int) {
	const alphabet = "0123456789abcdefghijklmnopqrstuv"
	bits, have := uint32(0), 0
	for i := 0; i < len(s); i++ {
		bits, have = bits<<8|uint32(s[i]), have+8
		for ; have >= 5; have -= 5 {
			dst[n] = alphabet[bits>>(have-5)&31]
			n++
		}
	}
	if have > 0 {
		dst[n] = alphabet[bits<<(5-have)&31]
		n++
	}
	return n
}

func encodedLen(s string) int { return (len(s)*8 + 4) / 5 }

// groupID maps a scope's generation to a Graphiti group id, injectively: mh1_<namespace>_<run>_<persona>_<agent>, each part the lower-case base32hex of its
// bytes, or z where there is none, and from the second generation on a fifth part g<generation>.
//
// Neither z nor _ is in the alphabet, so that parts split in one way only. The id is a single Lucene token: an index that splits at hyphens and folds case
// finds no neighbour by it.
func groupID(namespace string, scope abi.MemoryScope, generation int64) string {
	parts := [...]string{namespace, scope.RunID, scope.PersonaID, scope.AgentID}
	size := len(groupPrefix) + 2*len(parts)
	for _, part := range parts {
		size += encodedLen(part)
	}
	out := make([]byte, size)
	n := copy(out, groupPrefix)
	for _, part := range parts {
		if part == "" {
			out[n] = 'z'
			n++
		} else {
			n += base32hex(out[n:], part)
		}
		out[n] = '_'
		n++
	}
	id := words.View(out[:n-1])
	if generation > 1 {
		id += "_g" + sdk.Itoa(generation)
	}
	if len(id) <= groupMax {
		return id
	}
	return hashedID(parts[:], generation)
}

// hashedID is groupID for parts that are long: a hash of each with its length.
//
//go:noinline
func hashedID(parts []string, generation int64) string {
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	d.Add(sdk.Itoa(generation))
	return hashedPrefix + d.Hex()
}

// groupOf is the group of a call. It fails closed: an id that is not wholly of the alphabet is never sent. Graphiti's own check lets a trailing line end
// pass, and takes an empty list of groups for all of them.
func (s *settings) groupOf(c *sdk.Call) (string, error) {
	id := groupID(s.config.Namespace, c.Scope, c.Generation)
	if !isGroup(id) {
		return "", abi.NewError(abi.CodeInternal, "the scope has no group id that Graphiti takes")
	}
	return id, nil
}

func isGroup(id string) bool {
	if len(id) <= len(groupPrefix) || len(id) > groupMax {
		return false
	}
	for i := 0; i < len(id); i++ {
		if b := id[i]; !sdk.LowerNumeric(b) && b != '_' {
			return false
		}
	}
	return true
}

// quoted is a list of one string, as JSON.
func quoted(s string) []byte { return append(append([]byte{'['}, sdk.Text(s)...), ']') }

// isUUID tells whether s is a lower-case dashed UUID, as all of Graphiti's are: nothing else is put into a path or a look-up.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if b != '-' {
				return false
			}
		case b >= '0' && b <= '9' || b >= 'a' && b <= 'f':
		default:
			return false
		}
	}
	return true
}
