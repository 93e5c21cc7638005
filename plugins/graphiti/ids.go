package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// This file makes all ids that memhost sends to Graphiti, and checks those that Graphiti returns.
//
//	scope              group_id, on every request: groupID, or the id from group_id_template
//	event              the episode's name: the unchanged event_id (turn.go), unique within its group
//	events to be added the gateway's job, on core with receipts: queued: jobID
//	fact, entity, ...  a UUID of Graphiti's own: isUUID; memhost makes none

const (
	// groupMax is the maximum length of a group id that is spelled out: Neo4j's range indexes accept some 8 kB,
	// Lucene's terms less.
	groupMax = 200
	// probeGroup belongs to no scope: health reads it to check the connection to the database.
	probeGroup = "mh1_health"
)

// groupID maps a scope's generation to a Graphiti group, injectively: mh1_<namespace>_<run>_<persona>_<agent>, each
// part the lower-case base32hex of its bytes, or z if it is empty, and from the second generation on g<generation> as a
// fifth part. Longer than groupMax it becomes mh1h_<SHA-256 of the parts with their lengths>.
//
//	run user_a_c1, persona user_a, generation 2: mh1_z_elpmasivc5fm6c8_elpmasivc4_z_g2
//
// Neither z nor _ is in the alphabet, so a group splits into parts in one way only. It is a single Lucene token, so
// that an index that splits at hyphens and folds case does not match another group.
func groupID(namespace string, scope abi.MemoryScope, generation int64) string {
	parts := [...]string{namespace, scope.RunID, scope.PersonaID, scope.AgentID}
	id := "mh1"
	for _, part := range parts {
		if part == "" {
			id += "_z"
		} else {
			id += "_" + base32hex(part)
		}
	}
	if generation > 1 {
		id += "_g" + sdk.Itoa(generation)
	}
	if len(id) <= groupMax {
		return id
	}
	var d sdk.Digest
	for _, part := range parts {
		d.Add(sdk.Itoa(len(part)) + ":" + part)
	}
	d.Add(sdk.Itoa(generation))
	return "mh1h_" + d.Hex()
}

// base32hex is the lower-case base32hex of the bytes, without padding (RFC 4648, section 7).
func base32hex(s string) string {
	const alphabet = "0123456789abcdefghijklmnopqrstuv"
	out := make([]byte, 0, (len(s)*8+4)/5)
	bits, have := uint32(0), 0
	for i := range len(s) {
		bits, have = bits<<8|uint32(s[i]), have+8
		for ; have >= 5; have -= 5 {
			out = append(out, alphabet[bits>>(have-5)&31])
		}
	}
	if have > 0 {
		out = append(out, alphabet[bits<<(5-have)&31])
	}
	return string(out)
}

// groupOf returns the group of a call. It fails on anything unexpected: Graphiti's own check accepts a trailing line
// end, and an empty group means all groups.
func groupOf(s *settings, c *sdk.Call) (string, error) {
	id := groupID(s.config.Namespace, c.Scope, c.Generation)
	if s.template != nil {
		id = s.template.ID(s.config.Namespace, c.Scope, c.Generation, groupMax)
	}
	if !isGroup(id) {
		return "", abi.NewError(abi.CodeInternal, "the scope has no group id that Graphiti takes")
	}
	return id, nil
}

func isGroup(id string) bool {
	for i := range len(id) {
		if !sdk.LowerNumeric(id[i]) && id[i] != '_' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= groupMax
}

// isUUID reports whether s is a lower-case UUID with dashes, as all of Graphiti's are. Only such ids are put into a
// path or a look-up.
func isUUID(s string) bool {
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f'
		if dash != (s[i] == '-') || !dash && !hex {
			return false
		}
	}
	return len(s) == 36
}

// Kinds of jobs, as prefixes of their ids: one event, or a bulk of several.
const (
	jobSingle = "mh1e"
	jobBulk   = "mh1b"
)

// jobID returns the id of the gateway's job that adds events: <kind>-<SHA-256 of the events' ids, each with its length
// and the UUID of the bare episode that it resumes>. The same events give the same job, so a request that is sent twice
// is processed once.
func jobID(kind string, bare map[string]string, events ...string) string {
	var d sdk.Digest
	for _, name := range events {
		d.Add(sdk.Itoa(len(name)) + ":" + name + bare[name])
	}
	return kind + "-" + d.Hex()
}
