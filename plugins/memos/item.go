package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// groupNames are the names of the groups in search and get_memory, in the order in which a context shows them.
var groupNames = []string{"text_mem", "pref_mem", "tool_mem", "skill_mem"}

// group is one list of a cube's memories.
type group struct {
	name  string
	cube  string
	items []*item
	// total is total_nodes; -1 if the answer does not contain it (text_mem of search).
	total int64
	kind  wirejson.Type // of memories; it must be a list
}

// item is one memory: {id, memory, metadata}.
type item struct {
	id, memory string
	// group is the name of the list that contains it, and pointer its JSON Pointer in the answer:
	// /data/text_mem/0/memories/3.
	group, pointer string

	kind, userID, sessionID, status  string
	createdAt, updatedAt, vectorSync string
	relativity                       *float64
	version                          float64 // some stores write it with a decimal point
	tags, covered                    []string
	sources                          []*source
	// event and eventTime are labels that memhost sent.
	event, eventTime string
	// native is the unchanged memory.
	native wire.Element
}

// groupReader reads the groups of search or get_memory.
type groupReader struct {
	lists  [4][]*group // by index in groupNames
	kinds  [4]wirejson.Type
	broken bool
}

// fields returns the places of the members of data.
func (r *groupReader) fields() (places wire.Fields) {
	for i, name := range groupNames {
		places = append(places, name, wire.Typed{Type: &r.kinds[i], Place: wire.Each(func(e wire.Element) wire.Fields {
			if e.Kind() != wirejson.Object {
				r.broken = true
				return nil
			}
			g := &group{name: name, total: -1}
			r.lists[i] = append(r.lists[i], g)
			return g.fields("/data/"+name+"/"+sdk.Itoa(e.Index)+"/memories/", &r.broken)
		})})
	}
	return places
}

// groups returns the groups that were read, in the order of groupNames.
//
// Errors: backend if data has another form, isolation_breach for an item of a cube other than those given; if cube is
// empty, any cube is accepted. others are further accepted cubes, of any user.
func (r *groupReader) groups(route string, a *answer, cube string, others ...string) ([]*group, error) {
	groups := slices.Concat(r.lists[:]...)
	for _, kind := range r.kinds {
		r.broken = r.broken || kind != wirejson.Invalid && kind != wirejson.Array
	}
	for _, g := range groups {
		r.broken = r.broken || g.kind != wirejson.Array
	}
	if r.broken || len(groups) == 0 && wire.Kind(wire.At(a.body, "data")) != wirejson.Object {
		return nil, unusable(route, a, "data is no object of groups")
	}
	for _, m := range itemsOf(groups) {
		m.sources = unpack(m.sources)
	}
	if cube == "" {
		return groups, nil
	}
	for _, g := range groups {
		if slices.Contains(others, g.cube) {
			continue
		}
		if g.cube != cube && (g.cube != "" || len(g.items) > 0) {
			return nil, breach(route, a, cube, g.cube)
		}
		for _, m := range g.items {
			if m.userID != "" && m.userID != cube {
				return nil, breach(route, a, cube, m.userID)
			}
		}
	}
	return groups, nil
}

// fields returns the places of a group's members. pointer is the JSON Pointer to its items, up to their number. broken
// is set for an invalid item.
func (g *group) fields(pointer string, broken *bool) wire.Fields {
	return wire.Fields{"cube_id", &g.cube, "total_nodes", &g.total,
		"memories", wire.Typed{Type: &g.kind, Place: wire.Each(func(e wire.Element) wire.Fields {
			if e.Kind() != wirejson.Object {
				*broken = true
				return nil
			}
			m := &item{group: g.name, pointer: pointer + sdk.Itoa(e.Index), native: e}
			g.items = append(g.items, m)
			return m.fields()
		})}}
}

// fields returns the places of a memory's members. Values of unexpected types are left out. Labels are at the top of
// metadata on Neo4j, under metadata.info elsewhere.
func (m *item) fields() wire.Fields {
	return wire.Fields{"id", &m.id, "memory", &m.memory, "metadata", wire.Fields{"memory_type", &m.kind,
		"user_id", &m.userID, "session_id", &m.sessionID, "status", &m.status, "created_at", &m.createdAt,
		"updated_at", &m.updatedAt, "vector_sync", &m.vectorSync, "relativity", &m.relativity, "version", &m.version,
		"tags", &m.tags, "covered_history", &m.covered, "sources", sourcesInto(&m.sources), "mh_event_id", &m.event,
		"mh_event_time", &m.eventTime, "info", wire.Fields{"mh_event_id", &m.event, "mh_event_time", &m.eventTime}}}
}

// readItem reads one memory.
func readItem(native abi.Raw) *item {
	m := &item{native: wire.ElementOf(native)}
	wire.Pick(native, m.fields()...)
	m.sources = unpack(m.sources)
	return m
}

// label returns a field that memhost sent, nil if there is none.
func (m *item) label(key string) abi.Raw {
	if value := wire.At(m.native.Raw(), "metadata", "info", key); value != nil {
		return value
	}
	return wire.At(m.native.Raw(), "metadata", key)
}

// raw reports whether the item is a raw window that no LLM has processed: permanently in sync/fast, in async until its
// extraction is done.
func (m *item) raw() bool { return slices.Contains(m.tags, "mode:fast") }

// fallback reports whether the item is a raw window that remained because the LLM failed: it has no tag, and its text
// begins as a window's, "user: [".
func (m *item) fallback() bool { return len(m.tags) == 0 && windowText(m.memory) }

// windowText reports whether a memory's text is a raw window: role, blank, time in brackets
// (mem_reader/multi_modal_struct.py).
func windowText(text string) bool {
	role, rest, found := strings.Cut(text, ": ")
	return found && strings.HasPrefix(rest, "[") && (role == "user" || role == "assistant" || role == "tool")
}

// events returns the ids of a memory's events: from its sources, and from the label if it is kept.
func (m *item) events() (ids []string) {
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, s := range m.sources {
		add(eventOf(s.messageID))
	}
	add(m.event)
	return ids
}

// evidence returns the server's data about the item.
func (m *item) evidence(rank int, scored bool) abi.Evidence {
	e := abi.Evidence{Rank: int64(rank), Group: m.group, NativeID: m.id, NativeType: m.kind, Text: m.memory,
		SourceEventIDs: m.events()}
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

// saidAt returns when the content was said: the newest time among its sources, as sent, else its event's.
func (m *item) saidAt() string {
	newest, newestTime := m.eventTime, time.Time{}
	for _, s := range m.sources {
		if at, err := abi.ParseTime(s.chatTime); err == nil && at.After(newestTime) {
			newest, newestTime = s.chatTime, at
		}
	}
	return newest
}

// listing is a request to POST /product/get_memory for a cube's memories. The list includes archived ones, but not
// deleted ones.
type listing struct {
	cube   string
	filter filter
	// page counts from 1.
	page, size int64
	// textOnly leaves preferences, tools and skills out.
	textOnly bool
}

// listTries is how often a page is requested if the list contains memories that are being deleted.
const listTries = 3

// list is one page of a cube's memories.
func (b *backend) list(l listing) (groups []*group, a *answer, err error) {
	for range listTries {
		groups, a, err = b.memories("get_memory", wire.Object{"mem_cube_id", l.cube, "filter", l.filter.value(),
			"page", l.page, "page_size", l.size,
			"include_preference", !l.textOnly, "include_tool_memory", !l.textOnly,
			"include_skill_memory", !l.textOnly}, l.cube)
		if err == nil || abi.AsError(err).Reason != reasonRace {
			break
		}
	}
	return groups, a, err
}

// count returns how many memories of the scope match.
func (b *backend) count(f filter) (int64, error) {
	groups, _, err := b.list(listing{cube: b.cube, filter: f, page: 1, size: 1})
	return total(groups), err
}

// total returns how many nodes the groups report in total.
func total(groups []*group) (sum int64) {
	for _, g := range groups {
		sum += max(g.total, int64(len(g.items)))
	}
	return sum
}

// itemsOf are the items of all groups.
func itemsOf(groups []*group) (items []*item) {
	for _, g := range groups {
		items = append(items, g.items...)
	}
	return items
}
