package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// groupNames are the memories' groups in search and get_memory, in the order in which a context shows them.
var groupNames = []string{"text_mem", "pref_mem", "tool_mem", "skill_mem"}

// group is one list of a cube's memories.
type group struct {
	name string
	// rank is the name's place among groupNames.
	rank  int
	cube  string
	items []item
	// list is where the items stand in the answer, up to their number: /data/text_mem/0/memories/.
	list string
	// total is total_nodes; -1 where the answer does not say (text_mem of search).
	total int64
}

// item is one memory: {id, memory, metadata}.
type item struct {
	id, memory string
	// at is its number in the group's list.
	at int

	kind, userID, sessionID, status  string
	createdAt, updatedAt, vectorSync string
	// relativity counts where scored.
	relativity    float64
	scored        bool
	version       int64
	tags, covered []string
	sources       []source
	// labels are the fields that memhost sent: at the top of metadata on Neo4j, under metadata.info elsewhere.
	labels []label
}

// label is a field that memhost sent.
type label struct {
	key   string
	value jsontext.Raw
}

// pointerOf is where an item of the group stands in the answer, from /data on.
func (g *group) pointerOf(m *item) string { return g.list + sdk.Itoa(m.at) }

// readGroups decodes the groups of search or get_memory and refuses an item of another cube.
//
// Errors: backend when data is no such thing, isolation_breach.
func readGroups(route string, a *answer, cube string) ([]group, error) {
	groups, err := parseGroups(route, a)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(route, a, cube, groups); err != nil {
		return nil, err
	}
	return groups, nil
}

// checkOwner refuses an item of another cube.
func checkOwner(route string, a *answer, cube string, groups []group) error {
	for i := range groups {
		g := &groups[i]
		if g.cube != cube && (g.cube != "" || len(g.items) > 0) {
			return breach(route, a, cube, g.cube)
		}
		for j := range g.items {
			if owner := g.items[j].userID; owner != "" && owner != cube {
				return breach(route, a, cube, owner)
			}
		}
	}
	return nil
}

// parseGroups is readGroups for an answer that was looked at before.
func parseGroups(route string, a *answer) ([]group, error) {
	if a.data == nil || a.data.Type() != jsontext.Object {
		return nil, unusable(route, a, "data is no object of groups")
	}
	groups, err := groupsIn(jsontext.DecodeBytes(a.data))
	if err != nil {
		return nil, unusable(route, a, "a group cannot be read: "+err.Error())
	}
	return groups, nil
}

// groupsIn decodes data, an object, into its groups in the order of groupNames.
func groupsIn(d *jsontext.Decoder) ([]group, error) {
	var found []group
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		at := slices.Index(groupNames, fields.Name())
		if at < 0 || d.Next() != jsontext.Array {
			err = d.Skip()
			continue
		}
		var lists jsontext.ArrIter
		lists, err = d.ArrIter()
		for n := 0; err == nil && lists.Next(); n++ {
			g := group{rank: at, name: groupNames[at], list: "/data/" + groupNames[at] + "/" + sdk.Itoa(n) + "/memories/", total: -1}
			err = g.read(d)
			found = append(found, g)
		}
		if err == nil {
			err = lists.Err()
		}
	}
	if err == nil {
		err = fields.Err()
	}
	groups := make([]group, 0, len(found))
	for rank := range groupNames {
		for i := range found {
			if found[i].rank == rank {
				groups = append(groups, found[i])
			}
		}
	}
	return groups, err
}

func (g *group) read(d *jsontext.Decoder) error {
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		switch key := fields.Name(); {
		case key == "cube_id":
			err = readText(d, &g.cube)
		case key == "total_nodes" && d.Next() == jsontext.Number:
			g.total, err = d.Int64()
		case key == "memories" && d.Next() == jsontext.Array:
			err = g.readItems(d)
		default:
			err = d.Skip()
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

// expected is how many items a group, and labels an item, has room for before the list is copied into a larger one.
const expected = 12

func (g *group) readItems(d *jsontext.Decoder) error {
	items, err := d.ArrIter()
	for at := 0; err == nil && items.Next(); at++ {
		if d.Next() != jsontext.Object {
			err = d.Skip()
			continue
		}
		n := len(g.items)
		if n == cap(g.items) {
			g.items = append(make([]item, 0, expected+2*n), g.items...)
		}
		g.items = g.items[:n+1]
		g.items[n] = item{at: at}
		err = g.items[n].read(d)
	}
	if err != nil {
		return err
	}
	return items.Err()
}

// readItem decodes one memory.
func readItem(raw jsontext.Raw) (item, error) {
	var m item
	err := m.read(jsontext.DecodeBytes(raw))
	return m, err
}

// read decodes one memory. Fields of another type than expected are left out.
func (m *item) read(d *jsontext.Decoder) error {
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		switch key := fields.Name(); {
		case key == "id":
			err = readText(d, &m.id)
		case key == "memory":
			err = readText(d, &m.memory)
		case key == "metadata" && d.Next() == jsontext.Object:
			err = m.readMetadata(d)
		default:
			err = d.Skip()
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

// field is a field of metadata that is read.
type field int

const (
	unread field = iota
	memoryType
	userID
	sessionID
	status
	createdAt
	updatedAt
	vectorSync
	relativity
	version
	tags
	coveredHistory
	sources
	info
	// ours is one that memhost sent.
	ours
)

// fieldOf tells by its name which field it is. Of some forty fields that an item has half are not read: a name's length and first letter leave one that it can
// be, so that it is compared once.
func fieldOf(name string) field {
	if len(name) < 4 {
		return unread
	}
	if name[0] == 'm' && name[1] == 'h' && name[2] == '_' {
		return ours
	}
	which, full := unread, ""
	switch len(name)<<8 | int(name[0]) {
	case 4<<8 | 'i':
		which, full = info, "info"
	case 4<<8 | 't':
		which, full = tags, "tags"
	case 6<<8 | 's':
		which, full = status, "status"
	case 7<<8 | 's':
		which, full = sources, "sources"
	case 7<<8 | 'u':
		which, full = userID, "user_id"
	case 7<<8 | 'v':
		which, full = version, "version"
	case 10<<8 | 'c':
		which, full = createdAt, "created_at"
	case 10<<8 | 'p':
		which, full = ours, "project_id"
	case 10<<8 | 'r':
		which, full = relativity, "relativity"
	case 10<<8 | 's':
		which, full = sessionID, "session_id"
	case 10<<8 | 'u':
		which, full = updatedAt, "updated_at"
	case 11<<8 | 'm':
		which, full = memoryType, "memory_type"
	case 11<<8 | 'v':
		which, full = vectorSync, "vector_sync"
	case 15<<8 | 'c':
		which, full = coveredHistory, "covered_history"
	case 15<<8 | 'm':
		which, full = ours, "manager_user_id"
	}
	if which == unread || name != full {
		return unread
	}
	return which
}

func (m *item) readMetadata(d *jsontext.Decoder) error {
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		key := fields.Name()
		switch fieldOf(key) {
		case memoryType:
			err = readText(d, &m.kind)
		case userID:
			err = readText(d, &m.userID)
		case sessionID:
			err = readText(d, &m.sessionID)
		case status:
			err = readText(d, &m.status)
		case createdAt:
			err = readText(d, &m.createdAt)
		case updatedAt:
			err = readText(d, &m.updatedAt)
		case vectorSync:
			err = readText(d, &m.vectorSync)
		case relativity:
			if d.Next() != jsontext.Number {
				err = d.Skip()
				continue
			}
			m.relativity, err = d.Float64()
			m.scored = true
		case version:
			err = m.readVersion(d)
		case tags:
			m.tags, err = readTexts(d)
		case coveredHistory:
			m.covered, err = readTexts(d)
		case sources:
			m.sources, err = readSources(d)
		case info:
			err = m.readInfo(d)
		case ours:
			err = m.readLabel(d, key)
		default:
			err = d.Skip()
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

// readInfo reads the labels below info.
func (m *item) readInfo(d *jsontext.Decoder) error {
	if d.Next() != jsontext.Object {
		return d.Skip()
	}
	return d.Obj(func(d *jsontext.Decoder, key string) error {
		if fieldOf(key) != ours {
			return d.Skip()
		}
		return m.readLabel(d, key)
	})
}

// readVersion reads a number, which some stores write with a point.
func (m *item) readVersion(d *jsontext.Decoder) error {
	if d.Next() != jsontext.Number {
		return d.Skip()
	}
	version, err := d.Float64()
	m.version = int64(version)
	return err
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
	raw, err := d.Raw()
	if err != nil || raw[0] == 'n' { // null
		return err
	}
	n := len(m.labels)
	if n == cap(m.labels) {
		m.labels = append(make([]label, 0, expected+2*n), m.labels...)
	}
	m.labels = m.labels[:n+1]
	m.labels[n] = label{key, raw}
	return nil
}

// labelled is a field that memhost sent, as it stands, or nothing. Of several of one name the last counts.
func (m *item) labelled(key string) jsontext.Raw {
	for i := len(m.labels) - 1; i >= 0; i-- {
		if m.labels[i].key == key {
			return m.labels[i].value
		}
	}
	return nil
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
		texts, err := d.ArrIter()
		for err == nil && texts.Next() {
			if d.Next() != jsontext.String {
				err = d.Skip()
				continue
			}
			var one string
			one, err = d.Str()
			list = append(list, one)
		}
		if err == nil {
			err = texts.Err()
		}
		return list, err
	}
	return nil, d.Skip()
}

// label is a text field that memhost sent, or nothing.
func (m *item) label(key string) string { return textOf(m.labelled(key)) }

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
	for i := range m.sources {
		ids = withEvent(ids, eventOf(m.sources[i].messageID))
	}
	return withEvent(ids, m.label("mh_event_id"))
}

func withEvent(ids []string, id string) []string {
	if id == "" || slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// evidence describes the item with what the server says and nothing else.
func (m *item) evidence(g string, rank int, scored bool) abi.Evidence {
	var e abi.Evidence
	m.describe(&e, g, rank, scored)
	return e
}

// describe is evidence for an element of a list, where it stands. It returns the time of CreatedAt, where that is given.
func (m *item) describe(e *abi.Evidence, g string, rank int, scored bool) (created time.Time) {
	e.Rank, e.Group, e.NativeID, e.NativeType, e.Text, e.SourceEventIDs = int64(rank), g, m.id, m.kind, m.memory, m.events()
	if scored && m.scored {
		e.Score = &m.relativity
	}
	created, err := abi.ParseTime(m.createdAt)
	if err == nil {
		e.CreatedAt, e.TimeBasis = m.createdAt, abi.TimeIngest
	}
	if m.updatedAt != m.createdAt {
		_, err = abi.ParseTime(m.updatedAt)
	}
	if err == nil {
		e.UpdatedAt, e.TimeBasis = m.updatedAt, abi.TimeIngest
	}
	if m.status == "archived" || m.status == "deleted" {
		e.Superseded = sdk.Ptr(true)
	}
	return created
}

// said is when what the memory says was said: the newest time among its sources, as it was sent. Known is a time that was found good before, or empty: the
// memories of a turn share theirs.
func (m *item) said(known *string) string {
	newest := ""
	for i := range m.sources {
		if t := m.sources[i].chatTime; t > newest {
			if t == *known || isTime(t) {
				*known, newest = t, t
			}
		}
	}
	if newest == "" {
		newest = m.label("mh_event_time")
	}
	return newest
}

func isTime(text string) bool {
	_, err := abi.ParseTime(text)
	return err == nil
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
	return s.memories(c, "get_memory", l.body(), l.cube)
}

// total is how many nodes the groups count together.
func total(groups []group) int64 {
	sum := int64(0)
	for i := range groups {
		sum += max(groups[i].total, int64(len(groups[i].items)))
	}
	return sum
}
