package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// groupNames are the memories' groups in search and get_memory, in the order in which a context shows them.
var groupNames = []string{"text_mem", "pref_mem", "tool_mem", "skill_mem"}

// group is one list of a cube's memories.
type group struct {
	name  string
	cube  string
	items []item
	// total is total_nodes; -1 where the answer does not say (text_mem of search).
	total int64
}

// item is one memory: {id, memory, metadata}.
type item struct {
	id, memory string
	// pointer is where it stands in the answer, from /data on.
	pointer string

	kind, userID, sessionID, status  string
	createdAt, updatedAt, vectorSync string
	relativity                       *float64
	version                          int64
	tags, covered                    []string
	sources                          []source
	// labels are the fields that memhost sent: at the top of metadata on Neo4j, under metadata.info elsewhere.
	labels map[string]jsontext.Raw
}

// readGroups decodes the groups of search or get_memory and refuses an item of another cube.
//
// Errors: backend when data is no such thing, isolation_breach.
func readGroups(route string, a *answer, cube string) ([]group, error) {
	groups, err := parseGroups(route, a)
	if err != nil {
		return nil, err
	}
	for i := range groups {
		g := &groups[i]
		if g.cube != cube && (g.cube != "" || len(g.items) > 0) {
			return nil, breach(route, a, cube, g.cube)
		}
		for j := range g.items {
			if owner := g.items[j].userID; owner != "" && owner != cube {
				return nil, breach(route, a, cube, owner)
			}
		}
	}
	return groups, nil
}

// parseGroups is readGroups for an answer that was looked at before.
func parseGroups(route string, a *answer) ([]group, error) {
	found := map[string][]group{}
	if a.data == nil || jsontext.DecodeBytes(a.data).Next() != jsontext.Object {
		return nil, unusable(route, a, "data is no object of groups")
	}
	err := jsontext.DecodeBytes(a.data).Obj(func(d *jsontext.Decoder, key string) error {
		if !slices.Contains(groupNames, key) || d.Next() != jsontext.Array {
			return d.Skip()
		}
		at := 0
		return d.Arr(func(d *jsontext.Decoder) error {
			g, err := readGroup(d, key, "/data/"+key+"/"+strconv.Itoa(at))
			at++
			found[key] = append(found[key], g)
			return err
		})
	})
	if err != nil {
		return nil, unusable(route, a, "a group cannot be read: "+err.Error())
	}
	var groups []group
	for _, name := range groupNames {
		groups = append(groups, found[name]...)
	}
	return groups, nil
}

func readGroup(d *jsontext.Decoder, name, pointer string) (group, error) {
	g := group{name: name, total: -1}
	err := d.Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch {
		case key == "cube_id":
			return readText(d, &g.cube)
		case key == "total_nodes" && d.Next() == jsontext.Number:
			g.total, err = d.Int64()
			return err
		case key == "memories" && d.Next() == jsontext.Array:
			at := 0
			return d.Arr(func(d *jsontext.Decoder) error {
				place := pointer + "/memories/" + strconv.Itoa(at)
				at++
				if d.Next() != jsontext.Object {
					return d.Skip()
				}
				m := item{pointer: place}
				err := m.read(d)
				g.items = append(g.items, m)
				return err
			})
		}
		return d.Skip()
	})
	return g, err
}

// readItem decodes one memory.
func readItem(raw jsontext.Raw) (item, error) {
	var m item
	err := m.read(jsontext.DecodeBytes(raw))
	return m, err
}

// read decodes one memory. Fields of another type than expected are left out.
func (m *item) read(d *jsontext.Decoder) error {
	return d.Obj(func(d *jsontext.Decoder, key string) error {
		switch key {
		case "id":
			return readText(d, &m.id)
		case "memory":
			return readText(d, &m.memory)
		case "metadata":
			if d.Next() == jsontext.Object {
				return d.Obj(m.readMetadata)
			}
		}
		return d.Skip()
	})
}

func (m *item) readMetadata(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "memory_type":
		return readText(d, &m.kind)
	case "user_id":
		return readText(d, &m.userID)
	case "session_id":
		return readText(d, &m.sessionID)
	case "status":
		return readText(d, &m.status)
	case "created_at":
		return readText(d, &m.createdAt)
	case "updated_at":
		return readText(d, &m.updatedAt)
	case "vector_sync":
		return readText(d, &m.vectorSync)
	case "relativity":
		if d.Next() != jsontext.Number {
			return d.Skip()
		}
		value, err := d.Float64()
		m.relativity = &value
		return err
	case "version":
		if d.Next() != jsontext.Number {
			return d.Skip()
		}
		version, err := d.Float64()
		m.version = int64(version)
		return err
	case "tags":
		m.tags, err = readTexts(d)
		return err
	case "covered_history":
		m.covered, err = readTexts(d)
		return err
	case "sources":
		m.sources, err = readSources(d)
		return err
	case "info":
		if d.Next() != jsontext.Object {
			return d.Skip()
		}
		return d.Obj(m.readLabel)
	}
	return m.readLabel(d, key)
}

// readText reads a string and skips what is none.
func readText(d *jsontext.Decoder, into *string) (err error) {
	if d.Next() != jsontext.String {
		return d.Skip()
	}
	*into, err = d.Str()
	return err
}

// readLabel keeps a field that memhost sent.
func (m *item) readLabel(d *jsontext.Decoder, key string) error {
	if !strings.HasPrefix(key, "mh_") && key != "project_id" && key != "manager_user_id" || d.Next() == jsontext.Null {
		return d.Skip()
	}
	raw, err := d.Raw()
	if m.labels == nil {
		m.labels = map[string]jsontext.Raw{}
	}
	m.labels[key] = raw
	return err
}

// readTexts reads a list of strings, or one string, as covered_history is one after feedback.
func readTexts(d *jsontext.Decoder) (list []string, err error) {
	switch d.Next() {
	case jsontext.String:
		one, err := d.Str()
		if one == "" {
			return nil, err
		}
		return []string{one}, err
	case jsontext.Array:
		err = d.Arr(func(d *jsontext.Decoder) error {
			if d.Next() != jsontext.String {
				return d.Skip()
			}
			one, err := d.Str()
			list = append(list, one)
			return err
		})
		return list, err
	}
	return nil, d.Skip()
}

// label is a text field that memhost sent, or nothing.
func (m *item) label(key string) string { return textOf(m.labels[key]) }

// textOf is a JSON string's text; of another value nothing.
func textOf(raw jsontext.Raw) string {
	if len(raw) == 0 {
		return ""
	}
	d := jsontext.DecodeBytes(raw)
	if d.Next() != jsontext.String {
		return ""
	}
	text, _ := d.Str()
	return text
}

// raw tells whether the item is a raw window that no LLM has worked on: sync/fast for good, async until its extraction is done.
func (m *item) raw() bool { return slices.Contains(m.tags, "mode:fast") }

// fallback tells whether the item is a raw window that stayed because the LLM failed: no tag, and the text begins as a window does, "user: [".
func (m *item) fallback() bool { return len(m.tags) == 0 && windowText(m.memory) }

// windowText tells whether a memory's text is a raw window: role, blank, time in brackets (mem_reader/multi_modal_struct.py).
func windowText(text string) bool {
	role, rest, found := strings.Cut(text, ": ")
	return found && strings.HasPrefix(rest, "[") && (role == "user" || role == "assistant" || role == "tool")
}

// events are the ids of the events behind a memory: by its sources, and by the label where that is kept.
func (m *item) events() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for i := range m.sources {
		add(eventOf(m.sources[i].messageID))
	}
	add(m.label("mh_event_id"))
	return ids
}

// evidence describes the item with what the server says and nothing else.
func (m *item) evidence(g string, rank int, scored bool) abi.Evidence {
	e := abi.Evidence{Rank: int64(rank), Group: g, NativeID: m.id, NativeType: m.kind, Text: m.memory, SourceEventIDs: m.events()}
	if scored {
		e.Score = m.relativity
	}
	if _, err := abi.ParseTime(m.createdAt); err == nil {
		e.CreatedAt, e.TimeBasis = m.createdAt, abi.TimeIngest
	}
	if _, err := abi.ParseTime(m.updatedAt); err == nil {
		e.UpdatedAt, e.TimeBasis = m.updatedAt, abi.TimeIngest
	}
	if m.status == "archived" || m.status == "deleted" {
		e.Superseded = sdk.Ptr(true)
	}
	return e
}

// said is when what the memory says was said: the newest time among its sources, as it was sent.
func (m *item) said() string {
	newest := ""
	for i := range m.sources {
		if t := m.sources[i].chatTime; t > newest {
			if _, err := abi.ParseTime(t); err == nil {
				newest = t
			}
		}
	}
	if newest == "" {
		newest = m.label("mh_event_time")
	}
	return newest
}

// listing asks POST /product/get_memory for a cube's memories. Archived ones are among them, deleted ones are not.
type listing struct {
	cube   string
	filter filter
	// page counts from 1.
	page, size int64
	// textOnly leaves preferences, tools and skills out.
	textOnly bool
}

func (l listing) body() []byte {
	return object(func(e *jsontext.Encoder) {
		putText(e, "mem_cube_id", l.cube)
		l.filter.put(e)
		putNumber(e, "page", l.page)
		putNumber(e, "page_size", l.size)
		putBool(e, "include_preference", !l.textOnly)
		putBool(e, "include_tool_memory", !l.textOnly)
		putBool(e, "include_skill_memory", !l.textOnly)
	})
}

// list is one page of a cube's memories.
func (s *settings) list(c *sdk.Call, l listing) ([]group, *answer, error) {
	a, err := s.post(c, "get_memory", l.body())
	if err != nil {
		return nil, nil, err
	}
	groups, err := readGroups("get_memory", a, l.cube)
	return groups, a, err
}

// total is how many nodes the groups count together.
func total(groups []group) int64 {
	sum := int64(0)
	for i := range groups {
		sum += max(groups[i].total, int64(len(groups[i].items)))
	}
	return sum
}
