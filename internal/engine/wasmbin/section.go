package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// SectionID is the number that starts a section.
type SectionID byte

// Sections of a core module, by the number in the binary format.
const (
	SectionCustom    SectionID = 0
	SectionType      SectionID = 1
	SectionImport    SectionID = 2
	SectionFunction  SectionID = 3
	SectionTable     SectionID = 4
	SectionMemory    SectionID = 5
	SectionGlobal    SectionID = 6
	SectionExport    SectionID = 7
	SectionStart     SectionID = 8
	SectionElement   SectionID = 9
	SectionCode      SectionID = 10
	SectionData      SectionID = 11
	SectionDataCount SectionID = 12
	SectionTag       SectionID = 13
)

// sectionOrder lists the sections in their required order; custom sections may be anywhere.
const sectionOrder = "\x01\x02\x03\x04\x05\x0d\x06\x07\x08\x09\x0c\x0a\x0b"

// String returns the specification's name of the section ("export"), or its number if it is unknown.
func (id SectionID) String() string {
	names := [...]string{
		"custom", "type", "import", "function", "table", "memory", "global", "export",
		"start", "element", "code", "data", "data count", "tag",
	}
	if int(id) < len(names) {
		return names[id]
	}
	return fmt.Sprintf("unknown (%d)", byte(id))
}

// Section is one section of a module, in file order.
type Section struct {
	ID SectionID
	// Name is a custom section's name; empty for every other section.
	Name string
	// Offset is the position of the section's id byte in the module.
	Offset int
	// Raw is the whole section with id and size, as in the input.
	Raw []byte
	// Data is the content; for a custom section, what follows its name.
	Data []byte

	dataOffset int
}

// Reader returns a Reader of the section's content.
func (s *Section) Reader() *Reader {
	return &Reader{data: s.Data, base: s.dataOffset, what: fmt.Sprintf("section %d (%s)", byte(s.ID), s.ID)}
}

var (
	coreHeader      = []byte("\x00asm\x01\x00\x00\x00")
	componentHeader = []byte("\x00asm\x0d\x00\x01\x00")
)

// Sections splits a module into its sections.
//
// Errors: not a wasm core module; a section that is truncated, unknown, out of order or duplicated; a custom section
// whose name is malformed.
func Sections(b []byte) ([]Section, error) {
	if err := checkHeader(b); err != nil {
		return nil, err
	}
	var out []Section
	last := -1
	for pos := len(coreHeader); pos < len(b); {
		s, err := sectionAt(b, pos)
		if err != nil {
			return nil, err
		}
		if s.ID != SectionCustom {
			rank := bytes.IndexByte([]byte(sectionOrder), byte(s.ID))
			if rank <= last {
				return nil, fmt.Errorf("wasm: section %d (%s) at byte %d: stands after section %d (%s), want each "+
					"once and in the order of the specification",
					byte(s.ID), s.ID, pos, sectionOrder[last], SectionID(sectionOrder[last]))
			}
			last = rank
		}
		out = append(out, s)
		pos += len(s.Raw)
	}
	return out, nil
}

func checkHeader(b []byte) error {
	switch {
	case bytes.HasPrefix(b, coreHeader):
		return nil
	case bytes.HasPrefix(b, componentHeader):
		return fmt.Errorf("wasm: this is a WebAssembly component, want a core module (a WASI preview 1 reactor)")
	default:
		if len(b) == 0 {
			return errors.New("wasm: not a WebAssembly core module: it is empty")
		}
		return fmt.Errorf("wasm: not a WebAssembly core module: it starts with % x, want % x",
			b[:min(len(b), len(coreHeader))], coreHeader)
	}
}

func sectionAt(b []byte, offset int) (Section, error) {
	s := Section{ID: SectionID(b[offset]), Offset: offset}
	if s.ID != SectionCustom && bytes.IndexByte([]byte(sectionOrder), byte(s.ID)) < 0 {
		return s, fmt.Errorf("wasm: section %d at byte %d: unknown section", byte(s.ID), offset)
	}
	r := &Reader{data: b, pos: offset + 1, what: fmt.Sprintf("section %d (%s)", byte(s.ID), s.ID)}
	size, err := r.U32("size")
	if err != nil {
		return s, err
	}
	if uint64(size) > uint64(r.Rest()) {
		return s, fmt.Errorf("wasm: truncated section %d (%s) at byte %d: want %d bytes, have %d", byte(s.ID), s.ID,
			offset, size, r.Rest())
	}
	s.dataOffset = r.pos
	end := r.pos + int(size)
	s.Raw = b[offset:end:end]
	s.Data = b[r.pos:end:end]
	if s.ID != SectionCustom {
		return s, nil
	}
	body := s.Reader()
	if s.Name, err = body.Name("name"); err != nil {
		return s, err
	}
	s.Data = s.Data[body.pos:]
	s.dataOffset += body.pos
	return s, nil
}

// Custom returns the content of the custom section with that name, and whether there is one.
//
// Errors: those of Sections; more than one custom section with that name, because two readers could pick different
// ones.
func Custom(b []byte, name string) ([]byte, bool, error) {
	sections, err := Sections(b)
	if err != nil {
		return nil, false, err
	}
	return findCustom(sections, name)
}

func findCustom(sections []Section, name string) ([]byte, bool, error) {
	found := -1
	for i := range sections {
		if sections[i].ID != SectionCustom || sections[i].Name != name {
			continue
		}
		if found >= 0 {
			return nil, false, fmt.Errorf("wasm: custom section %q is there twice, at byte %d and at byte %d: want one",
				name, sections[found].Offset, sections[i].Offset)
		}
		found = i
	}
	if found < 0 {
		return nil, false, nil
	}
	return sections[found].Data, true, nil
}

// SetCustom returns a copy of the module that ends with a custom section of that name and content. It drops earlier
// sections of that name; all others are kept byte for byte.
//
// Errors: those of Sections; a name that is not UTF-8; a section larger than the format's 4 GiB.
func SetCustom(b []byte, name string, payload []byte) ([]byte, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("wasm: name %q of a custom section is not UTF-8", name)
	}
	out, err := StripCustom(b, name)
	if err != nil {
		return nil, err
	}
	prefix := append(AppendU32(nil, uint32(len(name))), name...)
	size := uint64(len(prefix)) + uint64(len(payload))
	if size > math.MaxUint32 {
		return nil, fmt.Errorf("wasm: custom section %q would have %d bytes, want at most %d", name, size,
			uint32(math.MaxUint32))
	}
	out = append(out, byte(SectionCustom))
	out = AppendU32(out, uint32(size))
	out = append(out, prefix...)
	return append(out, payload...), nil
}

// StripCustom returns a copy of the module without the custom sections of these names. A missing section is not an
// error.
//
// Errors: those of Sections.
func StripCustom(b []byte, names ...string) ([]byte, error) {
	sections, err := Sections(b)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(b)), coreHeader...)
	for i := range sections {
		if sections[i].ID == SectionCustom && slices.Contains(names, sections[i].Name) {
			continue
		}
		out = append(out, sections[i].Raw...)
	}
	return out, nil
}
