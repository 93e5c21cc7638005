package cassette

import (
	"bytes"
	"encoding/json"
)

// Revision counts additions to the contract's requests and answers, for cassettes: a release that adds members or
// warnings increases it. Header.Same ignores these additions when it compares a cassette of an earlier revision.
const Revision = 3

// Older reports whether the cassette is of an earlier Revision.
func (h *Header) Older() bool { return h.Revision < Revision }

// Same reports whether a replay produced what was recorded: a request to the guest, or an answer of the guest or the
// slot.
//
// In a cassette of the present Revision that means byte for byte. In an older one members may be in another order, and
// later additions are ignored: members of an object, entries of a list called warnings, and event_ids.empty of
// readiness (in every answer since revision 3).
//
//	recorded                     got                                                      older cassette
//	{"a":1,"b":[2]}              {"b":[2],"c":3,"a":1}                                    same
//	{"a":1,"b":[2]}              {"a":1}                                                  differs: b is missing
//	{"a":1,"b":[2]}              {"a":1,"b":[2,3]}                                        differs: b is not a list of warnings
//	{"warnings":["x: 1"]}        {"warnings":["memory_pending: 2 events","x: 1"]}         same
func (h *Header) Same(recorded, got []byte) bool {
	if bytes.Equal(recorded, got) {
		return true
	}
	if !h.Older() {
		return false
	}
	var then, now any
	return parse(recorded, &then) == nil && parse(got, &now) == nil && holds(now, then, "")
}

// parse decodes JSON, and keeps numbers as they are written.
func parse(text []byte, v *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// holds reports whether a JSON value has everything that an older one had. name is the member's name.
func holds(now, then any, name string) bool {
	switch then := then.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		for member, value := range then {
			found, has := now[member]
			ok = ok && has && holds(found, value, member)
		}
		return ok
	case []any:
		now, ok := now.([]any)
		if !ok || len(now) != len(then) && name != "warnings" && name != "empty" {
			return false
		}
		for _, value := range now {
			if len(then) > 0 && holds(value, then[0], "") {
				then = then[1:]
			}
		}
		return len(then) == 0
	}
	return now == then
}
