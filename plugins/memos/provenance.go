package main

import (
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

const (
	// provenanceLimit is the default page size.
	provenanceLimit = 50
	// maxCovered is the maximum number of replaced memories that are looked up.
	maxCovered = 16
)

// provenance reports where memory came from: the memories of an event, one memory with those that it replaced and those
// that replaced it, or the memories ingested between two times.
//
// Errors: not_found for an unknown id, and for one of another scope.
func provenance(b *backend, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	p := &origin{backend: b, out: &abi.Provenance{Items: []abi.ProvenanceItem{},
		Trace: b.trace("POST /product/get_memory")}}
	switch {
	case r.NativeID != "":
		return p.out, p.ofMemory(r.NativeID)
	case r.EventID != "":
		return p.out, p.ofEvent(r)
	}
	return p.out, p.between(r)
}

// origin collects a provenance answer.
type origin struct {
	*backend
	out  *abi.Provenance
	seen []string
}

// add adds a memory once: feedback writes duplicates.
func (p *origin) add(m *item) {
	if !slices.Contains(p.seen, m.id) {
		p.seen = append(p.seen, m.id)
		p.out.Items = append(p.out.Items, abi.ProvenanceItem{Evidence: m.evidence(len(p.seen), false),
			Native: withoutVector(m.native.Raw())})
	}
}

// withoutVector removes metadata.embedding from a memory: neo4j-community includes the whole vector, in POST get_memory
// only.
func withoutVector(memory abi.Raw) abi.Raw {
	var all wire.Object
	metadata := wire.Object{}
	for _, f := range wire.Members(memory) {
		all = append(all, f.Name, f.Value)
		if f.Name != "metadata" || wire.Kind(f.Value) != wirejson.Object {
			continue
		}
		for _, f := range wire.Members(f.Value) {
			if f.Name != "embedding" {
				metadata = append(metadata, f.Name, f.Value)
			}
		}
		all[len(all)-1] = metadata
	}
	return all.JSON()
}

// pageOf adds one page of the cube and sets the cursor to the number of the next page. For an event it adds only the
// event's memories.
func (p *origin) pageOf(within filter, r *abi.ProvenanceRequest, event string) error {
	number, size := int64(1), r.Limit
	if size == 0 {
		size = provenanceLimit
	}
	size = min(size, inventorySize)
	if r.Cursor != "" {
		var err error
		if number, err = strconv.ParseInt(r.Cursor, 10, 32); err != nil || number < 1 {
			return abi.NewError(abi.CodeInvalidArgument, "cursor: is none that provenance gave")
		}
	}
	groups, _, err := p.list(listing{cube: p.cube, filter: within, page: number, size: size})
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.total > number*size {
			p.out.NextCursor = sdk.Itoa(number + 1)
		}
	}
	for _, m := range itemsOf(groups) {
		if event == "" || slices.Contains(m.events(), event) {
			p.add(m)
		}
	}
	return nil
}

// ofEvent lists the memories of an event by its label. After async extraction on Neo4j that label is gone, and only the
// sources name the event: then the cube is read page by page, and a page may contain none.
func (p *origin) ofEvent(r *abi.ProvenanceRequest) error {
	if r.Cursor == "" || p.keepsInfo() {
		err := p.pageOf(ofEvent(r.EventID), r, r.EventID)
		if err != nil || p.keepsInfo() || len(p.out.Items) > 0 {
			return err
		}
	}
	p.out.Trace.Warnings = append(p.out.Trace.Warnings,
		"provenance_scan: async extraction dropped the event's label; its memories are found by "+
			"their sources, page by page")
	return p.pageOf(filter{}, r, r.EventID)
}

// between lists what the server ingested between two times. Event times are not indexed.
func (p *origin) between(r *abi.ProvenanceRequest) error {
	from, _ := abi.ParseTime(r.From)
	to, _ := abi.ParseTime(r.To)
	p.out.Trace.TimeBasis = abi.TimeIngest
	p.out.Trace.Warnings = append(p.out.Trace.Warnings,
		"ingest_time: MemOS indexes only when it took a memory in, by its own clock, "+
			"which is UTC only with TZ=UTC")
	return p.pageOf(filter{conds: []cond{{key: "created_at", op: "gte", value: sdk.Text(utc(from))},
		{key: "created_at", op: "lte", value: sdk.Text(utc(to))}}}, r, "")
}

// ofMemory returns a memory, those that it covers, and those that cover it. GET /product/get_memory/{id} ignores cubes,
// so the owner is checked first.
func (p *origin) ofMemory(id string) error {
	if err := p.checkOwned(id); err != nil {
		return err
	}
	m, err := p.byID(id)
	if err != nil {
		return err
	}
	p.add(m)
	for _, old := range m.covered[:min(len(m.covered), maxCovered)] {
		if p.checkOwned(old) != nil {
			continue // deleted, or never in this scope
		}
		before, err := p.byID(old)
		if err != nil {
			return err
		}
		before.status = "archived"
		p.add(before)
	}
	if m.status != "archived" {
		return nil
	}
	groups, _, err := p.list(listing{cube: p.cube, filter: filter{conds: []cond{is("covered_history", id)}}, page: 1,
		size: provenanceLimit})
	for _, m := range itemsOf(groups) {
		p.add(m)
	}
	return err
}

// groupOf returns the group in which a type of memory is listed.
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

// byID returns one memory of the scope.
func (b *backend) byID(id string) (*item, error) {
	a, err := b.send(abi.HTTPRequest{Route: "memory_by_id", Params: map[string]string{"memory_id": id},
		Headers: b.headers}, nil)
	if err != nil {
		return nil, err
	}
	if wire.Kind(a.data) != wirejson.Object {
		return nil, failure(abi.CodeNotFound, "memory_by_id", 200, "MemOS has no memory "+strconv.Quote(id), a.body)
	}
	m := readItem(a.data)
	if m.userID != "" && m.userID != b.cube {
		return nil, breach("memory_by_id", a, b.cube, m.userID)
	}
	m.group = groupOf(m.kind)
	return m, nil
}

// checkOwned checks that every id is a memory of the scope's cube.
//
// Errors: not_found, both for an unknown id and for another scope's, so that the answer does not reveal which.
func (b *backend) checkOwned(ids ...string) error {
	owners, err := b.owners(ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if owners[id] != b.cube {
			return abi.NewError(abi.CodeNotFound, "native_id: this scope has no memory "+strconv.Quote(id)).
				WithReason("memory")
		}
	}
	return nil
}

// owners requests the cube of each id; an unknown id has none.
func (b *backend) owners(ids []string) (map[string]string, error) {
	a, err := b.post("owners", wire.Object{"memory_ids", ids})
	if err != nil {
		return nil, err
	}
	if wire.Kind(a.data) != wirejson.Object {
		return nil, unusable("owners", a, "data is no object of owners")
	}
	owners := map[string]string{}
	for _, m := range wire.Members(a.data) {
		owners[m.Name] = wire.Text(m.Value)
	}
	return owners, nil
}
