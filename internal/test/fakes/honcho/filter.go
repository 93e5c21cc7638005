package honcho

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// filtered keeps the items that meet a body's filters. columns gives an item's values by name; known are the names that
// may be filtered by.
func filtered[T any](items []T, filters any, model string, known []string, columns func(T) map[string]any) ([]T,
	*answer) {
	f, _ := filters.(map[string]any)
	var out []T
	var bad *answer
	check := func(columns map[string]any) bool {
		for name, want := range f {
			if name == "metadata" {
				if !meetsMetadata(columns["metadata"], want, &bad) {
					return false
				}
				continue
			}
			if !slices.Contains(known, name) {
				a := refuse(422, "Column '%s' is not allowed to be filtered on or does not exist on %s", name, model)
				if model == "Document" {
					a = refuse(422, "Column '%s' does not exist on %s", name, model)
				}
				bad = &a
				return false
			}
			if !meets(name, columns[name], want, &bad) {
				return false
			}
		}
		return true
	}
	if len(items) == 0 {
		check(map[string]any{}) // a wrong filter is wrong of nothing, too
	}
	for _, item := range items {
		if check(columns(item)) {
			out = append(out, item)
		}
		if bad != nil {
			return nil, bad
		}
	}
	return out, bad
}

var operators = []string{"contains", "gt", "gte", "icontains", "in", "lt", "lte", "ne"}

// meets compares a column. The value "*" drops the condition.
func meets(name string, have, want any, bad **answer) bool {
	switch w := want.(type) {
	case string:
		return w == "*" || equal(have, w)
	case []any:
		return slices.Contains(w, any("*")) || slices.ContainsFunc(w, func(v any) bool { return equal(have, v) })
	case map[string]any:
		for op, v := range w {
			if !slices.Contains(operators, op) {
				a := refuse(422, "Invalid filter for column '%s': unsupported operator(s) ['%s']. Expected one of %s "+
					"or a scalar value.", name, op, "['"+strings.Join(operators, "', '")+"']")
				*bad = &a
				return false
			}
			if !operate(op, have, v, bad) {
				return false
			}
		}
		return true
	}
	return equal(have, want)
}

func equal(have, want any) bool {
	if n, isInt := have.(int); isInt {
		have = float64(n)
	}
	return reflect.DeepEqual(have, want)
}

func operate(op string, have, want any, bad **answer) bool {
	if at, isTime := have.(time.Time); isTime {
		text, _ := want.(string)
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			a := refuse(422, "Invalid datetime value: %v", want)
			*bad = &a
			return false
		}
		switch c := at.Compare(t); op {
		case "gte":
			return c >= 0
		case "lte":
			return c <= 0
		case "gt":
			return c > 0
		case "lt":
			return c < 0
		}
		return false
	}
	switch op {
	case "in":
		list, _ := want.([]any)
		return slices.Contains(list, any("*")) || slices.ContainsFunc(list, func(v any) bool { return equal(have, v) })
	case "ne":
		return !equal(have, want)
	case "contains":
		list, _ := want.([]any)
		held, _ := have.([]string)
		return slices.ContainsFunc(list, func(v any) bool { t, _ := v.(string); return slices.Contains(held, t) })
	case "gte":
		n, _ := want.(float64)
		h, _ := have.(int)
		return float64(h) >= n
	}
	return false
}

// meetsMetadata is typed containment. A value "*" matches every row; a range over text that is not a number is a 500.
func meetsMetadata(have, want any, bad **answer) bool {
	h, _ := have.(map[string]any)
	w, isObject := want.(map[string]any)
	if !isObject {
		return want == "*"
	}
	for name, value := range w {
		if slices.Contains(operators, name) {
			a := refuse(422, "Invalid metadata filter: '%s' is an operator", name)
			*bad = &a
			return false
		}
		if value == "*" {
			continue
		}
		if ops, isOps := value.(map[string]any); isOps {
			for op, v := range ops {
				if in, isIn := v.([]any); op == "in" && isIn {
					if !slices.ContainsFunc(in, func(v any) bool {
						return v == "*" || fmt.Sprint(h[name]) == fmt.Sprint(v)
					}) {
						return false
					}
					continue
				}
				if _, numeric := v.(float64); numeric {
					if _, text := h[name].(string); text {
						a := unexpected
						*bad = &a
						return false
					}
				}
				if slices.Contains(operators, op) {
					return false
				}
			}
			if !contains(h[name], value) {
				return false
			}
			continue
		}
		if !contains(h[name], value) {
			return false
		}
	}
	return true
}

// contains is PostgreSQL's @>.
func contains(have, want any) bool {
	if w, isObject := want.(map[string]any); isObject {
		h, _ := have.(map[string]any)
		for k, v := range w {
			if inner, there := h[k]; !there || !contains(inner, v) {
				return false
			}
		}
		return h != nil
	}
	a, _ := json.Marshal(have)
	b, _ := json.Marshal(want)
	return string(a) == string(b)
}

// paged answers a page of a list.
func paged[T any](q *request, items []T, write func(T) any) answer {
	number, size := 1, 50
	for name, into := range map[string]*int{"page": &number, "size": &size} {
		if v, given := q.query[name]; given {
			if _, err := fmt.Sscan(v[0], into); err != nil {
				return wrong("int_parsing", "Input should be a valid integer, unable to parse string as an integer",
					v[0], nil, "query", name)
			}
		}
	}
	switch {
	case number < 1:
		return wrong("greater_than_equal", "Input should be greater than or equal to 1", number,
			map[string]any{"ge": 1}, "query", "page")
	case size < 1 || size > 100:
		return wrong("less_than_equal", "Input should be less than or equal to 100", size, map[string]any{"le": 100},
			"query", "size")
	}
	if v := q.query["reverse"]; len(v) > 0 && v[0] == "true" {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	list := []any{}
	for i := (number - 1) * size; i < len(items) && i < number*size; i++ {
		list = append(list, write(items[i]))
	}
	return ok(map[string]any{"items": list, "total": len(items), "page": number, "size": size,
		"pages": (len(items) + size - 1) / size})
}
