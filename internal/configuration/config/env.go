package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/memhost/memhost/abi"
	"go.yaml.in/yaml/v3"
)

const (
	envPrefix = "MEMHOST_"
	envLevel  = "__"
)

// reservedEnv lists variables with our prefix that are not configuration. The last three belong to plugins for agents
// (docs/agents.md), and a user may have set them for all programs.
func reservedEnv() []string {
	return []string{"MEMHOST_TOKEN", "MEMHOST_SERVER", envFile, "MEMHOST_TOOLCHAIN", "MEMHOST_HOOK",
		"MEMHOST_MIRRORS", "MEMHOST_RUN", "MEMHOST_USER", "MEMHOST_QUEUE"}
}

// envName is the variable that sets the key at path: MEMHOST_MEMORY__SCOPE__RUN_ID.
func envName(path []string) string {
	return envPrefix + strings.ToUpper(strings.Join(path, envLevel))
}

// envPath returns the path of the key that a variable sets; ok is false for other variables. Names are lower-cased: a
// key with capitals, or with two underscores in a row, can only be set in a file.
func envPath(name string) (path []string, ok bool) {
	rest, ok := strings.CutPrefix(name, envPrefix)
	if !ok || slices.Contains(reservedEnv(), name) {
		return nil, false
	}
	return oneName(strings.Split(strings.ToLower(rest), envLevel)), true
}

// oneName maps alternative names of a key, which events and the command line use, to its path: memory.scope.user_id to
// memory.scope.persona_id.
func oneName(path []string) []string {
	if slices.Equal(path, []string{"memory", "scope", "user_id"}) {
		return []string{"memory", "scope", "persona_id"}
	}
	return path
}

func lookupEnv(environ []string, name string) (string, bool) {
	for _, pair := range slices.Backward(environ) {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// place says what a path names.
type place int

const (
	nowhere place = iota
	aGroup
	aKey
	aBlock   // a name in a map as a whole, or the map
	inABlock // a key inside a native block
	anEntry  // a key of a secret or header
)

// locate finds out what path names, and the known key along it.
func (n *node) locate(path []string) (place, *key) {
	at, steps := n.find(path)
	rest := path[steps:]
	if slices.Contains(path, "") {
		return nowhere, nil
	}
	switch {
	case at.key == nil && len(rest) == 0:
		return aGroup, nil
	case at.key == nil:
		return nowhere, nil
	case at.key.kind == aMap && len(rest) < 2:
		return aBlock, at.key
	case at.key.kind == aMap && len(at.key.entry) == 0:
		return inABlock, at.key
	case at.key.kind == aMap && len(rest) == 2 && isOneOf(rest[1], at.key.entry):
		return anEntry, at.key
	case at.key.kind != aMap && len(rest) == 0:
		return aKey, at.key
	}
	return nowhere, nil
}

// envReader builds the layer of the environment.
type envReader struct {
	keys     *node
	layer    *layer
	problems *problems
	unknown  []string // variables that name no key
	whole    []string // variables that name a group or a block
	names    map[string]string
}

func (l *loader) readEnv() *layer {
	r := &envReader{keys: l.keys, problems: &l.problems, names: map[string]string{},
		layer: &layer{kind: KindEnv, tree: map[string]any{}, from: map[string]Origin{}}}
	l.env = r
	provider := env.Provider(delimiter, env.Opt{Prefix: envPrefix, TransformFunc: r.transform,
		EnvironFunc: func() []string { return l.Environ }})
	// Two passes: the first only collects. Otherwise a variable for a key inside another variable's value would be lost
	// or not depending on their order.
	if _, err := provider.Read(); err != nil {
		l.problems.add(Origin{Kind: KindEnv, Name: "environment"}, nil, "%v", err)
		return r.layer
	}
	if r.contradict() {
		return r.layer
	}
	tree, err := provider.Read()
	if err != nil {
		l.problems.add(Origin{Kind: KindEnv, Name: "environment"}, nil, "%v", err)
		return r.layer
	}
	r.layer.tree = tree
	return r.layer
}

// transform returns the path and the value of a variable for koanf, or "" for one that sets nothing.
func (r *envReader) transform(name, text string) (string, any) {
	path, ok := envPath(name)
	if !ok {
		return "", nil
	}
	where, k := r.keys.locate(path)
	switch {
	case where == nowhere:
		r.note(&r.unknown, name)
		return "", nil
	case text == "": // an empty variable counts as unset, as in compose files
		return "", nil
	case where == aGroup || where == aBlock:
		r.note(&r.whole, name)
		return "", nil
	}
	at := joinPath(path)
	r.names[name] = at
	r.layer.from[at] = Origin{Kind: KindEnv, Name: name}
	return at, textValue(where, k, text)
}

func (r *envReader) note(list *[]string, name string) {
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// contradict reports variables of which one sets the same value as another, or a part of it.
func (r *envReader) contradict() bool {
	found := false
	names := sortedKeys(r.names)
	for i, a := range names {
		for j, b := range names {
			x, y := r.names[a], r.names[b]
			if i != j && (x == y && i < j || strings.HasPrefix(y, x+delimiter)) {
				r.problems.add(Origin{Kind: KindEnv, Name: a}, nil, "contradicts %s: both set %s; remove one", b,
					strings.ReplaceAll(x, delimiter, "."))
				found = true
			}
		}
	}
	return found
}

// refuseUnknown reports variables that name no key but seem to be meant for one. Others with our prefix are ignored:
// they hold secrets for another configuration, or Kubernetes makes them up for a Service called memhost.
func (l *loader) refuseUnknown(tree map[string]any) {
	r, p := l.env, &l.problems
	secrets := map[string]bool{}
	if all, ok := tree["secrets"].(map[string]any); ok {
		for _, s := range all {
			if s, ok := s.(map[string]any); ok {
				name, _ := s["env"].(string)
				secrets[name] = true
			}
		}
	}
	slices.Sort(r.unknown)
	for _, name := range r.unknown {
		if text := l.unknownEnv(name); text != "" && !secrets[name] {
			p.add(Origin{Kind: KindEnv, Name: name}, nil, "%s", text)
		}
	}
	slices.Sort(r.whole)
	for _, name := range r.whole {
		path, _ := envPath(name)
		p.add(Origin{Kind: KindEnv, Name: name}, nil, "%s is a group of keys: set them one by one, like %s",
			strings.Join(path, "."), r.example(path))
	}
}

// example returns a variable that sets a key in the group at path.
func (r *envReader) example(path []string) string {
	at, steps := r.keys.find(path)
	for at.key == nil {
		path = append(path[:steps:steps], at.order[0])
		at, steps = at.children[at.order[0]], steps+1
	}
	if at.key.kind == aMap {
		return envName(append(append([]string{}, path...), []string{"NAME", at.key.example()}[len(path)-steps:]...))
	}
	return envName(path)
}

// unknownEnv describes the mistake in a variable that names no key. It returns "" for a variable that is not meant for
// a key: one without two underscores that is similar to no existing name.
func (l *loader) unknownEnv(name string) string {
	if path, ok := envPath(name); ok && l.blockInstead(path) != "" {
		return "names no key of the configuration; " + l.blockInstead(path)
	}
	var known []string
	for _, k := range keys() {
		if k.kind != aMap {
			known = append(known, envName(strings.Split(k.path, ".")))
		}
	}
	known = append(known, reservedEnv()...)
	for i := range known {
		known[i] = strings.TrimPrefix(known[i], envPrefix) // the common prefix says nothing about similarity
	}
	if strings.HasSuffix(name, envLevel+"PROVIDER") {
		return "names no key of the configuration; " + whichProvider
	}
	if near := abi.Nearest(strings.TrimPrefix(name, envPrefix), known); near != "" {
		return "names no key of the configuration, did you mean " + envPrefix + near + "?"
	}
	last := name[max(strings.LastIndex(name, envLevel)+len(envLevel), len(envPrefix)):]
	leveled := strings.Contains(strings.TrimPrefix(name, envPrefix), envLevel)
	if near := nearElsewhere(strings.ToLower(last)); near != "" && (leveled || isTypo(last, near)) {
		return "names no key of the configuration, did you mean " + envName(strings.Split(near, ".")) + "?"
	}
	if !leveled {
		return ""
	}
	return "names no key of the configuration: unset it (two underscores separate levels: MEMHOST_SERVER__LISTEN)"
}

// isTypo reports whether word is so similar to the last step of a key's path that nothing else can be meant: LISEN for
// server.listen, but not PORT for limits.pool or KEY for trace.keep.
func isTypo(word, path string) bool {
	last := strings.ToUpper(path[strings.LastIndex(path, ".")+1:])
	return last != "SECRET" && word[0] == last[0] && word[len(word)-1] == last[len(last)-1]
}

// textValue converts a variable's or flag's text to the key's type: texts unchanged, lists as [a, b] or one element,
// everything else as a YAML scalar.
func textValue(where place, k *key, text string) any {
	switch {
	case where == anEntry || where == aKey && k.textual():
		return text
	case where == aKey && k.kind == aList:
		return listText(text)
	}
	return scalarText(text)
}

func listText(text string) any {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		var n yaml.Node
		if err := decodeYAML(yaml.NewDecoder(strings.NewReader(text)), &n); err == nil && len(n.Content) == 1 &&
			n.Content[0].Kind == yaml.SequenceNode {
			list := []any{}
			for _, e := range n.Content[0].Content {
				if e.Kind != yaml.ScalarNode {
					return []any{text}
				}
				list = append(list, e.Value)
			}
			return list
		}
	}
	return []any{text}
}

// readFlags is the layer of the flags.
func (l *loader) readFlags() *layer {
	layer := &layer{kind: KindFlag, tree: map[string]any{}, from: map[string]Origin{}}
	byName := FlagKeys()
	given := map[string]string{}
	for _, name := range sortedKeys(l.Flags) {
		v := l.Flags[name]
		if v == nil {
			continue
		}
		origin := Origin{Kind: KindFlag, Name: name}
		dotted, ok := byName[name]
		if !ok {
			dotted = name
		}
		path := oneName(strings.Split(dotted, "."))
		where, k := l.keys.locate(path)
		switch where {
		case nowhere:
			var known []string
			for _, k := range keys() {
				known = append(known, k.path)
			}
			const none = "names no key of the configuration"
			last := path[len(path)-1]
			text := none
			switch other, near, similar := elsewhere(last), nearElsewhere(last), abi.Nearest(name, known); {
			case last == "provider":
				text += "; " + whichProvider
			case l.blockInstead(path) != "":
				text += "; " + l.blockInstead(path)
			case similar != "":
				text += fmt.Sprintf(", did you mean %q?", similar)
			case other != "":
				text += fmt.Sprintf("; the key %s is %s", last, other)
			case near != "":
				text += fmt.Sprintf(", did you mean %q?", near)
			default:
				text += "; `memhost config` shows them all"
			}
			l.problems.add(origin, nil, "%s", text)
			continue
		case aGroup, aBlock:
			l.problems.add(origin, nil, "%s is a group of keys: set them one by one", dotted)
			continue
		}
		at := joinPath(path)
		for other, name := range given {
			if other == at || strings.HasPrefix(other, at+delimiter) || strings.HasPrefix(at, other+delimiter) {
				l.problems.add(origin, nil, "contradicts %s: both set %s; give one",
					Origin{Kind: KindFlag, Name: name}.place(), dotted)
			}
		}
		given[at] = name
		layer.from[at] = origin
		set(layer.tree, path, flagValue(where, k, v))
	}
	return layer
}

// flagValue converts pflag's values to the tree's types.
func flagValue(where place, k *key, v any) any {
	switch v := v.(type) {
	case string:
		return textValue(where, k, v)
	case []string:
		list := []any{}
		for _, e := range v {
			list = append(list, e)
		}
		return list
	case int:
		return scalarText(strconv.Itoa(v))
	case int64:
		return scalarText(strconv.FormatInt(v, 10))
	case uint64:
		return scalarText(strconv.FormatUint(v, 10))
	case float64:
		return scalarText(strconv.FormatFloat(v, 'g', -1, 64))
	case bool:
		return v
	}
	return v
}
