// Package build creates packs from published data sets. The user supplies the files; none are included.
//
// Each builder is one file, and reads its source as a stream, one conversation at a time. Everything that it repairs or
// skips is counted in the pack (pack.Repair), with the place in the source.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/text/convert"
)

// Builder creates packs from one kind of source.
type Builder struct {
	Name string
	// What describes its sources, for help texts.
	What string
	// Options describes its options; the default of an option is Defaults[name].
	Options  map[string]string
	Defaults map[string]string
	// Sources are the names of the files that it takes, in this order; empty for a builder that generates its data.
	Sources []string
	// Licence is the licence of the published data set, if it has one; an SPDX identifier.
	Licence    string
	Timestamps string

	build func(b *builder) (conditions map[string]json.RawMessage, err error)
}

// Builders returns all builders, sorted by name.
func Builders() []*Builder {
	return []*Builder{chatsBuilder, locomoBuilder, longmemevalBuilder, personamemBuilder, synthBuilder}
}

// Find returns the builder with a name.
//
// Errors: invalid_argument that suggests the nearest name.
func Find(name string) (*Builder, error) {
	var names []string
	for _, b := range Builders() {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	e := wrong("there is no builder %q; there are %s", name, strings.Join(names, ", "))
	if near := abi.Nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}

// Request says what to build a pack from.
type Request struct {
	Name    string // of the pack; default: the builder's and the source's
	Sources []string
	Options map[string]string
	Licence string // default: the builder's
	// Progress is called with how much of the sources has been read, in bytes. Optional.
	Progress func(done, total int64)
}

// builder is a running build.
type builder struct {
	*pack.Writer
	options  map[string]string
	sources  []string
	progress func(done, total int64)
	total    int64
	done     int64
	again    bool // the same part of the source is read again: its repairs were already counted
}

// Repair counts a repaired fault of the source, with its place.
func (b *builder) Repair(kind, place string) {
	if !b.again {
		b.Writer.Repair(kind, place)
	}
}

// Build writes a pack to path: a folder, or a .tar.zst.
//
// Errors: invalid_argument for an unknown option, and for a source in an unexpected format, with the place and what was
// expected there.
func (b *Builder) Build(r Request, path string) (*pack.Manifest, error) {
	options, err := b.options(r.Options)
	if err != nil {
		return nil, err
	}
	if len(r.Sources) != len(b.Sources) {
		return nil, wrong("builder %s takes %d files (%s), %d were given", b.Name, len(b.Sources),
			strings.Join(b.Sources, ", "), len(r.Sources))
	}
	m := pack.Manifest{Name: r.Name, Builder: pack.Builder{Name: b.Name, Options: options}, Timestamps: b.Timestamps}
	run := &builder{options: options, sources: r.Sources, progress: r.Progress}
	if len(r.Sources) > 0 {
		if m.Source, run.total, err = sourceOf(r.Sources); err != nil {
			return nil, err
		}
		m.Source.Licence = b.Licence
		if r.Licence != "" {
			m.Source.Licence = r.Licence
		}
		if m.Source.Licence == "" {
			m.Source.Licence = "unknown"
		}
	}
	if m.Name == "" {
		m.Name = b.Name
		if m.Source != nil {
			m.Name += "-" + strings.TrimSuffix(m.Source.Name, filepath.Ext(m.Source.Name))
		}
	}
	w, err := pack.Create(path, m)
	if err != nil {
		return nil, err
	}
	run.Writer = w
	conditions, err := b.build(run)
	if err == nil {
		err = w.Close(conditions)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	return &w.Manifest, nil
}

func (b *Builder) options(given map[string]string) (map[string]string, error) {
	options := map[string]string{}
	maps.Copy(options, b.Defaults)
	for name, value := range given {
		if _, known := b.Defaults[name]; !known {
			e := wrong("builder %s has no option %q", b.Name, name)
			if near := abi.Nearest(name, abi.SortedKeys(b.Defaults)); near != "" {
				e.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return nil, e
		}
		options[name] = value
	}
	return options, nil
}

// sourceOf hashes the sources, one after the other; the files of a folder are sorted by name.
func sourceOf(paths []string) (*pack.Source, int64, error) {
	content, total := sha256.New(), int64(0)
	var names []string
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, 0, wrong("%s: does not exist", path)
		}
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			n, err := io.Copy(content, f)
			total += n
			return err
		})
		if err != nil {
			return nil, 0, unreadable(err)
		}
		names = append(names, filepath.Base(path))
	}
	return &pack.Source{Name: strings.Join(names, "+"), SHA256: hex.EncodeToString(content.Sum(nil))}, total, nil
}

// open opens the nth source as UTF-8, and counts what is read from it.
func (b *builder) open(n int) (io.ReadCloser, error) {
	f, err := os.Open(b.sources[n])
	if err != nil {
		return nil, unreadable(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{convert.UTF8(&countingReader{f, b}), f}, nil
}

type countingReader struct {
	*os.File
	b *builder
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.b.done += int64(n)
	if c.b.progress != nil {
		c.b.progress(c.b.done, c.b.total)
	}
	return n, err
}

// elements decodes the nth source as one JSON array, element by element. each gets the element's index, from 0.
func elements[T any](b *builder, n int, want string, each func(index int, element *T) error) error {
	in, err := b.open(n)
	if err != nil {
		return err
	}
	defer in.Close()
	name, d := filepath.Base(b.sources[n]), json.NewDecoder(convert.UTF8(in))
	first, err := d.Token()
	if err != nil || first != json.Delim('[') {
		return wrong("%s: want %s, a JSON array; found %v", name, want, found(first, err))
	}
	for i := 0; d.More(); i++ {
		element := new(T)
		if err := d.Decode(element); err != nil {
			return wrong("%s: element %d, near byte %d: want %s; found %s", name, i, d.InputOffset(), want, pack.Mismatch(err))
		}
		if err := each(i, element); err != nil {
			return inFile(name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return wrong("%s: the array is cut off near byte %d: %v", name, d.InputOffset(), err)
	}
	return nil
}

// inFile prefixes an error with the source's name.
func inFile(name string, err error) error {
	e := abi.AsError(err)
	if e.Code != abi.CodeInvalidArgument {
		return err
	}
	named := *e
	named.Message = name + ": " + e.Message
	return &named
}

func found(token json.Token, err error) any {
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return "an object"
	}
	return token
}

// oneOf returns an option that must have one of the given values.
func (b *builder) oneOf(name string, values ...string) (string, error) {
	value := b.options[name]
	if !slices.Contains(values, value) {
		return "", wrong("option %s: %q is not one of %s", name, value, strings.Join(values, ", "))
	}
	return value, nil
}

// number returns an option that must be a whole number of at least least.
func (b *builder) number(name string, least int) (int, error) {
	n, err := strconv.Atoi(b.options[name])
	if err != nil || n < least {
		return 0, wrong("option %s: %q is not a whole number of at least %d", name, b.options[name], least)
	}
	return n, nil
}

// insertion says when a probe is asked: as soon as its evidence was recorded, at the end, or at every nth session.
type insertion struct{ every int } // 0: end; 1: as soon as possible

func (b *builder) insertion() (insertion, error) {
	value := b.options["insert"]
	switch {
	case value == "end":
		return insertion{0}, nil
	case value == "asap":
		return insertion{1}, nil
	case strings.HasPrefix(value, "every:"):
		n, err := strconv.Atoi(value[len("every:"):])
		if err == nil && n >= 1 {
			return insertion{n}, nil
		}
	}
	return insertion{}, wrong("option insert: %q is not one of asap, end, every:N", value)
}

// after is the session after which a probe is asked. newest is the session with its newest evidence (0: none), last the
// number of sessions.
func (i insertion) after(newest, last int) int {
	if i.every == 0 || newest == 0 {
		return last
	}
	return min(last, (newest+i.every-1)/i.every*i.every)
}

// inOrder sorts a persona's probes by the session after which they are asked, keeping the source's order within one.
func inOrder(probes []*pack.Probe) {
	slices.SortStableFunc(probes, func(a, b *pack.Probe) int { return a.AfterSession - b.AfterSession })
}

// message creates a message of the contract.
func message(role abi.Role, name, content string) abi.Message {
	return abi.Message{Role: role, Name: name, Content: &content}
}

// scalar reads an answer that a data set stores as a string, a number or a boolean.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(raw))
}

func wrong(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}

func unreadable(err error) *abi.Error { return abi.WrapError(abi.CodeUnavailable, err.Error(), err) }
