package main

import (
	"unsafe"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// item is a fact (a RELATES_TO edge), an entity or an episode, as a surface tells it; each has some of the fields. Of facts, REST 0.29.3 has neither
// episodes nor node ids, and no REST version has group_id. MCP tells no valid_at of an episode.
type item struct {
	uuid, group, name string
	// text is a fact's text, an entity's summary.
	text                                     string
	validAt, invalidAt, createdAt, expiredAt moment
	// episodes are the UUIDs of the episodes that asserted a fact; facts those of the facts that an episode asserted or closed (entity_edges).
	episodes, facts []string
	// score is the reranker's, on core, where it belongs to this item.
	score *float64
}

// decode reads a field. Its length and first letter leave one key to compare with, of ten.
func (x *item) decode(d *jsontext.Decoder, key string) (err error) {
	var words *string
	var at *moment
	var list *[]string
	known := ""
	switch len(key) {
	case 4:
		switch key[0] {
		case 'u':
			known, words = "uuid", &x.uuid
		case 'n':
			known, words = "name", &x.name
		default:
			known, words = "fact", &x.text
		}
	case 7:
		known, words = "summary", &x.text
	case 8:
		switch key[0] {
		case 'v':
			known, at = "valid_at", &x.validAt
		case 'g':
			known, words = "group_id", &x.group
		default:
			known, list = "episodes", &x.episodes
		}
	case 10:
		switch key[0] {
		case 'i':
			known, at = "invalid_at", &x.invalidAt
		case 'c':
			known, at = "created_at", &x.createdAt
		default:
			known, at = "expired_at", &x.expiredAt
		}
	case 12:
		known, list = "entity_edges", &x.facts
	default:
		return d.Skip()
	}
	if !same(key, known) {
		return d.Skip()
	}
	if list != nil {
		*list, err = texts(d)
		return err
	}
	s := ""
	if d.Next() == jsontext.Null {
		err = d.Null()
	} else {
		s, err = d.Str()
	}
	if at != nil {
		*at = momentOf(s)
	} else {
		*words = s
	}
	return err
}

// same is a == b, by eight bytes at a time.
func same(a, b string) bool {
	n := len(a)
	if n != len(b) || n < 8 {
		return a == b
	}
	for i := 0; i < n-8; i += 8 {
		if eight(a, i) != eight(b, i) {
			return false
		}
	}
	return eight(a, n-8) == eight(b, n-8)
}

// superseded: Graphiti has closed the fact, by event time or by the clock.
func (x *item) superseded() bool { return x.invalidAt.given || x.expiredAt.given }

// someItems is room for as many items as a search usually finds.
const someItems = 20

// next makes room for one more item and returns it.
func next(list []item) ([]item, *item) {
	n := len(list)
	if n == cap(list) {
		list = append(make([]item, 0, max(2*n, someItems)), list...)
	}
	list = list[:n+1]
	return list, &list[n]
}

// items reads a list of items.
func items(d *jsontext.Decoder) (list []item, err error) {
	elements, err := d.ArrIter()
	if err != nil {
		return nil, err
	}
	for elements.Next() {
		var x *item
		list, x = next(list)
		fields, err := d.ObjIter()
		if err != nil {
			return list, err
		}
		for fields.Next() {
			key := fields.Key()
			if err := x.decode(d, unsafe.String(unsafe.SliceData(key), len(key))); err != nil { // Obj would make a string of every key
				return list, err
			}
		}
		if err := fields.Err(); err != nil {
			return list, err
		}
	}
	return list, elements.Err()
}

// itemsIn reads {"facts": [...]}, {"edges": [...]}, {"nodes": [...]} or {"episodes": [...]}: an answer without that key is not one of a search.
func itemsIn(route, name string, body []byte) ([]item, error) {
	found, _, err := readItems(route, name, body)
	return found, err
}

// readItems is itemsIn that also tells whether the answer has a key "error".
func readItems(route, name string, body []byte) (found []item, failed bool, err error) {
	seen := false
	err = fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case name:
			seen = true
			found, err = items(d)
			return err
		case "error":
			failed = true
		}
		return d.Skip()
	})
	if err == nil && !seen {
		err = unusable(route, "one without "+name, body)
	}
	return found, failed, err
}

// ours fails closed when one of the items is of another group.
func ours(route, gid string, list []item) error {
	for i := range list {
		if !same(list[i].group, gid) {
			return foreign(route, list[i].group)
		}
	}
	return nil
}

// evidence writes what an item says of itself, without its place, into a zero e.
func (x *item) evidence(e *abi.Evidence, kind string) {
	e.NativeID, e.NativeType, e.Text, e.TimeBasis = x.uuid, kind, x.text, abi.TimeIngest
	e.CreatedAt, e.ValidAt, e.InvalidAt, e.ExpiredAt = x.createdAt.text, x.validAt.text, x.invalidAt.text, x.expiredAt.text
}

// Whether a fact was superseded, for all evidence.
var superseded, current = true, false

// factEvidence is evidence with what only facts have.
func (x *item) factEvidence(e *abi.Evidence) {
	x.evidence(e, "fact")
	e.Superseded = &current
	if x.superseded() {
		e.Superseded = &superseded
	}
	if e.ValidAt != "" {
		e.TimeBasis = abi.TimeEvent
	}
}
