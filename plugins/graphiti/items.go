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

// decode reads a field. Keys are told apart by their lengths and first letters, which costs one comparison instead of ten.
func (x *item) decode(d *jsontext.Decoder, key string) (err error) {
	switch len(key) {
	case 4:
		switch key {
		case "uuid":
			x.uuid, err = text(d)
			return err
		case "name":
			x.name, err = text(d)
			return err
		case "fact":
			x.text, err = text(d)
			return err
		}
	case 7:
		if key == "summary" {
			x.text, err = text(d)
			return err
		}
	case 8:
		switch key {
		case "valid_at":
			return x.validAt.read(d)
		case "group_id":
			x.group, err = text(d)
			return err
		case "episodes":
			x.episodes, err = texts(d)
			return err
		}
	case 10:
		switch key {
		case "invalid_at":
			return x.invalidAt.read(d)
		case "created_at":
			return x.createdAt.read(d)
		case "expired_at":
			return x.expiredAt.read(d)
		}
	case 12:
		if key == "entity_edges" {
			x.facts, err = texts(d)
			return err
		}
	}
	return d.Skip()
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

// readItems is itemsIn that also tells whether the answer has a key "error". What is not JSON, or nests too deep, is refused by reading it: to look for that before
// would be to go through all of it twice.
func readItems(route, name string, body []byte) (found []item, failed bool, err error) {
	d := jsontext.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != jsontext.Object {
		return nil, false, unreadable(route, "no JSON object", body)
	}
	seen := false
	err = d.Obj(func(d *jsontext.Decoder, key string) (err error) {
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
	switch {
	case err != nil:
		return found, failed, unreadable(route, err.Error(), body)
	case !d.AtEnd():
		return nil, failed, unreadable(route, "", body)
	case !seen:
		return nil, failed, unusable(route, "one without "+name, body)
	}
	return found, failed, nil
}

// unreadable is the error of an answer in which something stands that was not expected: that it is no JSON goes before.
//
//go:noinline
func unreadable(route, what string, body []byte) error {
	if !abi.ValidJSON(body) {
		what = "no JSON that can be read"
	}
	return unusable(route, what, body)
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
