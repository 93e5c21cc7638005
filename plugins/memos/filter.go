package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// filter is a condition on memories in the only form that the server takes for one: {"and":[...]} or {"or":[...]} at the top. A bare object is read
// as a map of filters by cube and ignored in silence; nested and/or, null and an unknown operator find nothing or everything.
type filter struct {
	// any: one condition is enough.
	any   bool
	conds []cond
}

// cond is a field with a value, or with an operator and a value. Keys are memhost's own or checked: the server writes them into its query's text.
type cond struct {
	key, op string
	value   abi.Raw
}

func is(key, value string) cond { return cond{key: key, value: sdk.Text(value)} }

// put writes the field "filter", where there are conditions.
func (f filter) put(e *jsontext.Encoder) {
	if len(f.conds) == 0 {
		return
	}
	e.FieldStart("filter")
	e.ObjStart()
	if f.any {
		e.FieldStart("or")
	} else {
		e.FieldStart("and")
	}
	e.ArrStart()
	for _, c := range f.conds {
		e.ObjStart()
		e.FieldStart(c.key)
		if c.op == "" {
			e.Raw(jsontext.Raw(c.value))
		} else {
			e.ObjStart()
			e.FieldStart(c.op)
			e.Raw(jsontext.Raw(c.value))
			e.ObjEnd()
		}
		e.ObjEnd()
	}
	e.ArrEnd()
	e.ObjEnd()
}

// met tells whether an item carries every field of an "and" filter with its value. Fields with operators are the server's to judge.
func (f filter) met(m *item) bool {
	for _, c := range f.conds {
		if c.op != "" {
			continue
		}
		have := m.labelled(c.key)
		if c.key == "session_id" {
			have = jsontext.Raw(sdk.Text(m.sessionID))
		}
		if len(have) == 0 || !sameScalar(have, jsontext.Raw(c.value)) {
			return false
		}
	}
	return true
}

func sameScalar(a, b jsontext.Raw) bool {
	if a.Type() == jsontext.String && b.Type() == jsontext.String {
		return textOf(a) == textOf(b)
	}
	return strings.TrimSpace(string(a)) == strings.TrimSpace(string(b))
}

// asked is what a retrieval filters by.
type asked struct {
	filter
	// applied says for each label and filter of the request how it takes effect.
	applied  abi.Members[string]
	warnings []string
}

// mode is the weakest of the ways in which the labels take effect; none where there are none.
func (a *asked) mode() abi.FilterMode {
	mode := abi.FilterNone
	for i := range a.applied {
		switch a.applied[i].Value {
		case "none", "unverified":
			return abi.FilterNone
		case "semantic":
			mode = abi.FilterSemantic
		default:
			if mode == abi.FilterNone {
				mode = abi.FilterHard
			}
		}
	}
	return mode
}

// add puts a condition and says how it takes effect.
func (a *asked) add(name, how string, c cond) {
	a.applied.Set(name, how)
	if how != string(abi.FilterNone) {
		a.conds = append(a.conds, c)
	}
}

// ask turns a request's labels and filters into the server's filter.
//
// In the sync profiles every label is a field of its own. After async extraction on Neo4j only project_id and manager_user_id are left, which hold the exact
// triple and the scenario: what neither can say is "none". In modes fine and mixture a recall over the graph ignores the filter, so there it is "semantic".
//
// Errors: invalid_argument for a filter of another shape than name to text, number or truth value.
func (s *settings) ask(r *abi.RetrieveRequest) (*asked, error) {
	a := new(asked)
	if r.Scenario == "" && r.Context == "" && r.Attribute == "" && len(r.Filters) == 0 {
		return a, nil
	}
	if err := s.askFor(a, r); err != nil {
		return nil, err
	}
	return a, nil
}

// askFor is ask where there is something to filter by. Most requests have nothing, and none of its code runs.
//
//go:noinline
func (s *settings) askFor(a *asked, r *abi.RetrieveRequest) error {
	context := r.Context
	if sdk.CrossContext(r) {
		context = ""
	}
	hard := string(abi.FilterHard)
	if s.searchMode != searchFast {
		hard = string(abi.FilterSemantic)
	}
	if !s.filters() {
		hard = string(abi.FilterNone)
	}
	labels := []struct{ name, value string }{{"scenario", r.Scenario}, {"context", context}, {"attribute", r.Attribute}}
	switch exact := r.Scenario != "" && context != "" && r.Attribute != ""; {
	case s.keepsInfo():
		for _, l := range labels {
			if l.value != "" {
				a.add(l.name, hard, is("mh_"+l.name, l.value))
			}
		}
	case exact:
		a.add("scenario", hard, is("project_id", labelTriple(r.Scenario, context, r.Attribute)))
		a.applied.Set("context", hard)
		a.applied.Set("attribute", hard)
	default:
		for _, l := range labels {
			if l.value == "" {
				continue
			}
			if l.name == "scenario" {
				a.add(l.name, hard, is("manager_user_id", labelScenario(l.value)))
			} else {
				a.applied.Set(l.name, string(abi.FilterNone))
			}
		}
	}
	if err := s.askFilters(a, r.Filters, hard); err != nil {
		return err
	}
	for i := range a.applied {
		if a.applied[i].Value == string(abi.FilterNone) {
			a.warnings = append(a.warnings, "label_not_filtered: MemOS cannot filter by all that was asked with add_mode "+s.addMode+" on "+s.graphStore+
				"; trace.filters_applied says by what it does")
			break
		}
	}
	return nil
}

// askFilters adds the request's filters: session_id, agent_id, and metadata by its name.
func (s *settings) askFilters(a *asked, filters map[string]abi.Raw, hard string) error {
	for _, name := range abi.SortedKeys(filters) {
		value := filters[name]
		if name == "cross_context" {
			continue
		}
		if kind := jsontext.Raw(value).Type(); kind != jsontext.String && kind != jsontext.Number && kind != jsontext.Bool {
			return abi.NewError(abi.CodeInvalidArgument, "filters."+name+": want a text, a number or a truth value: MemOS ignores a filter of another shape in silence")
		}
		info := hard
		if !s.keepsInfo() {
			info = string(abi.FilterNone)
		}
		switch {
		case name == "session_id":
			if jsontext.Raw(value).Type() != jsontext.String {
				return abi.NewError(abi.CodeInvalidArgument, "filters.session_id: want a text")
			}
			how := hard
			if how == string(abi.FilterHard) {
				how = "hard_session"
			}
			a.add(name, how, is("session_id", sessionOf(textOf(jsontext.Raw(value)))))
		case name == "agent_id":
			a.add(name, info, cond{key: "mh_agent_id", value: value})
		case plainKey(name):
			a.add(name, info, cond{key: "mh_m_" + name, value: value})
		default:
			return abi.NewError(abi.CodeInvalidArgument, "filters: the name of a filter is letters, digits and underscores: MemOS writes it into its query").
				WithHint("only metadata whose key is such a name can be filtered by")
		}
	}
	return nil
}

// plainKey tells whether a metadata key can be a field of a node, and stand in a query's text.
func plainKey(key string) bool {
	if key == "" || len(key) > 64 {
		return false
	}
	for i := 0; i < len(key); i++ {
		if b := key[i]; !sdk.AlphaNumeric(b) && b != '_' {
			return false
		}
	}
	return true
}

// operators are those that the server knows (graph_dbs/neo4j.py). An unknown one is dropped there in silence, which widens the answer.
var operators = []string{"gt", "lt", "gte", "lte", "contains", "in", "like"}

// checkFilter refuses a caller's filter that the server would misread: native_query hands it on.
//
// Errors: invalid_argument, with the path.
func checkFilter(raw jsontext.Raw) error {
	wrong := func(what string) error {
		return abi.NewError(abi.CodeInvalidArgument, "params.filter: "+what).
			WithHint(`write {"and": [{"mh_scenario": "travel"}]}; other shapes MemOS ignores in silence, or answers with nothing`)
	}
	if raw.Type() != jsontext.Object {
		return wrong("want an object")
	}
	fields, good := 0, error(nil)
	err := jsontext.DecodeBytes(raw).Obj(func(d *jsontext.Decoder, key string) error {
		fields++
		if (key != "and" && key != "or") || d.Next() != jsontext.Array {
			good = wrong("want exactly one of and, or at the top, with a list")
			return d.Skip()
		}
		return d.Arr(func(d *jsontext.Decoder) error {
			one, err := d.Raw()
			if err == nil && good == nil {
				good = checkCond(one, wrong)
			}
			return err
		})
	})
	switch {
	case err != nil:
		return wrong(err.Error())
	case good != nil:
		return good
	case fields != 1:
		return wrong("want exactly one of and, or at the top")
	}
	return nil
}

func checkCond(raw jsontext.Raw, wrong func(string) error) error {
	if raw.Type() != jsontext.Object {
		return wrong("a condition is an object")
	}
	var good error
	err := jsontext.DecodeBytes(raw).Obj(func(d *jsontext.Decoder, key string) error {
		value, err := d.Raw()
		switch {
		case err != nil:
			return err
		case !plainKey(key) || key == "and" || key == "or":
			good = wrong("a field's name is letters, digits and underscores, without info. before it; conditions do not nest")
		case value.Type() == jsontext.Object:
			return jsontext.DecodeBytes(value).Obj(func(d *jsontext.Decoder, op string) error {
				if !slices.Contains(operators, op) {
					good = wrong("operator " + op + " is none of " + strings.Join(operators, ", "))
				}
				return d.Skip()
			})
		case value.Type() == jsontext.Null || value.Type() == jsontext.Array:
			good = wrong("a field's value is a text, a number, a truth value, or an object of one operator")
		}
		return nil
	})
	if err != nil {
		return wrong(err.Error())
	}
	return good
}
