package main

import (
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"

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

// decode reads a field. Keys are told apart by their lengths and first letters, all at once: there are ten, and most of what is read is keys.
func (x *item) decode(d *jsontext.Decoder, key string) (err error) {
	var into *string
	var at *moment
	switch len(key) {
	case 4:
		switch words.HalfAt(key, 0) {
		case words.HalfAt("uuid", 0):
			into = &x.uuid
		case words.HalfAt("name", 0):
			into = &x.name
		case words.HalfAt("fact", 0):
			into = &x.text
		}
	case 7:
		if key == "summary" {
			into = &x.text
		}
	case 8:
		switch words.At(key, 0) {
		case words.At("valid_at", 0):
			at = &x.validAt
		case words.At("group_id", 0):
			into = &x.group
		case words.At("episodes", 0):
			x.episodes, err = texts(d)
			return err
		}
	case 10:
		if key[8] != 'a' || key[9] != 't' {
			break
		}
		switch words.At(key, 0) {
		case words.At("invalid_", 0):
			at = &x.invalidAt
		case words.At("created_", 0):
			at = &x.createdAt
		case words.At("expired_", 0):
			at = &x.expiredAt
		}
	case 12:
		if key == "entity_edges" {
			x.facts, err = texts(d)
			return err
		}
	}
	if into == nil && at == nil {
		return d.Skip()
	}
	s, null := "", d.Next() == jsontext.Null
	if null {
		err = d.Null()
	} else {
		s, err = d.Str()
	}
	switch {
	case into != nil:
		*into = s
	case null:
		*at = moment{}
	default:
		*at = momentOf(s)
	}
	return err
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

// read reads an item into a zero x.
func (x *item) read(d *jsontext.Decoder) error {
	fields, err := d.ObjIter()
	if err != nil {
		return err
	}
	for fields.Next() {
		if err := x.decode(d, fields.Name()); err != nil {
			return err
		}
	}
	return fields.Err()
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
		if err := x.read(d); err != nil {
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
		if list[i].group != gid {
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
