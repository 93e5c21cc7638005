package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// settleChoice leaves at most one of backend and condition in the layers: a layer's choice replaces that of a lower
// layer, and the default applies only if no file sets memory and no plugin is named.
func (l *loader) settleChoice() {
	for i, layer := range l.layers {
		backend, condition := has(layer.tree, "memory", WordBackend), has(layer.tree, "memory", WordCondition)
		if backend && condition {
			l.problems.add(layer.origin([]string{"memory", WordCondition}), []string{"memory"},
				"sets both backend and condition, want exactly one: remove the other")
		}
		replaced := backend || condition || has(layer.tree, "memory", "plugin") || layer.kind == KindFile &&
			has(layer.tree, "memory")
		for j, lower := range l.layers[:i] {
			// Any statement about the provider replaces the default; only a choice replaces a choice.
			if backend || condition || replaced && j == 0 {
				remove(lower.tree, "memory", WordBackend)
				remove(lower.tree, "memory", WordCondition)
			}
		}
	}
}

// choose finds the provider's name and checks it against the known ones.
func (l *loader) choose() {
	c := l.config
	for _, word := range []string{WordBackend, WordCondition} {
		if v, ok := lookup(c.tree, []string{"memory", word}); ok {
			c.word = word
			c.name, _ = v.(string)
		}
	}
	plugin := c.Memory.Plugin
	at := []string{"memory", "plugin"}
	if isPluginFile(plugin) {
		c.pluginPath = l.resolve(l.folder(l.origin(at...)), plugin)
	}
	known, here := l.Known, "is built in"
	if plugin != "" {
		known, here = nil, "is in "+plugin
		if l.Module != nil {
			name, isFile := c.PluginFile()
			if !isFile {
				name = plugin
			}
			var err error
			if known, err = l.Module(name, isFile); err != nil {
				e := abi.AsError(err)
				l.later = e.Code == abi.CodeUnavailable
				l.problems.add(l.origin(at...), at, "cannot use %s: %s", plugin,
					strings.TrimSuffix(e.Message+"; "+e.Hint, "; "))
				return
			}
		}
	}
	if c.name == "" && !l.onlyOne(known) {
		return
	}
	if len(known) > 0 {
		l.checkName(known, here)
	}
}

// onlyOne chooses the provider of a plugin that serves just one.
func (l *loader) onlyOne(known []Provider) bool {
	c := l.config
	plugin := c.Memory.Plugin
	if plugin == "" {
		l.problems.add(l.origin("memory"), []string{"memory"},
			"names no provider: set backend: NAME or condition: NAME%s", names(l.Known))
		return false
	}
	if len(known) != 1 {
		// A built-in module usually has the name of its main provider.
		same := slices.IndexFunc(append(slices.Clone(known), l.Known...), func(p Provider) bool {
			return p.Name == plugin
		})
		if same < 0 {
			l.problems.add(l.origin("memory", "plugin"), []string{"memory"},
				"names no provider of %s: set backend: NAME or condition: NAME%s", plugin, names(known))
			return false
		}
		known = append(slices.Clone(known), l.Known...)[same : same+1]
	}
	c.name, c.word = known[0].Name, known[0].word()
	set(c.tree, []string{"memory", c.word}, c.name)
	c.sources[joinPath([]string{"memory", c.word})] = l.origin("memory", "plugin")
	return true
}

// names lists providers at the end of a sentence.
func names(list []Provider) string {
	if len(list) == 0 {
		return ""
	}
	var words []string
	for _, p := range list {
		words = append(words, p.word()+": "+p.Name)
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func (l *loader) checkName(known []Provider, here string) {
	c := l.config
	at := []string{"memory", c.word}
	i := slices.IndexFunc(known, func(p Provider) bool { return p.Name == c.name })
	if i >= 0 {
		if word := known[i].word(); word != c.word {
			l.problems.add(l.origin(at...), at, "%s is a %s: write %s: %s, and its block under memory.%ss", c.name,
				word, word, c.name, word)
		}
		return
	}
	var all []string
	for _, p := range known {
		all = append(all, p.Name)
	}
	if near := abi.Nearest(c.name, all); near != "" {
		p := known[slices.Index(all, near)]
		l.problems.add(l.origin(at...), at, "no provider called %q %s, did you mean %s: %s?", c.name, here, p.word(),
			near)
		return
	}
	hint := ""
	if c.Memory.Plugin == "" {
		hint = "; a module of your own is named by memory.plugin"
	}
	l.problems.add(l.origin(at...), at, "no provider called %q %s%s%s", c.name, here, names(known), hint)
}

// chosenBlock finds the chosen provider's block in the merged tree. A missing block is not a mistake, unless a
// similarly named one was probably meant.
func (l *loader) chosenBlock() (block map[string]any, path []string) {
	c := l.config
	own := c.word + "s"
	path = []string{"memory", own, c.name}
	if v, ok := lookup(c.tree, path); ok {
		block, _ = v.(map[string]any)
		return block, path
	}
	for _, group := range []string{own, "backends", "conditions"} {
		v, _ := lookup(c.tree, []string{"memory", group})
		blocks, _ := v.(map[string]any)
		var others []string
		for _, name := range sortedKeys(blocks) {
			// A block of another existing provider is kept for later use.
			if name == c.name || !slices.ContainsFunc(l.Known, func(p Provider) bool { return p.Name == name }) {
				others = append(others, name)
			}
		}
		if near := abi.Nearest(c.name, others); near != "" {
			at := []string{"memory", group, near}
			l.problems.add(l.origin(at...), at, "%s is chosen, but its block would be %s: rename or move this one",
				c.name, fmt.Sprintf("memory.%s.%s", own, c.name))
			break
		}
	}
	return map[string]any{}, path
}
