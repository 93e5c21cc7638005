package meter

import (
	"fmt"
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Module and Function name the import that Rewrite adds. Rewrite rejects a module that already imports anything from
// Module.
const (
	Module   = "memhost.meter"
	Function = "more"
)

// Version is the version of Rewrite's output: increase it whenever the output for the same module changes. Caches of
// rewritten modules include it in their keys.
const Version = 3

// rewriter holds the state of one rewriting.
type rewriter struct {
	parsed   *wasmbin.Module
	sections map[wasmbin.SectionID]*wasmbin.Section

	imported  uint32 // functions that the original imports; the meter's import comes after them
	functions uint32 // all functions of the original
	globals   uint32 // all globals of the original; the unit count comes after them
	// quick reports whether an import returns at once.
	quick func(module, name string) bool
	// openTables means that other modules could put functions into a table.
	openTables bool
	// referenced has the functions that call_indirect may reach, because element segments or ref.func name them.
	referenced map[uint32]bool
	bodies     []body
	graph      graph
}

// Rewrite returns the metered module. It is deterministic, and does not change its input.
//
// Errors: a module that cannot be parsed, uses features beyond WebAssembly 2.0 (for a type: wasmbin.ErrBeyond), has an
// index out of range, or imports from Module.
func Rewrite(wasm []byte) ([]byte, error) {
	return RewriteWith(wasm, func(string, string) bool { return false })
}

// RewriteWith is Rewrite for a module with imports that return within some hundred nanoseconds, as reported by quick. A
// call of these is charged like instructions; after a call of any other import the next site reads the clock.
func RewriteWith(wasm []byte, quick func(module, name string) bool) ([]byte, error) {
	w := &rewriter{quick: quick, sections: map[wasmbin.SectionID]*wasmbin.Section{}, referenced: map[uint32]bool{}}
	// 1. Read the outer structure.
	sections, err := wasmbin.Sections(wasm)
	if err != nil {
		return nil, err
	}
	if w.parsed, err = wasmbin.Parse(wasm); err != nil {
		return nil, err
	}
	var names *wasmbin.Section
	for i := range sections {
		s := &sections[i]
		switch {
		case s.ID == wasmbin.SectionTag:
			return nil, s.Reader().Errorf("exceptions are not one of WebAssembly 2.0")
		case s.ID != wasmbin.SectionCustom:
			w.sections[s.ID] = s
		case s.Name == "name":
			names = s
		}
	}
	if err := w.count(); err != nil {
		return nil, err
	}
	// 2. Find the functions that are referenced, and the call graph. 3. Rewrite every section, the code last, because
	// its sites depend on all that. Custom sections except the names are dropped, because offsets in them are no longer
	// valid.
	contents := map[wasmbin.SectionID][]byte{}
	for _, id := range writeOrder {
		if contents[id], err = w.section(id); err != nil {
			return nil, err
		}
	}
	out := append(make([]byte, 0, len(wasm)+len(wasm)/2), header...)
	for _, id := range sectionOrder {
		content := contents[id]
		if content == nil {
			continue
		}
		out = wasmbin.AppendU32(append(out, byte(id)), uint32(len(content)))
		out = append(out, content...)
	}
	if names != nil {
		out = append(out, w.names(names)...)
	}
	return out, nil
}

var sectionOrder = []wasmbin.SectionID{
	wasmbin.SectionType, wasmbin.SectionImport, wasmbin.SectionFunction, wasmbin.SectionTable, wasmbin.SectionMemory,
	wasmbin.SectionGlobal, wasmbin.SectionExport,
	wasmbin.SectionStart, wasmbin.SectionElement, wasmbin.SectionDataCount, wasmbin.SectionCode, wasmbin.SectionData,
}

// writeOrder is sectionOrder with the code last.
var writeOrder = append(slices.DeleteFunc(slices.Clone(sectionOrder), func(id wasmbin.SectionID) bool {
	return id == wasmbin.SectionCode
}), wasmbin.SectionCode)

const header = "\x00asm\x01\x00\x00\x00"

// count counts the original's items.
func (w *rewriter) count() error {
	for _, i := range w.parsed.Imports {
		if i.Module == Module {
			return fmt.Errorf("wasm: import %q.%q: that module is the host's own", i.Module, i.Name)
		}
		switch i.Kind {
		case wasmbin.KindFunc:
			w.imported++
		case wasmbin.KindTable:
			w.openTables = true
		case wasmbin.KindGlobal:
			w.globals++
			w.openTables = w.openTables || i.Global == wasmbin.FuncRef
		}
	}
	w.functions = w.imported + uint32(len(w.parsed.Functions))
	if s := w.sections[wasmbin.SectionGlobal]; s != nil {
		n, err := s.Reader().Count("globals")
		if err != nil {
			return err
		}
		w.globals += uint32(n)
	}
	return nil
}

// shift returns a function's index after adding the import.
func (w *rewriter) shift(function uint32) uint32 {
	if function >= w.imported {
		return function + 1
	}
	return function
}

// section returns a section's new content; nil if there is none.
func (w *rewriter) section(id wasmbin.SectionID) ([]byte, error) {
	s := w.sections[id]
	switch id {
	case wasmbin.SectionType:
		return grow(s, addedTypes...)
	case wasmbin.SectionImport:
		entry := appendName(appendName(nil, Module), Function)
		return grow(s, wasmbin.AppendU32(append(entry, byte(wasmbin.KindFunc)), uint32(len(w.parsed.Types))))
	case wasmbin.SectionFunction:
		return grow(s, w.refillType())
	case wasmbin.SectionGlobal:
		return w.globalSection(s)
	}
	if s == nil && id != wasmbin.SectionCode {
		return nil, nil
	}
	switch id {
	case wasmbin.SectionExport:
		return w.exportSection(s)
	case wasmbin.SectionStart:
		return wasmbin.AppendU32(nil, w.shift(w.parsed.Start)), nil
	case wasmbin.SectionElement:
		return w.elementSection(s)
	case wasmbin.SectionCode:
		return w.codeSection(s)
	case wasmbin.SectionData:
		return w.dataSection(s)
	case wasmbin.SectionTable:
		return tableSection(s)
	default:
		return s.Data, nil
	}
}

// grow appends items to a section that is a vector, or creates the section.
func grow(s *wasmbin.Section, items ...[]byte) ([]byte, error) {
	added := slices.Concat(items...)
	if s == nil {
		return append(wasmbin.AppendU32(nil, uint32(len(items))), added...), nil
	}
	r := s.Reader()
	n, err := r.U32("number of items")
	if err != nil {
		return nil, err
	}
	return slices.Concat(wasmbin.AppendU32(nil, n+uint32(len(items))), s.Data[r.Pos():], added), nil
}

func appendName(b []byte, name string) []byte {
	return append(wasmbin.AppendU32(b, uint32(len(name))), name...)
}

// left is the global with the unit count: i64, mutable, initially zero, so that the first site asks the host.
var left = []byte{byte(wasmbin.I64), 1, byte(wasmbin.OpI64Const), 0, byte(wasmbin.OpEnd)}

func (w *rewriter) globalSection(s *wasmbin.Section) ([]byte, error) {
	if s == nil {
		return append([]byte{1}, left...), nil
	}
	r := s.Reader()
	n, err := r.Count("globals")
	if err != nil {
		return nil, err
	}
	out := wasmbin.AppendU32(nil, uint32(n)+1)
	for range n {
		start := r.Pos()
		if _, err := r.ValueType(); err != nil {
			return nil, err
		}
		if _, err := r.Byte("mutability"); err != nil {
			return nil, err
		}
		out = append(out, r.Since(start)...)
		if out, err = w.constant(r, out); err != nil {
			return nil, err
		}
	}
	return append(out, left...), r.End()
}

// constant copies a constant expression.
func (w *rewriter) constant(r *wasmbin.Reader, out []byte) ([]byte, error) {
	var in wasmbin.Instruction
	for {
		start := r.Pos()
		if err := r.Instruction(&in); err != nil {
			return nil, err
		}
		switch in.Op {
		case wasmbin.OpRefFunc:
			if err := within(r, "function", in.Index, w.functions); err != nil {
				return nil, err
			}
			w.referenced[in.Index] = true
			out = wasmbin.AppendU32(append(out, byte(in.Op)), w.shift(in.Index))
			continue
		case wasmbin.OpGlobalGet:
			if err := within(r, "global", in.Index, w.globals); err != nil {
				return nil, err
			}
		case wasmbin.OpEnd:
			return append(out, byte(in.Op)), nil
		case wasmbin.OpI32Const, wasmbin.OpI64Const, wasmbin.OpF32Const, wasmbin.OpF64Const, wasmbin.OpV128Const,
			wasmbin.OpRefNull:
		default:
			return nil, r.Errorf("instruction 0x%02x in a constant expression", uint32(in.Op))
		}
		out = append(out, r.Since(start)...)
	}
}

// within rejects an index that the original does not have: the added items come after its own.
func within(r *wasmbin.Reader, what string, index, count uint32) error {
	if index >= count {
		return r.Errorf("%s %d, but the module has %d", what, index, count)
	}
	return nil
}

func (w *rewriter) exportSection(s *wasmbin.Section) ([]byte, error) {
	out := wasmbin.AppendU32(nil, uint32(len(w.parsed.Exports)))
	for _, e := range w.parsed.Exports {
		index := e.Index
		switch e.Kind {
		case wasmbin.KindFunc:
			index = w.shift(index)
		case wasmbin.KindGlobal:
			if err := within(s.Reader(), "global", index, w.globals); err != nil {
				return nil, err
			}
		}
		out = wasmbin.AppendU32(append(appendName(out, e.Name), byte(e.Kind)), index)
	}
	return out, nil
}

// tableSection leaves the section unchanged, and rejects content other than types and limits.
func tableSection(s *wasmbin.Section) ([]byte, error) {
	r := s.Reader()
	n, err := r.Count("tables")
	if err != nil {
		return nil, err
	}
	for range n {
		if err := r.ReferenceType(); err != nil {
			return nil, err
		}
		if _, err := r.Limits(); err != nil {
			return nil, err
		}
	}
	return s.Data, r.End()
}

// dataSection leaves the section unchanged, and checks the globals that its offsets name.
func (w *rewriter) dataSection(s *wasmbin.Section) ([]byte, error) {
	r := s.Reader()
	n, err := r.Count("data segments")
	if err != nil {
		return nil, err
	}
	for range n {
		flags, err := r.U32("flags of a data segment")
		if err != nil {
			return nil, err
		}
		if flags > 2 {
			return nil, r.Errorf("data segment has flags %d, want 0 to 2", flags)
		}
		if flags == 2 {
			if _, err := r.U32("memory"); err != nil {
				return nil, err
			}
		}
		if flags != 1 {
			if _, err := w.constant(r, nil); err != nil {
				return nil, err
			}
		}
		if _, err := r.Sub("data segment"); err != nil {
			return nil, err
		}
	}
	return s.Data, r.End()
}

func (w *rewriter) elementSection(s *wasmbin.Section) ([]byte, error) {
	r := s.Reader()
	n, err := r.Count("element segments")
	if err != nil {
		return nil, err
	}
	out := wasmbin.AppendU32(nil, uint32(n))
	for range n {
		if out, err = w.elementSegment(r, out); err != nil {
			return nil, err
		}
	}
	return out, r.End()
}

// elementSegment copies one segment. Bit 0 of its flags: passive or declared, not active; bit 1: has a table index
// (active) or is declared; bit 2: expressions instead of indices.
func (w *rewriter) elementSegment(r *wasmbin.Reader, out []byte) ([]byte, error) {
	start := r.Pos()
	flags, err := r.U32("flags of an element segment")
	if err != nil {
		return nil, err
	}
	if flags > 7 {
		return nil, r.Errorf("element segment has flags %d, want 0 to 7", flags)
	}
	active, expressions := flags&1 == 0, flags&4 != 0
	if active && flags&2 != 0 {
		if _, err := r.U32("table"); err != nil {
			return nil, err
		}
	}
	out = append(out, r.Since(start)...)
	if active {
		if out, err = w.constant(r, out); err != nil {
			return nil, err
		}
	}
	start = r.Pos()
	switch {
	case flags&3 == 0:
	case expressions:
		if err := r.ReferenceType(); err != nil {
			return nil, err
		}
	default:
		kind, err := r.Byte("kind of elements")
		if err != nil {
			return nil, err
		}
		if kind != 0 {
			return nil, r.Errorf("elements of kind %d, want 0 (functions)", kind)
		}
	}
	n, err := r.Count("elements")
	if err != nil {
		return nil, err
	}
	out = append(out, r.Since(start)...)
	for range n {
		if out, err = w.element(r, expressions, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *rewriter) element(r *wasmbin.Reader, expression bool, out []byte) ([]byte, error) {
	if expression {
		return w.constant(r, out)
	}
	index, err := r.U32("function")
	if err != nil {
		return nil, err
	}
	if err := within(r, "function", index, w.functions); err != nil {
		return nil, err
	}
	w.referenced[index] = true
	return wasmbin.AppendU32(out, w.shift(index)), nil
}

// names returns a "name" section with the functions' names under their new indices, and nothing else. It drops a
// section that cannot be parsed.
func (w *rewriter) names(s *wasmbin.Section) []byte {
	r := s.Reader()
	for r.Rest() > 0 {
		id, err := r.Byte("subsection")
		if err != nil {
			return nil
		}
		sub, err := r.Sub("subsection")
		if err != nil {
			return nil
		}
		if id != 1 {
			continue
		}
		content, err := w.functionNames(sub)
		if err != nil {
			return nil
		}
		section := append(appendName(nil, "name"), id)
		section = append(wasmbin.AppendU32(section, uint32(len(content))), content...)
		return append(wasmbin.AppendU32([]byte{byte(wasmbin.SectionCustom)}, uint32(len(section))), section...)
	}
	return nil
}

func (w *rewriter) functionNames(r *wasmbin.Reader) ([]byte, error) {
	n, err := r.Count("names")
	if err != nil {
		return nil, err
	}
	out := wasmbin.AppendU32(nil, uint32(n+1))
	for range n {
		index, err := r.U32("function")
		if err != nil {
			return nil, err
		}
		name, err := r.Name("name")
		if err != nil {
			return nil, err
		}
		out = appendName(wasmbin.AppendU32(out, w.shift(index)), name)
	}
	return appendName(wasmbin.AppendU32(out, w.refill()), Module+".refill"), r.End()
}
