package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// maxIncluded bounds all files that one block includes, in bytes.
const maxIncluded = 16 << 20

// finishBlock completes the chosen native block: it replaces {file: PATH} by the file's content, and looks for mistakes
// that no schema would explain well.
func (l *loader) finishBlock() {
	c := l.config
	block, path := l.chosenBlock()
	eachValue(block, path, func(at []string, v any) {
		switch v := v.(type) {
		case schema.Odd:
			if slices.ContainsFunc(at, schema.CredentialKey) {
				l.problems.add(l.origin(at...), at, "put it in quotes: it is a text, not a number")
				return
			}
			l.problems.add(l.origin(at...), at, "%s", v.Why())
		case string:
			if !sound(v) {
				l.problems.add(l.origin(at...), at, "is not valid UTF-8 text, or holds a zero byte")
			}
		}
	})
	block = l.rename(block, path)
	found, err := designed().Check(map[string]any{c.name: block})
	if err != nil {
		l.problems.add(l.origin(path...), path, "%v", err)
	}
	for _, m := range found {
		at := append(slices.Clip(path), m.Path[1:]...)
		l.problems.add(l.origin(at...), at, "%s", m.Text)
	}
	l.checkSecretNames(block, path)
	c.block, _ = l.include(block, path).(map[string]any)
	if len(found) > 0 && l.Check != nil {
		l.checkRest(found, path)
	}
	if _, whole := fileRef(block); whole && c.block == nil {
		c.block = map[string]any{}
		l.problems.add(l.origin(path...), path, "the file of a whole block must hold an object")
	}
}

// checkRest finds the other mistakes in a block that has keys of the design.
func (l *loader) checkRest(found []schema.Mistake, path []string) {
	rest := copyTree(l.config.block)
	for _, m := range found {
		remove(rest, m.Path[1:]...)
	}
	err := l.Check(l.config, schema.Canonical(rest))
	if err == nil {
		return
	}
	for _, line := range strings.Split(abi.AsError(err).Message, "\n") {
		at, text, _ := strings.Cut(strings.TrimPrefix(line, l.config.name+"."), ": ")
		whole := append(slices.Clip(path), strings.Split(at, ".")...)
		l.problems.add(l.origin(whole...), whole, "%s", text)
	}
}

// fileRef returns the path in {file: PATH}.
func fileRef(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	name, ok := m["file"].(string)
	return name, ok
}

// include replaces every {file: PATH} in v. The content of a file is not searched again.
func (l *loader) include(v any, path []string) any {
	included := 0
	return mapValues(v, path, func(at []string, v any) (any, bool) {
		name, ok := fileRef(v)
		if !ok {
			return nil, false
		}
		origin := l.origin(append(slices.Clip(at), "file")...)
		content, n := l.content(name, at, origin)
		if included += n; included > maxIncluded {
			l.problems.add(origin, at, "with file %s the files of this block come to more than %d MiB", name,
				maxIncluded>>20)
			return nil, true
		}
		l.config.included(at, Origin{Kind: KindFile, Name: name})
		return content, true
	})
}

// included notes that everything at path comes from another file.
func (c *Config) included(path []string, o Origin) {
	inside := joinPath(path) + delimiter
	for at := range c.sources {
		if strings.HasPrefix(at, inside) {
			delete(c.sources, at)
		}
	}
	c.sources[joinPath(path)] = o
}

// content reads an included file: .json and .yaml are parsed, everything else is a text.
func (l *loader) content(name string, at []string, origin Origin) (v any, size int) {
	if name == "" {
		l.problems.add(origin, at, "names no file: want {file: PATH}")
		return nil, 0
	}
	raw, err := readBounded(l.resolve(l.folder(origin), name), maxFile)
	if err != nil {
		l.problems.add(origin, at, "cannot read file %s: %v", name, err)
		return nil, 0
	}
	d := document{name: name, problems: &l.problems}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		v = d.json(raw)
	case ".yaml", ".yml":
		v = d.yaml(raw)
	default:
		text, _ := d.text(raw)
		v = string(text)
	}
	if d.failed {
		l.problems.add(origin, at, "includes the file %s, which cannot be used", name)
		return nil, len(raw)
	}
	defer func(tree any) { l.problems.tree = tree }(l.problems.tree)
	l.problems.tree = v
	eachValue(v, nil, func(path []string, e any) {
		switch e := e.(type) {
		case schema.Odd:
			l.problems.add(Origin{Kind: KindFile, Name: name}, path, "%s", e.Why())
		case string:
			if !sound(e) {
				l.problems.add(Origin{Kind: KindFile, Name: name}, path,
					"is not valid UTF-8 text, or holds a zero byte")
			}
		}
	})
	return v, len(raw)
}

// checkSecretNames looks for {secret: NAME} with a name that is not in the configuration. The error does not repeat the
// name: it may be the secret itself, written in the wrong place.
func (l *loader) checkSecretNames(block map[string]any, path []string) {
	known := sortedKeys(l.config.Secrets)
	eachValue(block, path, func(at []string, v any) {
		name, ok := schema.SecretRef(v)
		if !ok || isOneOf(name, known) {
			return
		}
		const how = "write secrets: {NAME: {env: VARIABLE, origin: URL}}, and {secret: NAME} here"
		if near := abi.Nearest(name, known); near != "" {
			l.problems.add(l.origin(at...), at, "names a secret that is not in secrets, did you mean %s?", near)
			return
		}
		there := ""
		if len(known) > 0 {
			there = ", which has " + strings.Join(known, ", ")
		}
		l.problems.add(l.origin(at...), at, "names a secret that is not in secrets%s: %s", there, how)
	})
}
