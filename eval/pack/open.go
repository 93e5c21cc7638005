package pack

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
)

// maxLine bounds one line of a pack, in bytes.
const maxLine = 16 << 20

// Pack is an opened pack. It does not hold events in memory: they are read from the folder, persona by persona. It is
// safe for concurrent use.
type Pack struct {
	Manifest Manifest
	// Conditions has the blocks of conditions.json, by provider; nil if the pack has none.
	Conditions map[string]json.RawMessage

	folder  string
	remove  bool // the folder was unpacked by Open
	persona map[string]place
}

// place is the position of a persona's lines, in bytes.
type place struct{ events, probes, preferences, person span }

type span struct{ from, to int64 }

// Open opens a pack: a folder, or a .tar.zst, which is unpacked to a temporary folder until Close.
//
// Errors: invalid_argument for something that is not a pack, an unsupported version, or content that does not match the
// hash in pack.json; unavailable for a file that cannot be read. Errors in a line name its number.
func Open(path string) (*Pack, error) {
	p := &Pack{folder: path, persona: map[string]place{}}
	if strings.HasSuffix(path, Archive) {
		folder, err := unpack(path)
		if err != nil {
			return nil, err
		}
		p.folder, p.remove = folder, true
	}
	if err := p.read(path); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// Close removes what Open unpacked.
func (p *Pack) Close() error {
	if p.remove {
		return os.RemoveAll(p.folder)
	}
	return nil
}

func (p *Pack) read(path string) error {
	text, err := os.ReadFile(filepath.Join(p.folder, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return wrong("%s is not a pack: it has no %s", path, ManifestFile).
			WithHint("`memhost eval pack build` makes a pack from a data set's own file")
	}
	if err != nil {
		return unreadable(err)
	}
	var version struct{ Pack int }
	if err := json.Unmarshal(text, &version); err != nil {
		return wrong("%s: %s: %v", path, ManifestFile, err)
	}
	if version.Pack != Version {
		return wrong("%s is a pack of version %d, this program reads version %d", path, version.Pack, Version)
	}
	if err := decode(text, &p.Manifest); err != nil {
		return wrong("%s: %s: %v", path, ManifestFile, err)
	}
	return p.index()
}

// index reads the content once: it verifies the hash and records the position of each persona's lines.
func (p *Pack) index() error {
	content := sha256.New()
	events, err := p.indexFile(EventsFile, content)
	if err != nil {
		return err
	}
	probes, err := p.indexFile(ProbesFile, content)
	if err != nil {
		return err
	}
	conditions, err := os.ReadFile(filepath.Join(p.folder, ConditionsFile))
	switch {
	case err == nil:
		header(content, ConditionsFile, int64(len(conditions)))
		content.Write(conditions)
		if err := json.Unmarshal(conditions, &p.Conditions); err != nil {
			return wrong("%s: %v", ConditionsFile, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return unreadable(err)
	}
	preferences, err := p.indexFile(PreferencesFile, content)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	people, err := p.indexFile(PeopleFile, content)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if found := hex.EncodeToString(content.Sum(nil)); found != p.Manifest.ContentSHA256 {
		return wrong("the pack %s has the content %.12s, its %s says %.12s: it was changed after it was built",
			p.Manifest.Name, found, ManifestFile, p.Manifest.ContentSHA256).
			WithHint("build it again")
	}
	for _, persona := range p.Manifest.Personas {
		p.persona[persona.PersonaID] = place{events[persona.PersonaID], probes[persona.PersonaID],
			preferences[persona.PersonaID], people[persona.PersonaID]}
	}
	return nil
}

// indexFile adds a file to the content's hash and finds each persona's lines in it.
func (p *Pack) indexFile(name string, content hash.Hash) (map[string]span, error) {
	f, err := os.Open(filepath.Join(p.folder, name))
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(err)
	}
	header(content, name, info.Size())
	spans, at, last := map[string]span{}, int64(0), ""
	for line, err := range lines(io.TeeReader(f, content), name) {
		if err != nil {
			return nil, err
		}
		var owner struct {
			PersonaID string `json:"persona_id"`
		}
		if err := json.Unmarshal(line.text, &owner); err != nil || owner.PersonaID == "" {
			return nil, wrong("%s, line %d: want an object with a persona_id", name, line.number)
		}
		s, known := spans[owner.PersonaID]
		if known && owner.PersonaID != last {
			return nil, wrong("%s, line %d: the lines of persona %q do not follow each other", name, line.number,
				owner.PersonaID)
		}
		if !known {
			s.from = at
		}
		at += int64(line.size)
		s.to, last = at, owner.PersonaID
		spans[owner.PersonaID] = s
	}
	return spans, nil
}

// header adds a file's name and size to the content's hash, before its bytes.
func header(content hash.Hash, name string, size int64) {
	fmt.Fprintf(content, "%s\x00%d\x00", name, size)
}

// Events reads a persona's events in order.
func (p *Pack) Events(personaID string) iter.Seq2[*Event, error] {
	return rows[Event](p, EventsFile, p.persona[personaID].events)
}

// Probes reads a persona's probes in order.
func (p *Pack) Probes(personaID string) iter.Seq2[*Probe, error] {
	return rows[Probe](p, ProbesFile, p.persona[personaID].probes)
}

// Preferences reads a persona's preferences, in the pack's order; none if the pack has no such file.
func (p *Pack) Preferences(personaID string) (Preferences, error) {
	s := p.persona[personaID].preferences
	if s == (span{}) {
		return nil, nil
	}
	var list Preferences
	for row, err := range rows[Preference](p, PreferencesFile, s) {
		if err != nil {
			return nil, err
		}
		list = append(list, *row)
	}
	return list, nil
}

// Person returns what may be said of a persona; nil if the pack has nothing.
func (p *Pack) Person(personaID string) (*Person, error) {
	s := p.persona[personaID].person
	if s == (span{}) {
		return nil, nil
	}
	for row, err := range rows[Person](p, PeopleFile, s) {
		return row, err
	}
	return nil, nil
}

// rows reads the lines in one span of a file.
func rows[T any](p *Pack, name string, s span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		f, err := os.Open(filepath.Join(p.folder, name))
		if err != nil {
			yield(nil, unreadable(err))
			return
		}
		defer f.Close()
		for line, err := range lines(io.NewSectionReader(f, s.from, s.to-s.from), name) {
			row := new(T)
			if err == nil {
				if bad := decode(line.text, row); bad != nil {
					err = wrong("%s, line %d of the persona: %v", name, line.number, bad)
				}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// line is one line of a file, without its newline.
type line struct {
	number int
	size   int // with the newline
	text   []byte
}

// lines reads a text line by line. A line's bytes are valid until the next line is read.
func lines(r io.Reader, name string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		b := bufio.NewReaderSize(r, 256<<10)
		var long []byte
		for number := 1; ; number++ {
			long = long[:0]
			text, err := b.ReadSlice('\n')
			for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine {
				long = append(long, text...)
				text, err = b.ReadSlice('\n')
			}
			if len(long) > 0 {
				long = append(long, text...)
				text = long
			}
			switch {
			case errors.Is(err, io.EOF) && len(text) == 0:
				return
			case errors.Is(err, io.EOF):
				yield(line{}, wrong("%s, line %d: has no newline at its end: the file was cut off", name, number))
				return
			case errors.Is(err, bufio.ErrBufferFull):
				yield(line{}, wrong("%s, line %d: is longer than %d MiB", name, number, maxLine>>20))
				return
			case err != nil:
				yield(line{}, unreadable(err))
				return
			}
			if !yield(line{number, len(text), text[:len(text)-1]}, nil) {
				return
			}
		}
	}
}

// decode parses JSON strictly: unknown fields are an error.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New(Mismatch(err))
	}
	if d.More() {
		return errors.New("has something behind its end")
	}
	return nil
}

func wrong(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}

func unreadable(err error) *abi.Error {
	if known := (*abi.Error)(nil); errors.As(err, &known) {
		return known
	}
	return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
}
