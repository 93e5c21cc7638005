package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// filter is a condition on memories in the only form that the server accepts: {"and":[...]} or {"or":[...]} at the top.
// A bare object is read as a map of filters by cube and silently ignored; nested and/or, null and an unknown operator
// match nothing or everything.
type filter struct {
	// any: one condition suffices.
	any   bool
	conds []cond
}

// cond is a field with a value, or with an operator and a value. Keys are memhost's own or checked, because the server
// writes them into its query's text.
type cond struct {
	key, op string
	value   abi.Raw
}

func is(key, value string) cond { return cond{key: key, value: sdk.Text(value)} }

// value returns the request's field "filter", nil without conditions.
func (f filter) value() any {
	if len(f.conds) == 0 {
		return nil
	}
	conds, name := make([]wire.Object, len(f.conds)), "and"
	for i, c := range f.conds {
		if conds[i] = (wire.Object{c.key, c.value}); c.op != "" {
			conds[i] = wire.Object{c.key, wire.Object{c.op, c.value}}
		}
	}
	if f.any {
		name = "or"
	}
	return wire.Object{name, conds}
}

// matches reports whether an item has every field of an "and" filter with its value. Fields with operators are left to
// the server.
func (f filter) matches(m *item) bool {
	for _, c := range f.conds {
		have := m.label(c.key)
		if c.key == "session_id" {
			have = sdk.Text(m.sessionID)
		}
		if c.op == "" && (len(have) == 0 || !sameScalar(have, c.value)) {
			return false
		}
	}
	return true
}

func sameScalar(a, b abi.Raw) bool {
	if wire.Kind(a) == wirejson.String && wire.Kind(b) == wirejson.String {
		return wire.Text(a) == wire.Text(b)
	}
	return strings.TrimSpace(string(a)) == strings.TrimSpace(string(b))
}

// labelFilter is the filter of a retrieval.
type labelFilter struct {
	filter
	// applied says for each label and filter of the request how it is applied.
	applied  map[string]string
	warnings []string
}

// mode returns the weakest way in which the labels are applied; none without labels.
func (a *labelFilter) mode() abi.FilterMode {
	mode := abi.FilterNone
	for _, how := range a.applied {
		switch how {
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

// add adds a condition and records how it is applied.
func (a *labelFilter) add(name, how string, c cond) {
	sdk.Put(&a.applied, name, how)
	if how != string(abi.FilterNone) {
		a.conds = append(a.conds, c)
	}
}

// ask turns a request's labels and filters into the server's filter.
//
// In the sync profiles every label is a field of its own. After async extraction on Neo4j only project_id and
// manager_user_id remain. They hold the exact triple and the scenario; a filter that neither can express has the mode
// "none". In modes fine and mixture a recall over the graph ignores the filter, so there it is "semantic".
//
// Errors: invalid_argument for a filter whose value is not a text, a number or a boolean.
func (s *settings) ask(r *abi.RetrieveRequest) (*labelFilter, error) {
	a, context := new(labelFilter), r.Context
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
	exact := r.Scenario != "" && context != "" && r.Attribute != ""
	for _, l := range labels {
		switch {
		case l.value == "":
		case s.keepsInfo():
			a.add(l.name, hard, is("mh_"+l.name, l.value))
		case s.sourceDesign:
			sdk.Put(&a.applied, l.name, string(abi.FilterNone)) // no field that a filter can match contains custom_tags
		case exact && l.name == "scenario":
			a.add(l.name, hard, is("project_id", labelTriple(r.Scenario, context, r.Attribute)))
		case exact:
			sdk.Put(&a.applied, l.name, hard)
		case l.name == "scenario":
			a.add(l.name, hard, is("manager_user_id", labelScenario(l.value)))
		default:
			sdk.Put(&a.applied, l.name, string(abi.FilterNone))
		}
	}
	if err := s.askFilters(a, r.Filters, hard); err != nil {
		return nil, err
	}
	for _, how := range a.applied {
		if how == string(abi.FilterNone) {
			a.warnings = []string{"label_not_filtered: MemOS cannot filter by all that was asked with add_mode " +
				s.addMode +
				" on " + s.graphStore +
				"; trace.filters_applied says by what it does"}
		}
	}
	return a, nil
}

// askFilters adds the request's filters: session_id, agent_id, and metadata by its name.
func (s *settings) askFilters(a *labelFilter, filters map[string]abi.Raw, hard string) error {
	for _, name := range abi.SortedKeys(filters) {
		value := filters[name]
		if name == "cross_context" {
			continue
		}
		if kind := wire.Kind(value); kind != wirejson.String && kind != wirejson.Number && kind != wirejson.Bool {
			return abi.NewError(abi.CodeInvalidArgument,
				"filters."+name+": want a text, a number or a truth value: MemOS ignores a filter of another shape "+
					"in silence")
		}
		info := hard
		if !s.keepsInfo() {
			info = string(abi.FilterNone)
		}
		switch {
		case name == "session_id":
			if wire.Kind(value) != wirejson.String {
				return abi.NewError(abi.CodeInvalidArgument, "filters.session_id: want a text")
			}
			how := hard
			if how == string(abi.FilterHard) {
				how = "hard_session"
			}
			a.add(name, how, is("session_id", sessionOf(wire.Text(value))))
		case name == "agent_id":
			a.add(name, info, cond{key: "mh_agent_id", value: value})
		case plainKey(name):
			a.add(name, info, cond{key: "mh_m_" + name, value: value})
		default:
			return abi.NewError(abi.CodeInvalidArgument,
				"filters: the name of a filter is letters, digits and underscores: MemOS writes it into its query").
				WithHint("only metadata whose key is such a name can be filtered by")
		}
	}
	return nil
}

// plainKey reports whether a metadata key can be a field of a node, and part of a query's text.
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

// operators are the server's operators (graph_dbs/neo4j.py). It silently drops an unknown one, which widens the result.
var operators = []string{"gt", "lt", "gte", "lte", "contains", "in", "like"}

// checkFilter rejects a caller's filter that the server would misread; native_query passes filters on.
//
// Errors: invalid_argument, with the path.
func checkFilter(filter abi.Raw) error {
	top := wire.Members(filter)
	switch {
	case wire.Kind(filter) != wirejson.Object:
		return wrongFilter("want an object")
	case len(top) != 1 || top[0].Name != "and" && top[0].Name != "or" || wire.Kind(top[0].Value) != wirejson.Array:
		return wrongFilter("want exactly one of and, or at the top, with a list")
	}
	for _, cond := range wire.Items(top[0].Value) {
		if err := checkCond(cond); err != nil {
			return err
		}
	}
	return nil
}

func wrongFilter(what string) error {
	return abi.NewError(abi.CodeInvalidArgument, "params.filter: "+what).
		WithHint(`write {"and": [{"mh_scenario": "travel"}]}; other shapes MemOS ignores in silence, ` +
			"or answers with nothing")
}

func checkCond(cond abi.Raw) error {
	if wire.Kind(cond) != wirejson.Object {
		return wrongFilter("a condition is an object")
	}
	for _, f := range wire.Members(cond) {
		switch kind := wire.Kind(f.Value); {
		case !plainKey(f.Name) || f.Name == "and" || f.Name == "or":
			return wrongFilter("a field's name is letters, digits and underscores, without info. before it; " +
				"conditions do not nest")
		case kind == wirejson.Null || kind == wirejson.Array:
			return wrongFilter("a field's value is a text, a number, a truth value, or an object of one operator")
		}
		for _, op := range wire.Members(f.Value) {
			if !slices.Contains(operators, op.Name) {
				return wrongFilter("operator " + op.Name + " is none of " + strings.Join(operators, ", "))
			}
		}
	}
	return nil
}
