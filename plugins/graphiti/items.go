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

func (x *item) decode(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "uuid":
		x.uuid, err = text(d)
	case "group_id":
		x.group, err = text(d)
	case "name":
		x.name, err = text(d)
	case "fact", "summary":
		x.text, err = text(d)
	case "valid_at":
		x.validAt, err = readMoment(d)
	case "invalid_at":
		x.invalidAt, err = readMoment(d)
	case "created_at":
		x.createdAt, err = readMoment(d)
	case "expired_at":
		x.expiredAt, err = readMoment(d)
	case "episodes":
		x.episodes, err = texts(d)
	case "entity_edges":
		x.facts, err = texts(d)
	default:
		err = d.Skip()
	}
	return err
}

// superseded: Graphiti has closed the fact, by event time or by the clock.
func (x *item) superseded() bool { return x.invalidAt.given || x.expiredAt.given }

// items reads a list of items.
func items(d *jsontext.Decoder) (list []item, err error) {
	err = d.Arr(func(d *jsontext.Decoder) error {
		list = append(list, item{})
		x := &list[len(list)-1]
		fields, err := d.ObjIter()
		if err != nil {
			return err
		}
		for fields.Next() {
			key := fields.Key()
			if err := x.decode(d, unsafe.String(unsafe.SliceData(key), len(key))); err != nil { // Obj would make a string of every key
				return err
			}
		}
		return fields.Err()
	})
	return list, err
}

// itemsIn reads, from JSON that is known to be valid, {"facts": [...]}, {"edges": [...]}, {"nodes": [...]} or {"episodes": [...]}: an answer without that key is not one of a search.
func itemsIn(route, name string, body []byte) ([]item, error) {
	var found []item
	seen := false
	err := walk(route, body, func(d *jsontext.Decoder, key string) (err error) {
		if key != name {
			return d.Skip()
		}
		seen = true
		found, err = items(d)
		return err
	})
	if err == nil && !seen {
		err = unusable(route, "one without "+name, body)
	}
	return found, err
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

// evidence is what an item says of itself, without its place.
func (x *item) evidence(kind string) abi.Evidence {
	return abi.Evidence{NativeID: x.uuid, NativeType: kind, Text: x.text, CreatedAt: x.createdAt.text, ValidAt: x.validAt.text,
		InvalidAt: x.invalidAt.text, ExpiredAt: x.expiredAt.text, TimeBasis: abi.TimeIngest}
}

// factEvidence is evidence with what only facts have.
func (x *item) factEvidence() abi.Evidence {
	e := x.evidence("fact")
	superseded := x.superseded()
	e.Superseded = &superseded
	if e.ValidAt != "" {
		e.TimeBasis = abi.TimeEvent
	}
	return e
}
