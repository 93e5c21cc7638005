package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// filter is a condition on a metadata key: that it has this value.
type filter struct {
	key   string
	value abi.Raw
}

// idKeys are the ids by which mem0 separates scopes. A filter on one of them could widen the scope: inside AND the last
// one wins.
var idKeys = []string{"user_id", "agent_id", "run_id", "app_id", "actor_id", "session"}

// filtersOf makes mem0's conditions of a request's labels and filters. ignored are filters for which mem0 keeps nothing
// that could be filtered: an event's own metadata is nested, and nested values are not.
//
// Errors: invalid_argument for a filter that names a native id, at any depth, or combines conditions.
func filtersOf(r *abi.RetrieveRequest) (filters []filter, ignored []string, err error) {
	for _, name := range abi.SortedKeys(r.Filters) {
		value := r.Filters[name]
		if err := checkFilter("filters."+name, name, value); err != nil {
			return nil, nil, err
		}
		key := map[string]string{"session_id": keySession, "turn_id": keyTurn, "event_id": keyEvent}[name]
		switch {
		case name == "cross_context":
		case key != "" && wire.Kind(value) == wirejson.String:
			filters = append(filters, filter{key, withoutNUL(value)})
		case key != "":
			return nil, nil, abi.NewError(abi.CodeInvalidArgument, "filters."+name+": want a string")
		default:
			ignored = append(ignored, name)
		}
	}
	for _, label := range [][2]string{{keyScenario, r.Scenario}, {keyContext, r.Context}, {keyAttribute, r.Attribute}} {
		if label[1] != "" && (label[0] != keyContext || !sdk.CrossContext(r)) {
			filters = append(filters, filter{label[0], sdk.Text(withoutZero(label[1]))})
		}
	}
	return filters, ignored, nil
}

// checkFilter rejects native ids and logical operators at any depth.
func checkFilter(path, name string, value abi.Raw) error {
	wrong := func(what string) error {
		return abi.NewError(abi.CodeInvalidArgument, path+": "+what).
			WithHint("the scope of a request says whose memory is meant; filters cannot change it")
	}
	switch plain := strings.ToLower(strings.TrimSpace(name)); {
	case slices.Contains(idKeys, plain):
		return wrong("names a native id")
	case plain == "and" || plain == "or" || plain == "not":
		return wrong("combines conditions, which is not offered")
	}
	inner := wire.Members(value)
	for _, item := range wire.Items(value) {
		inner = append(inner, wire.Member{Value: item})
	}
	for _, m := range inner {
		if err := checkFilter(path, m.Name, m.Value); err != nil {
			return err
		}
	}
	return nil
}

// conditions returns the filters with the scope's ids. On the platform metadata is wrapped, and as_of excludes what is
// later.
func (b *backend) conditions(filters []filter, asOf string) wire.Object {
	var own []wire.Object
	for _, f := range filters {
		if b.platform() {
			own = append(own, wire.Object{"metadata", wire.Object{f.key, f.literal()}})
		} else {
			own = append(own, wire.Object{f.key, f.literal()})
		}
	}
	if asOf != "" {
		own = append(own, wire.Object{"created_at", wire.Object{"lte", asOf}})
	}
	return b.scopeFilter(own)
}

// scopeFilter adds the scope's ids to conditions. On the self-hosted server the conditions are one flat object with the
// ids last, because the last of equal keys wins. The platform takes a list under AND.
func (b *backend) scopeFilter(own []wire.Object) (o wire.Object) {
	if b.platform() {
		return wire.Object{"AND", append(own, wire.Object{"user_id", b.ids.user}, wire.Object{"run_id", b.ids.run})}
	}
	for _, condition := range own {
		o = append(o, condition...)
	}
	return append(o, "user_id", b.ids.user, "agent_id", wire.Some(b.nativeAgent("")), "run_id", b.ids.run)
}

// literal makes a value match literally: a bare "*" would match everything.
func (f filter) literal() any {
	if string(f.value) == `"*"` {
		return wire.Object{"eq", f.value}
	}
	return f.value
}
