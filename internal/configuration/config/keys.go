package config

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// description is the JSON Schema of the configuration: the only place that has its keys, their defaults and help.
//
//go:embed memhost.schema.json
var description []byte

// kind is the type of a key's value.
type kind int

const (
	aText kind = iota
	aTruth
	anInteger
	aList
	// aMap maps names: of providers to their native blocks, of secrets to their sources, of headers to {secret: NAME}.
	aMap
)

// Key is one key of the configuration outside the native blocks.
type Key struct {
	// Path is dotted: memory.scope.run_id.
	Path string
	// Env is the variable that sets it. In memory.backends, memory.conditions and secrets, NAME and KEY stand for the
	// other steps of the path.
	Env string
	// Flag is the flag that sets it, without dashes; "" for none.
	Flag string
	// Default is nil, a string, an int, a bool or an empty []string.
	Default any
	// Wants describes the values that are accepted.
	Wants string
	// Doc is one or several sentences of plain text. Page is the same as Markdown for the pages in docs, with a link to
	// more.
	Doc, Page string
}

type key struct {
	path string
	kind kind
	flag string
	def  any
	// doc is Markdown. see is the page that says more, as a link from a page in docs.
	doc, see string
	wants    string
	// entry holds the keys of each entry of a map; empty for a native block.
	entry []string
}

// described is the parsed description.
var described = sync.OnceValue(readDescription)

type parsedSchema struct {
	document map[string]any
	schema   *schema.Schema
	keys     []key
}

// readDescription panics if memhost.schema.json, which is part of the program, is invalid.
func readDescription() parsedSchema {
	var keys []key
	var groups []string
	document, err := schema.Decode(description, func(path []string, _ int) {
		// /properties/memory/properties/backend: keys are visited in the order of the text.
		var steps []string
		for i := 0; i+1 < len(path) && path[i] == "properties"; i += 2 {
			steps = append(steps, path[i+1])
		}
		switch at := strings.Join(steps, "."); {
		case len(path) > 2*len(steps) && path[len(path)-1] == "properties" && len(path) == 2*len(steps)+1:
			groups = append(groups, at)
		case len(steps) > 0 && len(path) == 2*len(steps):
			keys = append(keys, key{path: at})
		}
	})
	if err != nil {
		panic(err)
	}
	compiled, err := schema.Compile(description, formats()...)
	if err != nil {
		panic(err)
	}
	keys = slices.DeleteFunc(keys, func(k key) bool { return slices.Contains(groups, k.path) })
	for i := range keys {
		keys[i].read(document.(map[string]any))
		keys[i].wants = compiled.Wants(strings.Split(keys[i].path, ".")...)
	}
	return parsedSchema{document.(map[string]any), compiled, keys}
}

// read sets a key's kind, default and help from the description.
func (k *key) read(at map[string]any) {
	for _, step := range strings.Split(k.path, ".") {
		at = at["properties"].(map[string]any)[step].(map[string]any)
	}
	k.flag, _ = at["x-flag"].(string)
	k.doc, _ = at["description"].(string)
	k.see, _ = at["x-see"].(string)
	switch at["type"] {
	case "boolean":
		k.kind = aTruth
	case "integer":
		k.kind = anInteger
	case "array":
		k.kind = aList
	case "object":
		k.kind = aMap
		names, _ := at["patternProperties"].(map[string]any)
		for _, entry := range names {
			k.entry = sortedKeys(entry.(map[string]any)["properties"].(map[string]any))
		}
	}
	k.def = at["default"]
}

// keys returns all keys, in the order in which they are shown.
func keys() []key { return described().keys }

// Keys lists the configuration's keys, for help texts and documentation.
func Keys() []Key {
	var list []Key
	for _, k := range keys() {
		env := envName(strings.Split(k.path, "."))
		if k.kind == aMap {
			env += envLevel + "NAME" + envLevel + k.example()
		}
		page := k.doc
		if k.see != "" {
			name, _, _ := strings.Cut(k.see, "#")
			if name == "" {
				name = "below"
			}
			page += " See [" + name + "](" + k.see + ")."
		}
		list = append(list, Key{Path: k.path, Env: env, Flag: k.flag, Default: k.shownDefault(), Wants: k.wants,
			Doc: k.plainDoc(), Page: page})
	}
	return list
}

// plainDoc returns the key's help without Markdown.
func (k *key) plainDoc() string { return strings.ReplaceAll(k.doc, "`", "") }

// example is the last step of a variable that sets a part of a map's entry.
func (k *key) example() string {
	if len(k.entry) > 0 {
		return strings.ToUpper(k.entry[0])
	}
	return "KEY"
}

func (k *key) shownDefault() any {
	switch d := k.def.(type) {
	case json.Number:
		n, _ := d.Int64()
		return int(n)
	case []any:
		return []string{}
	}
	return k.def
}

// FlagKeys maps the flags that Options.Flags may hold, without dashes, to the keys they set.
func FlagKeys() map[string]string {
	m := map[string]string{}
	for _, k := range keys() {
		if k.flag != "" {
			m[k.flag] = k.path
		}
	}
	return m
}

// textual reports whether the key takes a text as it is, so that 123 in a variable is the text 123.
func (k *key) textual() bool { return k.kind == aText }

// node is a place in the tree of keys: a group, or a key.
type node struct {
	key      *key
	children map[string]*node
	order    []string
}

func keyTree() *node {
	root := &node{children: map[string]*node{}}
	all := keys()
	for i := range all {
		n := root
		for _, step := range strings.Split(all[i].path, ".") {
			next := n.children[step]
			if next == nil {
				next = &node{children: map[string]*node{}}
				n.children[step] = next
				n.order = append(n.order, step)
			}
			n = next
		}
		n.key = &all[i]
	}
	return root
}

// find returns the deepest node on path and how many steps lead to it.
func (n *node) find(path []string) (*node, int) {
	for i, step := range path {
		next := n.children[step]
		if next == nil {
			return n, i
		}
		n = next
	}
	return n, len(path)
}

// elsewhere finds the path of a key of this name in another group: backend is in memory.
func elsewhere(name string) string {
	for _, k := range keys() {
		if strings.HasSuffix(k.path, "."+name) {
			return k.path
		}
	}
	return ""
}

// nearElsewhere is the path of the key whose last step is most like name: server.listen for lisen. It is "" when none
// is.
func nearElsewhere(name string) string {
	var last []string
	for _, k := range keys() {
		last = append(last, k.path[strings.LastIndex(k.path, ".")+1:])
	}
	near := abi.Nearest(name, last)
	if near == "" {
		return ""
	}
	return elsewhere(near)
}

// defaults is the lowest layer.
func (l *loader) defaults() *layer {
	tree := map[string]any{}
	for _, k := range keys() {
		if k.def == nil {
			continue
		}
		set(tree, strings.Split(k.path, "."), k.def)
	}
	return &layer{kind: KindDefault, tree: tree, from: map[string]Origin{"": {Kind: KindDefault}}}
}

// set puts v at a path, making maps on the way.
func set(tree map[string]any, path []string, v any) {
	for _, step := range path[:len(path)-1] {
		next, ok := tree[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[step] = next
		}
		tree = next
	}
	tree[path[len(path)-1]] = v
}

// remove deletes the key at a path.
func remove(tree map[string]any, path ...string) {
	if m, ok := lookup(tree, path[:len(path)-1]); ok {
		if m, ok := m.(map[string]any); ok {
			delete(m, path[len(path)-1])
		}
	}
}

func has(tree map[string]any, path ...string) bool {
	v, ok := lookup(tree, path)
	return ok && v != nil
}

func isOneOf(word string, list []string) bool { return slices.Contains(list, word) }
