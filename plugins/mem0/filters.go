package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// filter is a condition on a metadata key: that it has this value.
type filter struct {
	key   string
	value abi.Raw
}

// idKeys are what mem0 separates scopes by. A filter that named one could widen the scope: inside AND the last one wins.
var idKeys = []string{"user_id", "agent_id", "run_id", "app_id", "actor_id", "session"}

// filtersOf makes mem0's conditions of a request's labels and filters. ignored are filters for which mem0 keeps nothing that could be filtered: an event's own
// metadata is nested, and nested values are not.
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
		case key != "" && jsontext.Raw(value).Type() == jsontext.String:
			filters = append(filters, filter{key, abi.Raw(withoutNUL(value))})
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

// checkFilter refuses native ids and logic, however deep.
func checkFilter(path, name string, value abi.Raw) error {
	wrong := func(what string) error {
		return abi.NewError(abi.CodeInvalidArgument, path+": "+what).WithHint("the scope of a request says whose memory is meant; filters cannot change it")
	}
	switch {
	case slices.Contains(idKeys, strings.ToLower(strings.TrimSpace(name))):
		return wrong("names a native id")
	case slices.Contains([]string{"and", "or", "not"}, strings.ToLower(strings.TrimSpace(name))):
		return wrong("combines conditions, which is not offered")
	}
	return eachIn(jsontext.DecodeBytes(value), func(d *jsontext.Decoder, key string) error {
		inner, err := d.Raw()
		if err != nil {
			return err
		}
		return checkFilter(path, key, abi.Raw(inner))
	})
}

// writeFilters writes the conditions with the scope's ids. On the self-hosted server they are one flat object with the ids last: the last of equal keys wins.
// The platform takes a list under AND, metadata wrapped; as_of there leaves out what is later.
func (b *backend) writeFilters(j *jsontext.Encoder, filters []filter, asOf string) {
	text := func(key, value string) {
		j.FieldStart(key)
		j.Str(value)
	}
	if !b.platform() {
		j.ObjStart()
		for _, f := range filters {
			j.FieldStart(f.key)
			writeLiteral(j, f.value)
		}
		text("user_id", b.ids.user)
		text("run_id", b.ids.run)
		j.ObjEnd()
		return
	}
	j.ObjStart()
	j.FieldStart("AND")
	j.ArrStart()
	for _, f := range filters {
		j.ObjStart()
		j.FieldStart("metadata")
		j.ObjStart()
		j.FieldStart(f.key)
		writeLiteral(j, f.value)
		j.ObjEnd()
		j.ObjEnd()
	}
	if asOf != "" {
		j.ObjStart()
		j.FieldStart("created_at")
		j.ObjStart()
		text("lte", asOf)
		j.ObjEnd()
		j.ObjEnd()
	}
	for _, id := range [][2]string{{"user_id", b.ids.user}, {"run_id", b.ids.run}} {
		j.ObjStart()
		text(id[0], id[1])
		j.ObjEnd()
	}
	j.ArrEnd()
	j.ObjEnd()
}

// writeLiteral writes a value that means itself: a bare "*" would mean any.
func writeLiteral(j *jsontext.Encoder, value abi.Raw) {
	if string(value) != `"*"` {
		j.Raw(jsontext.Raw(value))
		return
	}
	j.ObjStart()
	j.FieldStart("eq")
	j.Raw(jsontext.Raw(value))
	j.ObjEnd()
}
