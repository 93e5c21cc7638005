package config

import (
	"encoding/json"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// check validates one layer against the schema, and normalises it for the later steps: no nulls, which mean the same as
// absence, and whole numbers as digits.
func (l *loader) check(layer *layer) {
	l.problems.tree = layer.tree
	layer.tree = tidy(l.keys, layer.tree)
	found, err := described().schema.Check(layer.tree)
	if err != nil {
		l.problems.add(layer.origin(nil), nil, "%v", err)
	}
	for _, m := range found {
		switch {
		case m.Missing: // another layer may have it
		case m.Unknown:
			l.problems.add(layer.origin(m.Path), m.Path, "%s", l.unknownKey(m))
		default:
			l.problems.add(layer.origin(m.Path), m.Path, "%s", m.Text)
		}
	}
}

func tidy(n *node, m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		child := n.children[name]
		object, isObject := v.(map[string]any)
		number, isNumber := v.(json.Number)
		switch {
		case child == nil:
			out[name] = v // an unknown key
		case v == nil:
		case child.key == nil && isObject:
			out[name] = tidy(child, object)
		case child.key != nil && child.key.kind == aMap && isObject:
			out[name] = child.key.tidyMap(object)
		case child.key != nil && child.key.kind == anInteger && isNumber:
			out[name] = json.Number(schema.Canonical(number))
		default:
			out[name] = v
		}
	}
	return out
}

// tidyMap drops nulls from a map of names. A name with nothing after it, as in "graphiti:", becomes an empty object.
// Provider blocks are left alone, because null has a meaning there.
func (k *key) tidyMap(m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		object, isObject := v.(map[string]any)
		switch {
		case v == nil && k.path == "telemetry.otlp.headers": // not a header
		case v == nil:
			out[name] = map[string]any{}
		case isObject && len(k.entry) > 0:
			entry := map[string]any{}
			for key, e := range object {
				if e != nil {
					entry[key] = e
				}
			}
			out[name] = entry
		default:
			out[name] = v
		}
	}
	return out
}

// whichProvider is the message for a key called provider, which seems natural and does not exist.
const whichProvider = "which provider serves is set by memory.backend or memory.condition"

// unknownKey is the message for an unknown key, with where it belongs if that is known.
func (l *loader) unknownKey(m schema.Mistake) string {
	path, name := m.Path[:len(m.Path)-1], m.Path[len(m.Path)-1]
	parent, steps := l.keys.find(path)
	if steps < len(path) { // inside a secret or a header
		return m.Text + "; the credential itself does not belong into the configuration"
	}
	near := abi.Nearest(name, parent.order) != ""
	if name == "provider" || !near && abi.Nearest(name, []string{"provider"}) != "" {
		return "unknown key; " + whichProvider
	}
	switch {
	case l.blockInstead(m.Path) != "":
		return "unknown key; " + l.blockInstead(m.Path)
	case near:
	case elsewhere(name) != "":
		return "unknown key; the key " + name + " stands elsewhere: " + elsewhere(name)
	case parent == l.keys:
		return "unknown key; at the top stand " + strings.Join(parent.order, ", ")
	}
	return m.Text
}

// blockInstead explains where a provider's block belongs, if path leads to one at the top or directly under memory.
func (l *loader) blockInstead(path []string) string {
	if len(path) > 1 && path[0] == "memory" {
		path = path[1:]
	}
	for _, p := range l.Known {
		if p.Name == path[0] {
			return "the block of " + p.Name + " belongs under memory." + p.word() + "s"
		}
	}
	return ""
}
