package main

import (
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenanceLimit is a page when the request names none.
const provenanceLimit = 50

// provenance tells where memory came from: the memories of an event, one memory with what it replaced and what replaced it, or what was taken in between two times.
//
// Errors: not_found for an id that is not of this scope, whoever else's it may be.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	p := &origin{settings: s, cube: s.cubeOf(c), out: &abi.Provenance{Items: []abi.ProvenanceItem{}, Trace: s.trace("POST /product/get_memory")}}
	switch {
	case r.NativeID != "":
		err = p.ofMemory(c, r.NativeID)
	case r.EventID != "":
		err = p.ofEvent(c, r)
	default:
		err = p.between(c, r)
	}
	return p.out, err
}

// origin collects a provenance answer.
type origin struct {
	*settings
	cube string
	out  *abi.Provenance
	seen []string
}

// add takes a memory and its text in the answer.
func (p *origin) add(g string, m *item, native jsontext.Raw) {
	if slices.Contains(p.seen, m.id) {
		return // a twin of feedback
	}
	p.seen = append(p.seen, m.id)
	p.out.Items = append(p.out.Items, abi.ProvenanceItem{Evidence: m.evidence(g, len(p.seen), false), Native: abi.Raw(withoutVector(native))})
}

// natives are the memories of an answer as they stand there, by where they stand.
func natives(a *answer) map[string]jsontext.Raw {
	found := map[string]jsontext.Raw{}
	_ = jsontext.DecodeBytes(a.dataOf()).Obj(func(d *jsontext.Decoder, name string) error {
		if d.Next() != jsontext.Array {
			return d.Skip()
		}
		at := 0
		return d.Arr(func(d *jsontext.Decoder) error {
			pointer, i := "/data/"+name+"/"+sdk.Itoa(at)+"/memories/", 0
			at++
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "memories" || d.Next() != jsontext.Array {
					return d.Skip()
				}
				return d.Arr(func(d *jsontext.Decoder) error {
					raw, err := d.Raw()
					found[pointer+sdk.Itoa(i)] = raw
					i++
					return err
				})
			})
		})
	})
	return found
}

// withoutVector takes metadata.embedding out of a memory: neo4j-community leaves the whole vector there, in POST get_memory alone.
func withoutVector(raw jsontext.Raw) jsontext.Raw {
	return jsontext.Raw(object(func(e *jsontext.Encoder) {
		_ = jsontext.DecodeBytes(raw).Obj(func(d *jsontext.Decoder, key string) error {
			e.FieldStart(key)
			if key != "metadata" || d.Next() != jsontext.Object {
				return copyRaw(d, e)
			}
			e.ObjStart()
			err := d.Obj(func(d *jsontext.Decoder, key string) error {
				if key == "embedding" {
					return d.Skip()
				}
				e.FieldStart(key)
				return copyRaw(d, e)
			})
			e.ObjEnd()
			return err
		})
	}))
}

func copyRaw(d *jsontext.Decoder, e *jsontext.Encoder) error {
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	e.Raw(raw)
	return nil
}

// page reads a cursor, the page that comes next, and the size of a page.
func page(r *abi.ProvenanceRequest) (number, size int64, err error) {
	if size = r.Limit; size == 0 {
		size = provenanceLimit
	}
	if r.Cursor == "" {
		return 1, min(size, inventorySize), nil
	}
	number, err = strconv.ParseInt(r.Cursor, 10, 32)
	if err != nil || number < 1 {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "cursor: is none that provenance gave")
	}
	return number, min(size, inventorySize), nil
}

// pageOf adds one page of the cube and sets the next cursor. Of an event only its own memories are added.
func (p *origin) pageOf(c *sdk.Call, within filter, r *abi.ProvenanceRequest, event string) error {
	number, size, err := page(r)
	if err != nil {
		return err
	}
	groups, a, err := p.list(c, listing{cube: p.cube, filter: within, page: number, size: size})
	if err != nil {
		return err
	}
	verbatim := natives(a)
	for i := range groups {
		if groups[i].total > number*size {
			p.out.NextCursor = sdk.Itoa(number + 1)
		}
		for j := range groups[i].items {
			if m := &groups[i].items[j]; event == "" || slices.Contains(m.events(), event) {
				p.add(groups[i].name, m, verbatim[groups[i].pointerOf(m)])
			}
		}
	}
	return nil
}

// ofEvent lists the memories of an event by its label. After async extraction on Neo4j that label is gone, and the event is only named in the sources: then the
// cube is read page by page, and a page may hold none.
func (p *origin) ofEvent(c *sdk.Call, r *abi.ProvenanceRequest) error {
	if r.Cursor == "" || p.keepsInfo() {
		if err := p.pageOf(c, filter{conds: []cond{is("mh_event_id", r.EventID)}}, r, r.EventID); err != nil {
			return err
		}
		if p.keepsInfo() || len(p.out.Items) > 0 {
			return nil
		}
	}
	p.out.Trace.Warnings = append(p.out.Trace.Warnings, "provenance_scan: async extraction dropped the event's label; its memories are found by their sources, page by page")
	return p.pageOf(c, filter{}, r, r.EventID)
}

// between lists what the server took in between two times. Event times are not indexed.
func (p *origin) between(c *sdk.Call, r *abi.ProvenanceRequest) error {
	from, _ := abi.ParseTime(r.From)
	to, _ := abi.ParseTime(r.To)
	p.out.Trace.TimeBasis = abi.TimeIngest
	p.out.Trace.Warnings = append(p.out.Trace.Warnings, "ingest_time: MemOS indexes only when it took a memory in, by its own clock, which is UTC only with TZ=UTC")
	return p.pageOf(c, filter{conds: []cond{{key: "created_at", op: "gte", value: sdk.Text(utc(from))},
		{key: "created_at", op: "lte", value: sdk.Text(utc(to))}}}, r, "")
}

// ofMemory gives a memory, those that it covers, and those that cover it. GET /product/get_memory/{id} knows no cubes, so the owner is asked first.
func (p *origin) ofMemory(c *sdk.Call, id string) error {
	if err := p.own(c, []string{id}); err != nil {
		return err
	}
	m, native, err := p.byID(c, id)
	if err != nil {
		return err
	}
	p.add(groupOf(m.kind), m, native)
	covered := slices.Clone(m.covered)
	if len(covered) > 16 {
		covered = covered[:16]
	}
	for _, old := range covered {
		if err := p.own(c, []string{old}); err != nil {
			continue // gone, or never of this scope
		}
		before, native, err := p.byID(c, old)
		if err != nil {
			return err
		}
		before.status = "archived"
		p.add(groupOf(before.kind), before, native)
	}
	if m.status != "archived" {
		return nil
	}
	groups, a, err := p.list(c, listing{cube: p.cube, filter: filter{conds: []cond{is("covered_history", id)}}, page: 1, size: provenanceLimit})
	if err != nil {
		return err
	}
	verbatim := natives(a)
	for i := range groups {
		for j := range groups[i].items {
			m := &groups[i].items[j]
			p.add(groups[i].name, m, verbatim[groups[i].pointerOf(m)])
		}
	}
	return nil
}

// groupOf is the group in which a type of memory is listed.
func groupOf(kind string) string {
	switch kind {
	case "PreferenceMemory":
		return "pref_mem"
	case "ToolSchemaMemory", "ToolTrajectoryMemory":
		return "tool_mem"
	case "SkillMemory":
		return "skill_mem"
	}
	return "text_mem"
}

// byID is one memory of the scope.
func (p *origin) byID(c *sdk.Call, id string) (*item, jsontext.Raw, error) {
	a, err := p.send(c, abi.HTTPRequest{Route: "memory_by_id", Params: abi.Members[string]{{Name: "memory_id", Value: id}}, Headers: p.headers}, nil)
	if err != nil {
		return nil, nil, err
	}
	if a.data == nil || a.data.Type() != jsontext.Object {
		return nil, nil, failure(abi.CodeNotFound, "memory_by_id", 200, "MemOS has no memory "+strconv.Quote(id), a.body)
	}
	m, err := readItem(a.data)
	if err != nil {
		return nil, nil, unusable("memory_by_id", a, "the memory cannot be read: "+err.Error())
	}
	if m.userID != "" && m.userID != p.cube {
		return nil, nil, breach("memory_by_id", a, p.cube, m.userID)
	}
	return &m, a.data, nil
}

// own makes sure that every id is a memory of the scope's cube.
//
// Errors: not_found, whether an id is unknown or another scope's: which of them is nobody's business here.
func (s *settings) own(c *sdk.Call, ids []string) error {
	owners, err := s.owners(c, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if owners[id] != s.cubeOf(c) {
			return abi.NewError(abi.CodeNotFound, "native_id: this scope has no memory "+strconv.Quote(id)).WithReason("memory")
		}
	}
	return nil
}

// owners asks for the cube of each id; an unknown id has none.
func (s *settings) owners(c *sdk.Call, ids []string) (map[string]string, error) {
	a, err := s.post(c, "owners", object(func(e *jsontext.Encoder) { putTexts(e, "memory_ids", ids...) }))
	if err != nil {
		return nil, err
	}
	if a.data == nil || a.data.Type() != jsontext.Object {
		return nil, unusable("owners", a, "data is no object of owners")
	}
	owners := map[string]string{}
	err = jsontext.DecodeBytes(a.data).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() != jsontext.String {
			return d.Skip()
		}
		owners[key], err = d.Str()
		return err
	})
	if err != nil {
		return nil, unusable("owners", a, "data cannot be read: "+err.Error())
	}
	return owners, nil
}
