package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/internal/configuration/schema"
	"go.yaml.in/yaml/v3"
)

// Source tells where the value at a path came from: a dotted path as Paths lists them. For a path inside a list or an
// included file it is where the list or the file is named; for a value that is not set, the default.
func (c *Config) Source(path string) Origin {
	var best Origin
	longest := -1
	for at, o := range c.sources {
		p := schema.Path(strings.Split(at, delimiter), nil)
		if (p == path || strings.HasPrefix(path, p+".") || strings.HasPrefix(path, p+"[")) && len(p) > longest {
			best, longest = o, len(p)
		}
	}
	if longest < 0 {
		return Origin{Kind: KindDefault}
	}
	return best
}

// Paths lists the leaves of the effective configuration, in the order in which YAML prints them.
func (c *Config) Paths() []string {
	var paths []string
	c.eachShown(func(path []string, _ any) { paths = append(paths, schema.Path(path, nil)) })
	return paths
}

// Blanked returns the effective configuration in a form that may be shown: with the chosen block only, with the sources
// of secrets and never their values, and with "***" for everything in a block or URL that looks like a credential. It
// consists of maps, lists, strings, booleans, int64 and float64.
func (c *Config) Blanked() map[string]any {
	return plain(c.shown()).(map[string]any)
}

// shown is the effective configuration, blanked, in the types of the tree.
func (c *Config) shown() map[string]any {
	tree := copyTree(c.tree)
	memory, _ := tree["memory"].(map[string]any)
	delete(memory, "backends")
	delete(memory, "conditions")
	set(tree, []string{"memory", c.word + "s", c.name}, copyTree(c.block))
	set(tree, []string{"data", "dir"}, c.Data.Dir)
	secrets, _ := tree["secrets"].(map[string]any)
	delete(tree, "secrets") // their keys look like credentials, but the values are only sources
	out := schema.Blank(tree).(map[string]any)
	if len(secrets) > 0 {
		out["secrets"] = secrets
	}
	return out
}

// plain converts json.Number to int64 or float64 if nothing is lost.
func plain(v any) any {
	return mapValues(v, nil, func(_ []string, v any) (any, bool) {
		n, ok := v.(json.Number)
		if !ok {
			return nil, false
		}
		if i, err := n.Int64(); err == nil {
			return i, true
		}
		f, err := n.Float64()
		if err != nil {
			return string(n), true
		}
		return f, true
	})
}

func (c *Config) eachShown(visit func(path []string, v any)) {
	var walk func(n *node, v any, path []string)
	walk = func(n *node, v any, path []string) {
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 && len(path) > 0 {
			visit(path, v)
			return
		}
		for _, key := range n.inOrder(m) {
			walk(n.child(key), m[key], append(slices.Clip(path), key))
		}
	}
	walk(keyTree(), c.shown(), nil)
}

// inOrder lists the keys of m in the order of the configuration, then all others by name.
func (n *node) inOrder(m map[string]any) []string {
	var list []string
	if n != nil {
		for _, key := range n.order {
			if _, ok := m[key]; ok {
				list = append(list, key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(list, key) {
			list = append(list, key)
		}
	}
	return list
}

func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	return n.children[key]
}

// YAML prints what Blanked returns, in the order of the documentation; with origins each value has a comment that says
// where it came from. Without "***", it is a configuration that means the same.
func (c *Config) YAML(origins bool) []byte {
	var tree func(n *node, v any, path []string) *yaml.Node
	comment := func(y *yaml.Node, path []string) *yaml.Node {
		if origins {
			y.LineComment = c.Source(schema.Path(path, nil)).String()
		}
		return y
	}
	tree = func(n *node, v any, path []string) *yaml.Node {
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 && len(path) > 0 {
			return comment(yamlValue(v), path)
		}
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range n.inOrder(m) {
			y.Content = append(y.Content, yamlValue(key), tree(n.child(key), m[key], append(slices.Clip(path), key)))
		}
		return y
	}
	return yamlText(tree(keyTree(), c.shown(), nil))
}

func yamlText(y *yaml.Node) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(y); err != nil {
		// Our nodes are always valid, except for strings that are not UTF-8, which Load refuses.
		return []byte("# " + strconv.Quote(err.Error()) + "\n")
	}
	return b.Bytes()
}

// yamlValue is a value on one line, with strings in quotes if YAML would read them as something else.
func yamlValue(v any) *yaml.Node {
	switch v := v.(type) {
	case string:
		y := new(yaml.Node)
		y.SetString(v)
		if y.Style == 0 && ambiguous(v) {
			y.Style = yaml.DoubleQuotedStyle
		}
		return y
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(v), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(v)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case []any:
		y := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, e := range v {
			y.Content = append(y.Content, yamlValue(e))
		}
		return y
	case map[string]any:
		y := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, key := range sortedKeys(v) {
			y.Content = append(y.Content, yamlValue(key), yamlValue(v[key]))
		}
		return y
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// ambiguous reports whether a text without quotes would be read as another type, here or by YAML 1.1.
func ambiguous(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "=":
		return true
	}
	plain := yaml.Node{Kind: yaml.ScalarNode, Value: s}
	return plain.ShortTag() != "!!str"
}
