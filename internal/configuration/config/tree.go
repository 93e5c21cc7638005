package config

import (
	"maps"
	"slices"
	"strconv"
)

// The tree of a configuration consists of map[string]any, []any, string, json.Number, bool and nil, and of schema.Odd
// in a layer that is not checked yet.

// lookup finds the value at a path of map keys.
func lookup(tree map[string]any, path []string) (any, bool) {
	var v any = tree
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// eachLeaf visits everything except non-empty maps, in the order of the keys.
func eachLeaf(v any, path []string, visit func(path []string, v any)) {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 && len(path) > 0 {
		visit(path, v)
		return
	}
	for _, key := range sortedKeys(m) {
		eachLeaf(m[key], append(slices.Clip(path), key), visit)
	}
}

// eachValue visits v and everything in it, maps and lists before their elements.
func eachValue(v any, path []string, visit func(path []string, v any)) {
	visit(path, v)
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachValue(v[key], append(slices.Clip(path), key), visit)
		}
	case []any:
		for i, e := range v {
			eachValue(e, append(slices.Clip(path), strconv.Itoa(i)), visit)
		}
	}
}

// mapValues returns a copy of v in which each value for which change returns true is replaced, from the outside in.
func mapValues(v any, path []string, change func(path []string, v any) (any, bool)) any {
	if changed, ok := change(path, v); ok {
		return changed
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			out[key] = mapValues(v[key], append(slices.Clip(path), key), change)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mapValues(e, append(slices.Clip(path), strconv.Itoa(i)), change)
		}
		return out
	}
	return v
}

func copyTree(m map[string]any) map[string]any {
	return mapValues(m, nil, func([]string, any) (any, bool) { return nil, false }).(map[string]any)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
