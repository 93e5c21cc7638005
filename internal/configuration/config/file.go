package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/internal/configuration/schema"
)

const (
	// DefaultFile is read from the current folder if it exists and no other file is named.
	DefaultFile = "memhost.yaml"
	// maxFile bounds the configuration file and each file that a block includes, in bytes.
	maxFile = 4 << 20
)

// readFile is the layer of the configuration file, empty without a file.
func (l *loader) readFile() *layer {
	layer := &layer{kind: KindFile, tree: map[string]any{}, from: map[string]Origin{}}
	name, origin := l.findFile()
	if name == "" {
		return layer
	}
	l.config.File = name
	layer.from[""] = Origin{Kind: KindFile, Name: name}
	raw := l.Text
	if raw == nil {
		var err error
		if raw, err = readBounded(l.resolve(l.Dir, name), maxFile); err != nil {
			l.problems.add(origin, nil, "cannot read %s: %v", name, err)
			return layer
		}
	}
	d := document{name: name, problems: &l.problems, from: layer.from}
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".yaml", ".yml", "":
		layer.tree = d.object(d.yaml(raw))
	case ".json":
		layer.tree = d.object(d.json(raw))
	default:
		l.problems.add(layer.from[""], nil, "cannot tell its form from %q: name it .yaml, .yml or .json", ext)
	}
	layer.renameUser()
	return layer
}

// renameUser accepts user_id for memory.scope.persona_id in a file. A file with both has an unknown key.
func (l *layer) renameUser() {
	given, wanted := []string{"memory", "scope", "user_id"}, []string{"memory", "scope", "persona_id"}
	value, there := lookup(l.tree, given)
	if !there || has(l.tree, wanted...) {
		return
	}
	remove(l.tree, given...)
	set(l.tree, wanted, value)
	l.from[joinPath(wanted)] = l.from[joinPath(given)]
}

// findFile returns the configuration file, "" for none, and where it was named.
func (l *loader) findFile() (string, Origin) {
	if l.File != "" {
		return l.File, Origin{Kind: KindFlag, Name: configFlag}
	}
	if name, ok := lookupEnv(l.Environ, envFile); ok && name != "" {
		return name, Origin{Kind: KindEnv, Name: envFile}
	}
	if _, err := os.Stat(l.resolve(l.Dir, DefaultFile)); err == nil && !l.NamedFileOnly {
		return DefaultFile, Origin{Kind: KindFile, Name: DefaultFile}
	}
	return "", Origin{}
}

// FileOf returns the path of the configuration file that Load would read, "" for none.
func FileOf(o Options) string {
	l := loader{Options: o}
	name, _ := l.findFile()
	if name == "" {
		return ""
	}
	return l.resolve(l.Dir, name)
}

// readBounded reads a regular file of at most limit bytes.
//
// Errors: without the path; the caller adds the name that its user knows.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("it does not exist")
	case err != nil:
		return nil, bare(err)
	case !info.Mode().IsRegular():
		// A folder, or a pipe that might never end.
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return raw, nil
}

func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// document parses one text into a tree.
type document struct {
	name     string
	problems *problems
	// from receives the place of each value, unless it is nil.
	from map[string]Origin
	// values and bytes count the document with its aliases expanded.
	values, bytes int
	failed        bool
}

func (d *document) fail(line int, format string, args ...any) {
	d.failed = true
	d.problems.add(Origin{Kind: KindFile, Name: d.name, Line: line}, nil, format, args...)
}

func (d *document) at(path []string, line int) {
	if d.from != nil {
		d.from[joinPath(path)] = Origin{Kind: KindFile, Name: d.name, Line: line}
	}
}

// object returns v if it is an object. An empty document is an empty object.
func (d *document) object(v any) map[string]any {
	m, ok := v.(map[string]any)
	if d.values > maxValues { // one error is enough
		return map[string]any{}
	}
	if !ok {
		if v != nil && !d.failed {
			d.fail(0, "found %s, want an object with the keys %s", schema.Found(nil, v), strings.Join(keyTree().order, ", "))
		}
		return map[string]any{}
	}
	return m
}

func (d *document) json(raw []byte) any {
	raw, ok := d.text(raw)
	if !ok {
		return nil
	}
	v, err := schema.Decode(raw, d.at)
	if err != nil {
		line, text := splitLine(err.Error())
		d.fail(line, "%s", text)
		return nil
	}
	return v
}

// splitLine splits "line 3: what".
func splitLine(text string) (line int, rest string) {
	if after, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(after, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return n, what
			}
		}
	}
	return 0, text
}

// text checks that raw is UTF-8, and removes the byte order mark that some editors write.
func (d *document) text(raw []byte) ([]byte, bool) {
	raw = []byte(strings.TrimPrefix(string(raw), "\ufeff"))
	for i, line := range strings.Split(string(raw), "\n") {
		switch {
		case !utf8.ValidString(line):
			d.fail(i+1, "not valid UTF-8: save the file in that encoding")
		case strings.ContainsRune(line, 0):
			d.fail(i+1, "holds a zero byte")
		default:
			continue
		}
		return nil, false
	}
	return raw, true
}

// envFile is the variable that names the configuration file.
const envFile = "MEMHOST_CONFIG"
