package memos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filter is a request's condition as the server understands it.
type filter struct {
	// none matches nothing: the server's query broke on it.
	none  bool
	any   bool
	conds []cond
}

type cond struct {
	key, op string
	value   any
}

// readFilter reads a filter as the server does: a bare object is no filter, an extra key a 400, a nested one or a
// broken key finds nothing, an unknown operator is not there.
func readFilter(in object) (filter, *problem) {
	raw := asObject(in["filter"])
	and, isAnd := raw["and"].([]any)
	or, isOr := raw["or"].([]any)
	if !isAnd && !isOr {
		return filter{}, nil
	}
	if len(raw) > 1 {
		extra := slices.DeleteFunc(slices.Sorted(maps.Keys(raw)), func(k string) bool {
			return k == "and" || k == "or"
		})
		return filter{}, bad("Invalid filter: top-level 'and'/'or' cannot coexist with per-cube keys {'" +
			strings.Join(extra, "', '") +
			"'}. Use either a unified filter or per-cube filter, not both.")
	}
	f := filter{any: isOr}
	for _, one := range append(and, or...) {
		for key, value := range asObject(one) {
			switch v := value.(type) {
			case nil:
				f.none = true
			case object:
				for op, operand := range v {
					if slices.Contains([]string{"gt", "lt", "gte", "lte", "contains", "in", "like"}, op) {
						f.conds = append(f.conds, cond{key, op, operand})
					}
				}
			default:
				f.conds = append(f.conds, cond{key, "", v})
			}
			if key == "and" || key == "or" || strings.ContainsAny(key, "'\"`. ") {
				f.none = true
			}
		}
	}
	return f, nil
}

func (f filter) matches(n *node) bool {
	if f.none {
		return false
	}
	if len(f.conds) == 0 {
		return true
	}
	for _, c := range f.conds {
		if c.holds(n) == f.any {
			return f.any
		}
	}
	return !f.any
}

func (c cond) holds(n *node) bool {
	have := n.property(c.key)
	switch c.op {
	case "":
		return have != nil && fmt.Sprint(have) == fmt.Sprint(c.value)
	case "contains":
		list, _ := have.([]string)
		return slices.Contains(list, fmt.Sprint(c.value))
	case "in":
		list, _ := c.value.([]any)
		return slices.ContainsFunc(list, func(one any) bool {
			return have != nil && fmt.Sprint(one) == fmt.Sprint(have)
		})
	case "like":
		return have != nil && strings.Contains(fmt.Sprint(have), fmt.Sprint(c.value))
	}
	a, b := fmt.Sprint(have), fmt.Sprint(c.value)
	shorter := min(len(a), len(b))
	order := strings.Compare(a[:shorter], b[:shorter])
	switch c.op {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	}
	return order <= 0
}

// property is a field of the node by the name under which the graph has it.
func (n *node) property(key string) any {
	switch key {
	case "session_id":
		return n.sessionID
	case "user_id":
		return n.userID
	case "status":
		return n.status
	case "tags":
		return n.tags
	case "created_at":
		return n.created
	case "updated_at":
		return n.updated
	case "memory_type":
		return n.kind
	case "covered_history":
		if n.covered == "" {
			return nil
		}
		return n.covered
	}
	return n.labels[key]
}
