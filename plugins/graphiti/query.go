package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// menuItem is a native query: a statement of the manifest with the parameters that a caller gives. Free Cypher is not offered.
type menuItem struct {
	name, route string
	params      []menuParam
}

// menuParam is a parameter: text, texts or whole; whole ones without a default are required.
type menuParam struct {
	name, kind string
	// otherwise is the value where the caller gives none; empty means required, leftOut that it is not sent then.
	otherwise string
}

// leftOut stands for a value that is not sent where the caller gives none.
const leftOut = "-"

const (
	kindText  = "text"
	kindTexts = "texts"
	kindWhole = "whole"
	kindAny   = "any" // the backend checks it
)

// menu is what Bolt answers (with the group, always). Times are Unix ms.
var menu = [...]menuItem{
	{"counts", "bolt_counts", nil},
	{"labels", "bolt_labels", nil},
	{"relations", "bolt_relations", []menuParam{{"limit", kindWhole, "100"}}},
	{"sources", "bolt_sources", []menuParam{{"facts", kindTexts, ""}}},
	{"contexts", "bolt_contexts", []menuParam{{"facts", kindTexts, ""}}},
	{"invalidated", "bolt_invalidated", []menuParam{{"lo", kindWhole, ""}, {"hi", kindWhole, ""}, {"clock", kindText, `"event"`}, {"limit", kindWhole, "100"}}},
	{"closed_by", "bolt_closed_by", []menuParam{{"fact", kindText, ""}}},
	{"episode_facts", "bolt_episode_facts", []menuParam{{"episode", kindText, ""}}},
	{"history", "bolt_history", []menuParam{{"a", kindText, ""}, {"b", kindText, ""}}},
	{"facts_at", "bolt_facts_at", []menuParam{{"at", kindWhole, ""}, {"limit", kindWhole, "100"}}},
	{"crossing", "bolt_crossing", nil},
	{"ingest", "bolt_ingest", nil},
}

// toolMenu is what an MCP server answers without Bolt.
var toolMenu = [...]menuItem{
	{"search_nodes", "mcp_search_nodes", []menuParam{{"query", kindText, ""}}},
	{"get_episodes", "mcp_episodes", []menuParam{{"max_episodes", kindWhole, "50"}}},
}

// queryModes lists how facts are searched, and the names of the native queries of this configuration.
func (s *settings) queryModes() []string {
	if s.core {
		modes := []string{s.library.recipe}
		for i := range coreMenu {
			modes = append(modes, coreMenu[i].name)
		}
		if s.bolt {
			for i := range menu {
				modes = append(modes, menu[i].name)
			}
		}
		return modes
	}
	modes := []string{"edge_hybrid_rrf"}
	if s.mcp {
		for i := range toolMenu {
			modes = append(modes, toolMenu[i].name)
		}
	}
	if s.bolt {
		for i := range menu {
			modes = append(modes, menu[i].name)
		}
	}
	return modes
}

// limitMost bounds what a caller can ask for at once.
const limitMost = 1000

// nativeQuery runs one query of the menu. Result: {"columns": [...], "rows": [...], "more": bool} over Bolt, the tool's JSON over MCP.
//
// Errors: invalid_argument for an unknown name or a parameter that is missing or wrong; unsupported without Bolt.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	for i := range toolMenu {
		if toolMenu[i].name == r.Name && s.mcp {
			return s.toolQuery(c, gid, &toolMenu[i], r)
		}
	}
	if s.core {
		for i := range coreMenu {
			if coreMenu[i].name == r.Name {
				return s.coreQuery(c, gid, &coreMenu[i], r)
			}
		}
	}
	for i := range menu {
		if menu[i].name == r.Name {
			if err := s.needBolt("native query " + r.Name); err != nil {
				return nil, err
			}
			return s.boltQuery(c, gid, &menu[i], r)
		}
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, "name: no native query "+jsontext.Quote(cutText(r.Name, 80))+" with the "+s.surface()+" surface").
		WithHint("native_query_modes of health and /v1/capabilities lists them")
}

func (s *settings) boltQuery(c *sdk.Call, gid string, q *menuItem, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	p := new(jsontext.Encoder)
	p.ObjStart()
	if q.route != "bolt_ingest" { // it counts all groups, and reveals no content of any
		p.FieldStart("gid")
		p.Str(gid)
	}
	if err := q.write(p, r.Params); err != nil {
		return nil, err
	}
	p.ObjEnd()
	head, rows, err := c.Bolt(q.route, p.Bytes())
	if err != nil {
		return nil, err
	}
	result := []byte(`{"columns":[`)
	for i, column := range head.Columns {
		if i > 0 {
			result = append(result, ',')
		}
		result = append(result, sdk.Text(column)...)
	}
	result = append(result, `],"rows":[`...)
	begun := false
	_ = sdk.EachRow(rows, func(row []byte) error {
		if begun {
			result = append(result, ',')
		}
		begun = true
		result = append(result, row...)
		return nil
	})
	result = strconv.AppendBool(append(result, `],"more":`...), head.More)
	return s.result(q, append(result, '}')), nil
}

func (s *settings) toolQuery(c *sdk.Call, gid string, q *menuItem, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	p := new(jsontext.Encoder)
	p.ObjStart()
	if err := q.write(p, r.Params); err != nil {
		return nil, err
	}
	p.FieldStart("group_ids")
	p.Raw(quoted(gid))
	p.ObjEnd()
	body, err := s.tool(c, q.route, q.name, p.Bytes())
	if err != nil {
		return nil, err
	}
	kind := "nodes"
	if q.name == "get_episodes" {
		kind = "episodes"
	}
	found, err := itemsIn(q.route, kind, body)
	if err == nil {
		err = ours(q.route, gid, found)
	}
	if err != nil {
		return nil, err
	}
	return s.result(q, body), nil
}

func (s *settings) result(q *menuItem, body []byte) *abi.NativeQueryResult {
	return &abi.NativeQueryResult{Name: q.name, Result: body, Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: q.route}}
}

// write checks the caller's parameters and writes those that the item has.
func (m *menuItem) write(e *jsontext.Encoder, given map[string]abi.Raw) error {
	for _, name := range abi.SortedKeys(given) {
		known := false
		for i := range m.params {
			known = known || m.params[i].name == name
		}
		if !known {
			return abi.NewError(abi.CodeInvalidArgument, "params."+cutText(name, 80)+": "+m.name+" has no such parameter")
		}
	}
	for i := range m.params {
		p := &m.params[i]
		value := given[p.name]
		if len(value) == 0 {
			value = abi.Raw(p.otherwise)
		}
		if string(value) == leftOut {
			continue
		}
		if len(value) == 0 {
			return abi.NewError(abi.CodeInvalidArgument, "params."+p.name+": required")
		}
		if err := p.check(value); err != nil {
			return err
		}
		e.FieldStart(p.name)
		e.Raw(jsontext.Raw(value))
	}
	return nil
}

func (p *menuParam) check(value abi.Raw) error {
	d := jsontext.DecodeBytes(value)
	wrong := func(want string) error { return abi.NewError(abi.CodeInvalidArgument, "params."+p.name+": want "+want) }
	switch p.kind {
	case kindText:
		if d.Next() != jsontext.String {
			return wrong("a string")
		}
		if p.name == "clock" && string(value) != `"event"` && string(value) != `"system"` {
			return wrong(`"event" or "system"`)
		}
	case kindTexts:
		if d.Next() != jsontext.Array || d.Arr(func(d *jsontext.Decoder) error { _, err := d.Str(); return err }) != nil {
			return wrong("a list of strings")
		}
	case kindWhole:
		n, err := d.Int64()
		if err != nil {
			return wrong("a whole number")
		}
		if p.otherwise != "" && p.otherwise != leftOut && (n < 1 || n > limitMost) {
			return wrong("1 to " + sdk.Itoa(limitMost))
		}
	}
	return nil
}
