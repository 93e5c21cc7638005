package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenanceLimit is how many items an answer has where the request names no limit.
const provenanceLimit = 50

// provenance tells where memory came from. Of a fact: its interval, the episodes that asserted it, and the one that closed it. Of an episode or a recorded
// event: the facts that it asserted and those that it closed. Of a range of time: the facts that begin to hold in it.
//
// Without Bolt an MCP server still tells a fact with the UUIDs of its episodes, and an episode's facts; the gateway tells all but which episode closed a fact, and
// ranges of time.
//
// Errors: not_found when the group has nothing of that id, whatever other groups have; unsupported for what the surface cannot tell.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	p := &origins{call: c, settings: s, gid: gid}
	limit, skip, err := page(r)
	if err != nil {
		return nil, err
	}
	switch {
	case r.NativeID != "" && !isUUID(r.NativeID):
		return nil, abi.NewError(abi.CodeNotFound, "native_id: Graphiti's ids are UUIDs")
	case s.core && !s.bolt:
		err = p.core(r)
	case r.NativeID != "" && !s.bolt && s.mcp:
		err = p.byTool(r.NativeID)
	case r.EventID != "" && !s.bolt && s.mcp:
		err = p.byListing(r.EventID)
	case !s.bolt:
		err = s.needBolt("provenance of this kind")
	case r.NativeID != "":
		err = p.byID(r.NativeID)
	case r.EventID != "":
		err = p.byEvent(r.EventID)
	default:
		err = p.byTime(r, limit+1, skip)
		skip = 0
	}
	if err != nil {
		return nil, err
	}
	return p.answer(limit, skip, r.Cursor), nil
}

// page reads limit and cursor, which counts items.
func page(r *abi.ProvenanceRequest) (limit, skip int64, err error) {
	limit = r.Limit
	if limit <= 0 || limit > 1000 {
		limit = provenanceLimit
	}
	if r.Cursor != "" {
		if skip, err = strconv.ParseInt(r.Cursor, 10, 64); err != nil || skip < 0 {
			return 0, 0, abi.NewError(abi.CodeInvalidArgument, "cursor: not one of an earlier answer")
		}
	}
	return limit, skip, nil
}

// origins collects the items of an answer.
type origins struct {
	call     *sdk.Call
	settings *settings
	gid      string
	items    []abi.ProvenanceItem
	warnings []string
}

func (p *origins) answer(limit, skip int64, cursor string) *abi.Provenance {
	a := &abi.Provenance{Trace: &abi.Trace{BackendName: p.settings.config.Provider, NativeOperation: "bolt", Warnings: p.warnings}}
	if p.settings.core && !p.settings.bolt {
		a.Trace.NativeOperation = "look-ups by id and name"
	}
	begin := min(skip, int64(len(p.items)))
	end := min(begin+limit, int64(len(p.items)))
	a.Items = p.items[begin:end]
	if end < int64(len(p.items)) {
		before, _ := strconv.ParseInt(cursor, 10, 64)
		a.NextCursor = sdk.Itoa(before + end - begin)
	}
	for i := range a.Items {
		a.Items[i].Evidence.Rank = int64(i + 1)
		a.Trace.NativeIDs = append(a.Trace.NativeIDs, a.Items[i].Evidence.NativeID)
	}
	return a
}

// rows runs a statement and makes an item of every row: native is the row as an object, evidence what set reads out of its columns.
func (p *origins) rows(route string, params []byte, kind string, set func(e *abi.Evidence, column string, d *jsontext.Decoder) error) error {
	head, rows, err := p.call.Bolt(route, params)
	if err != nil {
		return err
	}
	return sdk.EachRow(rows, func(row []byte) error {
		item := abi.ProvenanceItem{Evidence: abi.Evidence{NativeType: kind, TimeBasis: abi.TimeEvent}, Native: []byte{'{'}}
		err := sdk.EachColumn(row, func(i int, d *jsontext.Decoder) error {
			if i >= len(head.Columns) {
				return d.Skip()
			}
			value, err := d.RawAppend(nil)
			if err != nil {
				return err
			}
			if i > 0 {
				item.Native = append(item.Native, ',')
			}
			item.Native = append(append(append(item.Native, sdk.Text(head.Columns[i])...), ':'), value...)
			return set(&item.Evidence, head.Columns[i], jsontext.DecodeBytes(value))
		})
		if err != nil {
			return unusable(route, err.Error(), row)
		}
		item.Native = append(item.Native, '}')
		p.items = append(p.items, item)
		return nil
	})
}

// setFact reads the columns of a statement about facts.
func setFact(e *abi.Evidence, column string, d *jsontext.Decoder) (err error) {
	at := func(field *string) error {
		if d.Next() == jsontext.Null {
			return nil
		}
		ms, err := d.Int64()
		*field = stampMS(ms)
		return err
	}
	switch column {
	case "fact":
		e.NativeID, err = text(d)
	case "text":
		e.Text, err = text(d)
	case "valid_ms":
		err = at(&e.ValidAt)
	case "invalid_ms":
		if err = at(&e.InvalidAt); e.InvalidAt != "" {
			e.Superseded = sdk.Ptr(true)
		}
	case "expired_ms":
		if err = at(&e.ExpiredAt); e.ExpiredAt != "" {
			e.Superseded = sdk.Ptr(true)
		}
	case "created_ms":
		err = at(&e.CreatedAt)
	case "events":
		e.SourceEventIDs, err = texts(d)
	case "asserted":
		var asserted bool
		if asserted, err = d.Bool(); asserted {
			e.Group = "asserted"
		} else {
			e.Group = "closed"
		}
	}
	return err
}

// setEpisode reads the columns of a statement about episodes.
func setEpisode(group string) func(e *abi.Evidence, column string, d *jsontext.Decoder) error {
	return func(e *abi.Evidence, column string, d *jsontext.Decoder) (err error) {
		e.Group = group
		switch column {
		case "episode":
			e.NativeID, err = text(d)
		case "name":
			var name string
			if name, err = text(d); name != "" {
				e.SourceEventIDs = []string{name}
			}
		case "event_ms":
			if d.Next() != jsontext.Null {
				var ms int64
				ms, err = d.Int64()
				e.ValidAt = stampMS(ms)
			}
		case "text":
			e.Text, err = text(d)
		}
		return err
	}
}

func (p *origins) byID(uuid string) error {
	one := inGroup(p.gid).list("facts", []string{uuid}).json()
	if err := p.rows("bolt_facts", one, "fact", setFact); err != nil {
		return err
	}
	if len(p.items) > 0 {
		if err := p.rows("bolt_sources", one, "episode", setEpisode("asserted by")); err != nil {
			return err
		}
		return p.rows("bolt_closed_by", inGroup(p.gid).text("fact", uuid).json(), "episode", setEpisode("closed by"))
	}
	exists, mine, err := boltOwned(p.call, "bolt_owner_episode", p.gid, uuid)
	if err != nil {
		return err
	}
	if !exists || !mine {
		return abi.NewError(abi.CodeNotFound, "native_id: the scope has neither a fact nor an episode with this id")
	}
	return p.byEpisode(uuid)
}

func (p *origins) byEpisode(uuid string) error {
	return p.rows("bolt_episode_facts", inGroup(p.gid).text("episode", uuid).json(), "fact", setFact)
}

func (p *origins) byEvent(id string) error {
	found, err := boltNamed(p.call, p.gid, []string{id})
	if err != nil {
		return err
	}
	if found[id].copies == 0 {
		return p.noEvent()
	}
	for _, uuid := range found[id].uuids {
		if err := p.byEpisode(uuid); err != nil {
			return err
		}
	}
	return nil
}

func (p *origins) byTime(r *abi.ProvenanceRequest, limit, skip int64) error {
	_, from, err := utc("from", r.From)
	if err != nil {
		return err
	}
	_, to, err := utc("to", r.To)
	if err != nil {
		return err
	}
	return p.rows("bolt_facts_between", inGroup(p.gid).number("lo", from).number("hi", to).number("skip", skip).number("limit", limit).json(), "fact", setFact)
}

// byTool asks an MCP server for a fact, then for an episode. Its tools know no groups: what is another group's is not found.
func (p *origins) byTool(uuid string) error {
	const edge = "mcp_fact"
	absent := abi.NewError(abi.CodeNotFound, "native_id: the scope has neither a fact nor an episode with this id")
	body, err := p.settings.tool(p.call, edge, "get_entity_edge", append(append([]byte(`{"uuid":`), sdk.Text(uuid)...), '}'))
	switch {
	case err == nil:
		var x item
		if err := fields(edge, body, x.decode); err != nil {
			return err
		}
		if x.group != p.gid {
			return absent
		}
		x.factEvidence(p.item(body))
		return nil
	case abi.CodeOf(err) != abi.CodeNotFound:
		return err
	}
	if err = p.byEntities(uuid); err == nil && len(p.items) == 0 {
		err = absent
	}
	return err
}

// byListing looks for an event's episode among all of the scope: its name is the only handle, and no tool looks one up.
func (p *origins) byListing(id string) error {
	most, err := p.settings.episodesSent(p.call, nil)
	if err != nil {
		return err
	}
	episodes, err := p.settings.mcpEpisodes(p.call, p.gid, most)
	if err != nil {
		return err
	}
	found := false
	for i := range episodes {
		if episodes[i].name == id {
			found = true
			if err := p.byEntities(episodes[i].uuid); err != nil {
				return err
			}
		}
	}
	if !found {
		return p.noEvent()
	}
	return nil
}

func (p *origins) noEvent() error {
	return abi.NewError(abi.CodeNotFound, "event_id: no episode of the scope has this name").WithHint("it may be queued still: ask readiness")
}

// byEntities asks an MCP server for the facts of an episode. Those of another group are another's.
func (p *origins) byEntities(uuid string) error {
	const entities = "mcp_episode_entities"
	body, err := p.settings.tool(p.call, entities, "get_episode_entities", append(append([]byte(`{"episode_uuids":`), quoted(uuid)...), '}'))
	if err != nil {
		return err
	}
	return p.each(entities, "edges", body, func(x *item, e *abi.Evidence, _ *jsontext.Decoder) error {
		x.factEvidence(e)
		return nil
	})
}

// each makes an item of every object in a list of an answer that is the scope's.
func (p *origins) each(route, kind string, body []byte, evidence func(x *item, e *abi.Evidence, d *jsontext.Decoder) error) error {
	return fields(route, body, func(d *jsontext.Decoder, key string) error {
		if key != kind {
			return d.Skip()
		}
		return d.Arr(func(d *jsontext.Decoder) error {
			native, err := d.RawAppend(nil)
			if err != nil {
				return err
			}
			var x item
			if err := jsontext.DecodeBytes(native).Obj(x.decode); err != nil || x.group != p.gid {
				return err
			}
			return evidence(&x, p.item(abi.Raw(native)), jsontext.DecodeBytes(native))
		})
	})
}

// item adds one, whose evidence is to be written.
func (p *origins) item(native []byte) *abi.Evidence {
	p.items = append(p.items, abi.ProvenanceItem{Native: native})
	return &p.items[len(p.items)-1].Evidence
}
