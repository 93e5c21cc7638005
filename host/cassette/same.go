package cassette

import (
	"bytes"
	"encoding/json"
)

// Revision counts what was added to the contract's requests and answers, for cassettes: a release that adds members or
// warnings raises it. A cassette of an earlier revision is compared by Header.Same as one that does not have them.
const Revision = 3

// Older reports whether the cassette is of an earlier Revision.
func (h *Header) Older() bool { return h.Revision < Revision }

// Same reports whether a replay gave what was recorded: a request to the guest, an answer of the guest or of the slot.
//
// In a cassette of the present Revision that means byte for byte. In an older one members may be in another order, and
// what has been added since does not count: members of an object, entries of a list whose name is
// warnings, and of readiness the events of which nothing was kept (event_ids.empty, told in every answer since revision
// 3).
//
//	recorded                     got                                                      older cassette
//	{"a":1,"b":[2]}              {"b":[2],"c":3,"a":1}                                    same
//	{"a":1,"b":[2]}              {"a":1}                                                  differs: b is missing
//	{"a":1,"b":[2]}              {"a":1,"b":[2,3]}                                        differs: b is no list of warnings
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

// parse keeps numbers as they are written.
func parse(text []byte, v *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// holds reports whether a JSON value has everything that another one had. name is the name of the member.
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
