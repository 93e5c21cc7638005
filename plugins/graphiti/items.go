package main

import (
	"github.com/go-faster/jx"

	"github.com/memhost/memhost/abi"
)

// item is a fact (a RELATES_TO edge), an entity or an episode, as a surface tells it; each has some of the fields. Of facts, REST 0.29.3 has neither
// episodes nor node ids, and no REST version has group_id. MCP tells no valid_at of an episode.
type item struct {
	uuid, group, name string
	// text is a fact's text, an entity's summary.
	text                                     string
	validAt, invalidAt, createdAt, expiredAt string
	// episodes are the UUIDs of the episodes that asserted a fact.
	episodes []string
}

func (x *item) decode(d *jx.Decoder, key string) (err error) {
	var into *string
	switch key {
	case "uuid":
		into = &x.uuid
	case "group_id":
		into = &x.group
	case "name":
		into = &x.name
	case "fact", "summary":
		into = &x.text
	case "valid_at":
		into = &x.validAt
	case "invalid_at":
		into = &x.invalidAt
	case "created_at":
		into = &x.createdAt
	case "expired_at":
		into = &x.expiredAt
	case "episodes":
		x.episodes, err = texts(d)
		return err
	default:
		return d.Skip()
	}
	*into, err = text(d)
	return err
}

// superseded: Graphiti has closed the fact, by event time or by the clock.
func (x *item) superseded() bool { return x.invalidAt != "" || x.expiredAt != "" }

// items reads a list of items.
func items(d *jx.Decoder) (list []item, err error) {
	err = d.Arr(func(d *jx.Decoder) error {
		list = append(list, item{})
		return d.Obj(list[len(list)-1].decode)
	})
	return list, err
}

// itemsIn reads {"facts": [...]}, {"nodes": [...]} or {"episodes": [...]}: an answer without that key is not one of a search.
func itemsIn(route, name string, body []byte) ([]item, error) {
	var found []item
	seen := false
	err := fields(route, body, func(d *jx.Decoder, key string) (err error) {
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
	return abi.Evidence{NativeID: x.uuid, NativeType: kind, Text: x.text, CreatedAt: stamp(x.createdAt), ValidAt: stamp(x.validAt),
		InvalidAt: stamp(x.invalidAt), ExpiredAt: stamp(x.expiredAt), TimeBasis: abi.TimeIngest}
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
