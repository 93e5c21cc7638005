package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// item is a fact (a RELATES_TO edge), an entity, a community or an episode, with the fields that the surface returns.
// For facts, REST 0.29.3 returns neither episodes nor node ids, and no REST version returns the group. For episodes,
// MCP does not return valid_at.
type item struct {
	uuid, group, name string
	// text is a fact's text, or the summary of an entity or a community.
	text string
	// content is an episode's text, as JSON, and part of the answer, because an inventory reads any number of episodes.
	// about is its source_description, also as JSON.
	content, about                           wirejson.Raw
	validAt, invalidAt, createdAt, expiredAt graphTime
	// episodes are the UUIDs of the episodes that asserted a fact; facts are the UUIDs of the facts that an episode
	// asserted or closed.
	episodes, facts []string
	// score is the reranker's score, on core, if it can be assigned to this item.
	score *float64
}

func (x *item) readField(d *wirejson.Decoder, key string) (err error) {
	switch key {
	case "uuid":
		err = readInto(d, &x.uuid)
	case "group_id":
		err = readInto(d, &x.group)
	case "name":
		err = readInto(d, &x.name)
	case "fact", "summary":
		err = readInto(d, &x.text)
	case "content":
		x.content, err = d.Raw()
	case "source_description":
		x.about, err = d.Raw()
	case "valid_at":
		err = x.validAt.read(d)
	case "invalid_at":
		err = x.invalidAt.read(d)
	case "created_at":
		err = x.createdAt.read(d)
	case "expired_at":
		err = x.expiredAt.read(d)
	case "episodes":
		err = readInto(d, &x.episodes)
	case "entity_edges":
		err = readInto(d, &x.facts)
	default:
		err = d.Skip()
	}
	return err
}

func (m *graphTime) read(d *wirejson.Decoder) error {
	text := ""
	err := readInto(d, &text)
	*m = momentOf(text)
	return err
}

// readItem reads an answer, or a part of one, that is an item.
func readItem(route string, body []byte) (x item, err error) {
	d := wirejson.DecodeBytes(body).Limit(abi.MaxDepth)
	err = d.Obj(x.readField)
	if err != nil {
		err = unreadable(route, err.Error(), body)
	}
	return x, err
}

// items reads an array of items.
func items(d *wirejson.Decoder) (list []item, err error) {
	err = d.Arr(func(d *wirejson.Decoder) error {
		list = append(list, item{})
		return d.Obj(list[len(list)-1].readField)
	})
	return list, err
}

// itemsIn reads {"facts": [...]}, {"edges": [...]}, {"nodes": [...]} or {"episodes": [...]}. An answer without that key
// is not a search's.
func itemsIn(route, name string, body []byte) (found []item, err error) {
	err = answer(route, body, fields{{name, &found}}, name)
	return found, err
}

// items is itemsIn that checks the group.
func (v *scopedCall) items(route, name string, body []byte) ([]item, error) {
	found, err := itemsIn(route, name, body)
	if err != nil {
		return nil, err
	}
	return found, v.ours(route, found)
}

// ours returns an error if one of the items belongs to another group.
func (v *scopedCall) ours(route string, list []item) error {
	for i := range list {
		if list[i].group != v.group {
			return foreignItemError(route, list[i].group)
		}
	}
	return nil
}

func uuidsOf(list []item) []string {
	uuids := make([]string, len(list))
	for i := range list {
		uuids[i] = list[i].uuid
	}
	return uuids
}

// superseded reports whether Graphiti has closed the fact, by event time or by the clock.
func (x *item) superseded() bool { return x.invalidAt.isSet || x.expiredAt.isSet }

// episodeText returns an episode's text.
func (x *item) episodeText() string {
	text, _ := stringOf(abi.Raw(x.content))
	return text
}

// evidence describes an item; kind is fact, entity, community or episode.
func (x *item) evidence(kind string) abi.Evidence {
	e := abi.Evidence{NativeID: x.uuid, NativeType: kind, Text: x.text, Score: x.score, TimeBasis: abi.TimeIngest,
		CreatedAt: x.createdAt.text, ValidAt: x.validAt.text, InvalidAt: x.invalidAt.text, ExpiredAt: x.expiredAt.text}
	switch kind {
	case "fact":
		e.Superseded = sdk.Ptr(x.superseded())
		if e.ValidAt != "" {
			e.TimeBasis = abi.TimeEvent
		}
	case "episode":
		e.Text, e.SourceEventIDs, e.TimeBasis = x.episodeText(), []string{x.name}, abi.TimeEvent
	}
	return e
}
