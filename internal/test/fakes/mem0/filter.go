package mem0

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// member is a key of a JSON object with its value. Filters are read with their order, because the last of equal keys
// wins.
type member struct {
	key   string
	value json.RawMessage
}

func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("want an object")
	}
	var list []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		list = append(list, member{key.(string), value})
	}
	return list, nil
}

// condition reports whether a row fits. missing values are nil.
type condition func(r *row) (bool, error)

// readFilters makes mem0's filters a condition: top-level keys are ANDed, AND's conditions are merged into them, last
// wins.
func readFilters(list []member) (condition, error) {
	flat := map[string]json.RawMessage{}
	var order []string
	put := func(m member) {
		if _, known := flat[m.key]; !known {
			order = append(order, m.key)
		}
		flat[m.key] = m.value
	}
	var logic []condition
	for _, m := range list {
		if !slices.Contains([]string{"AND", "OR", "NOT"}, m.key) {
			put(m)
			continue
		}
		var parts []json.RawMessage
		if json.Unmarshal(m.value, &parts) != nil || len(parts) == 0 {
			return nil, refuse(400, m.key+" operator requires a non-empty list of conditions")
		}
		var any []condition
		for _, part := range parts {
			inner, err := members(part)
			if err != nil {
				return nil, refuse(400, m.key+" operator requires a non-empty list of conditions")
			}
			if m.key == "AND" {
				for _, i := range inner {
					put(i)
				}
				continue
			}
			c, err := all(inner)
			if err != nil {
				return nil, err
			}
			any = append(any, c)
		}
		if m.key != "AND" {
			logic = append(logic, combine(any, m.key == "NOT"))
		}
	}
	var merged []member
	for _, key := range order {
		merged = append(merged, member{key, flat[key]})
	}
	c, err := all(merged)
	if err != nil {
		return nil, err
	}
	return func(r *row) (bool, error) {
		for _, c := range append([]condition{c}, logic...) {
			if ok, err := c(r); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}, nil
}

// combine evaluates OR, and NOT, which is true if none of the filters match.
func combine(list []condition, none bool) condition {
	return func(r *row) (bool, error) {
		for _, c := range list {
			if ok, err := c(r); ok || err != nil {
				return !none && err == nil, err
			}
		}
		return none, nil
	}
}

func all(list []member) (condition, error) {
	var conditions []condition
	for _, m := range list {
		c, err := one(m.key, m.value)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
	}
	return func(r *row) (bool, error) {
		for _, c := range conditions {
			if ok, err := c(r); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}, nil
}

// one is the condition on one key, as pgvector's payload->>key compares: texts.
func one(key string, raw json.RawMessage) (condition, error) {
	if strings.Contains(string(raw), `\u0000`) {
		return nil, upstream("unknown")
	}
	var value any
	_ = json.Unmarshal(raw, &value)
	switch v := value.(type) {
	case string:
		if v == "*" {
			return func(r *row) (bool, error) { _, ok := r.payload(key); return ok, nil }, nil
		}
	case []any:
		return oneOf(key, v, true), nil
	case map[string]any:
		return operators(key, v)
	}
	return oneOf(key, []any{value}, true), nil
}

// oneOf compares with a list of values. A row without the key fits neither way.
func oneOf(key string, values []any, in bool) condition {
	var texts []string
	for _, v := range values {
		texts = append(texts, textOf(v))
	}
	return func(r *row) (bool, error) {
		own, ok := r.payload(key)
		return ok && slices.Contains(texts, own) == in, nil
	}
}

func operators(key string, list map[string]any) (condition, error) {
	var conditions []condition
	for op, value := range list {
		switch op {
		case "eq", "ne":
			text := textOf(value)
			if b, ok := value.(bool); ok { // compared with Python's text of it
				text = map[bool]string{true: "True", false: "False"}[b]
			}
			conditions = append(conditions, oneOf(key, []any{text}, op == "eq"))
		case "in", "nin":
			values, _ := value.([]any)
			conditions = append(conditions, oneOf(key, values, op == "in"))
		case "contains", "icontains":
			part, fold := textOf(value), op == "icontains"
			conditions = append(conditions, func(r *row) (bool, error) {
				own, ok := r.payload(key)
				if fold {
					return ok && strings.Contains(strings.ToLower(own), strings.ToLower(part)), nil
				}
				return ok && strings.Contains(own, part), nil
			})
		case "gt", "gte", "lt", "lte":
			limit, err := strconv.ParseFloat(textOf(value), 64)
			if err != nil {
				return nil, refuse(400, "could not convert string to float: '"+textOf(value)+"'")
			}
			conditions = append(conditions, compare(key, op, limit))
		default:
			return nil, refuse(400, "Unsupported filter operator: "+op)
		}
	}
	return func(r *row) (bool, error) {
		for _, c := range conditions {
			if ok, err := c(r); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}, nil
}

func compare(key, op string, limit float64) condition {
	return func(r *row) (bool, error) {
		own, ok := r.payload(key)
		if !ok {
			return false, nil
		}
		n, err := strconv.ParseFloat(own, 64)
		if err != nil {
			return false, upstream("unknown") // the database cannot cast it
		}
		return map[string]bool{"gt": n > limit, "gte": n >= limit, "lt": n < limit, "lte": n <= limit}[op], nil
	}
}

// textOf is a JSON value as PostgreSQL's ->> shows it; null is compared as Python's text of it.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return v
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

// payload is what a filter sees of a row.
func (r *row) payload(key string) (string, bool) {
	own := map[string]string{"user_id": r.user, "agent_id": r.agent, "run_id": r.run, "data": r.text, "hash": r.hash,
		"role":          r.role,
		"attributed_to": r.attributed, "created_at": r.created, "updated_at": r.updated,
		"expiration_date": r.expiration}
	if text, ok := own[key]; ok {
		return text, text != ""
	}
	v, ok := r.metadata[key]
	if !ok || v == nil {
		return "", false
	}
	return textOf(v), true
}
