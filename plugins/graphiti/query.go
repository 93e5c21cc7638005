package main

import (
	"strings"

	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// menuItem is a native query: a route of the manifest with the caller's parameters. Free Cypher is not offered.
type menuItem struct {
	name, route string
	params      []menuParam
}

// menuParam is a parameter with its kind.
type menuParam struct {
	name, kind string
	// otherwise is the default; empty means required, leftOut means not sent.
	otherwise string
}

// leftOut is the default of a parameter that is not sent unless the caller sets it.
const leftOut = "-"

const (
	kindText    = "text"
	kindTexts   = "texts"
	kindInteger = "whole" // with a default at least 1 and at most limitMost
	kindAny     = "any"   // the backend checks it
)

// maxLimit is the maximum of a caller's limit.
const maxLimit = 1000

// boltMenu are the queries of Neo4j, always restricted to the group. Times are Unix ms.
var boltMenu = [...]menuItem{
	{"counts", "bolt_counts", nil},
	{"labels", "bolt_labels", nil},
	{"relations", "bolt_relations", []menuParam{{"limit", kindInteger, "100"}}},
	{"sources", "bolt_sources", []menuParam{{"facts", kindTexts, ""}}},
	{"contexts", "bolt_contexts", []menuParam{{"facts", kindTexts, ""}}},
	{"invalidated", "bolt_invalidated", []menuParam{{"lo", kindInteger, ""}, {"hi", kindInteger, ""},
		{"clock", kindText, `"event"`}, {"limit", kindInteger, "100"}}},
	{"closed_by", "bolt_closed_by", []menuParam{{"fact", kindText, ""}}},
	{"episode_facts", "bolt_episode_facts", []menuParam{{"episode", kindText, ""}}},
	{"history", "bolt_history", []menuParam{{"a", kindText, ""}, {"b", kindText, ""}}},
	{"facts_at", "bolt_facts_at", []menuParam{{"at", kindInteger, ""}, {"limit", kindInteger, "100"}}},
	{"crossing", "bolt_crossing", nil},
	{"ingest", "bolt_ingest", nil},
}

// nativeQuery runs one query of the menu. Result: {"columns": [...], "rows": [...], "more": bool} over Bolt, else the
// backend's JSON.
//
// Errors: invalid_argument for an unknown name or a parameter that is missing or wrong; unsupported without Bolt.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	run, q := v.surface.query, lookUp(v.surface.queries(), r.Name)
	if q == nil {
		run, q = boltQuery, lookUp(boltMenu[:], r.Name)
		if q == nil {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"name: no native query "+wirejson.Quote(cutText(r.Name, 80))+" with the "+v.name+" surface").
				WithHint("there are " + menuNames(append(v.surface.queries(), boltMenu[:]...)))
		}
		err = v.needBolt("native query " + r.Name)
		if err != nil {
			return nil, err
		}
	}
	params, err := q.check(r.Params)
	if err != nil {
		return nil, err
	}
	body, err := run(v, q, params)
	if err != nil {
		return nil, err
	}
	return &abi.NativeQueryResult{Name: q.name, Result: body, Trace: v.trace(q.route)}, nil
}

func menuNames(menu []menuItem) string {
	names := make([]string, len(menu))
	for i := range menu {
		names[i] = menu[i].name
	}
	return strings.Join(names, ", ")
}

func lookUp(menu []menuItem, name string) *menuItem {
	for i := range menu {
		if menu[i].name == name {
			return &menu[i]
		}
	}
	return nil
}

// boltQuery runs a statement, and returns the rows unchanged.
func boltQuery(v *scopedCall, q *menuItem, params []field) ([]byte, error) {
	head, rows, err := v.Bolt(q.route, v.params(params...))
	if err != nil {
		return nil, err
	}
	more := abi.Raw(strconv.AppendBool(nil, head.More))
	return object(field{"columns", textList(head.Columns...)}, field{"rows", rowsArray(rows)}, field{"more", more}), nil
}

// check selects the item's parameters from the caller's.
func (m *menuItem) check(given map[string]abi.Raw) (params []field, err error) {
	for _, name := range abi.SortedKeys(given) {
		known := false
		for i := range m.params {
			known = known || m.params[i].name == name
		}
		if !known {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"params."+cutText(name, 80)+": "+m.name+" has no such parameter")
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
		err := p.check(value)
		if err != nil {
			return nil, err
		}
		params = append(params, field{p.name, value})
	}
	return params, nil
}

func (p *menuParam) check(value abi.Raw) error {
	if len(value) == 0 {
		return abi.NewError(abi.CodeInvalidArgument, "params."+p.name+": required")
	}
	want := ""
	switch d := wirejson.DecodeBytes(value); p.kind {
	case kindText:
		text, err := d.Str()
		if err != nil {
			want = "a string"
		} else if p.name == "clock" && text != "event" && text != "system" {
			want = `"event" or "system"`
		}
	case kindTexts:
		if d.Next() != wirejson.Array || d.Arr(func(d *wirejson.Decoder) error {
			_,
				err := d.Str()
			return err
		}) != nil {
			want = "a list of strings"
		}
	case kindInteger:
		n, err := d.Int64()
		if err != nil {
			want = "a whole number"
		} else if p.otherwise != "" && p.otherwise != leftOut && (n < 1 || n > maxLimit) {
			want = "1 to " + sdk.Itoa(maxLimit)
		}
	}
	if want != "" {
		return abi.NewError(abi.CodeInvalidArgument, "params."+p.name+": want "+want)
	}
	return nil
}
