package wasmbin

// maxPages is the size of a 32-bit memory in pages.
const maxPages = 65536

// Module is what can be learned about a module without running it.
type Module struct {
	Types   []FuncType
	Imports []Import
	// Functions holds, for each function that the module defines, the index of its
	// type; imported functions are in Imports.
	Functions []uint32
	// Tables and Memories are those that the module defines; imported ones are in Imports.
	Tables   []Limits
	Memories []Limits
	Exports  []Export
	// HasStart reports a start section: code that runs on instantiation, whatever the host calls. Start is the index of
	// that function, counting imports first.
	HasStart bool
	Start    uint32
	// Customs are the custom sections in file order.
	Customs []Section

	imported         []uint32 // type index of each imported function
	tableTypes       []ValueType
	importedMemories int

	items           int // of all vectors outside function bodies
	globals, bodies int
	data, dataCount uint32
	hasDataCount    bool
}

// Parse parses a module's outer structure: every section to its end; of the code only the sizes and the locals. In a
// module that it accepts, no count exceeds what is there.
//
// Errors: those of Sections; a section that cannot be parsed, with the byte offset; an index out of range; two exports
// with one name; numbers of items that differ between sections or exceed the limits in counts.go; features beyond
// WebAssembly 2.0 with threads (GC types, 64-bit memories).
func Parse(b []byte) (*Module, error) {
	sections, err := Sections(b)
	if err != nil {
		return nil, err
	}
	m := &Module{}
	for i := range sections {
		s := &sections[i]
		if s.ID == SectionCustom {
			m.Customs = append(m.Customs, *s)
			continue
		}
		read := m.sectionReader(s.ID)
		if read == nil {
			continue
		}
		r := s.Reader()
		if err := read(r); err != nil {
			return nil, err
		}
		if err := r.End(); err != nil {
			return nil, err
		}
	}
	if err := m.checkCounts(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Module) sectionReader(id SectionID) func(*Reader) error {
	switch id {
	case SectionType:
		return m.readTypes
	case SectionImport:
		return m.readImports
	case SectionFunction:
		return m.readFunctions
	case SectionTable:
		return m.readTables
	case SectionMemory:
		return m.readMemories
	case SectionExport:
		return m.readExports
	case SectionStart:
		return m.readStart
	case SectionGlobal:
		return m.readGlobals
	case SectionElement:
		return m.readElements
	case SectionDataCount:
		return m.readDataCount
	case SectionCode:
		return m.readCode
	case SectionData:
		return m.readData
	default:
		return nil
	}
}

// Export finds an export by name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Custom returns the content of the custom section with that name, and whether there is one. Two with that name are an
// error, as in the function Custom.
func (m *Module) Custom(name string) ([]byte, bool, error) {
	return findCustom(m.Customs, name)
}

// FuncType returns the signature of a function by its index, counting imports first, and whether the function exists.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	i := uint64(index)
	if i < uint64(len(m.imported)) {
		return m.Types[m.imported[i]], true
	}
	i -= uint64(len(m.imported))
	if i < uint64(len(m.Functions)) {
		return m.Types[m.Functions[i]], true
	}
	return FuncType{}, false
}

func (m *Module) readTypes(r *Reader) error {
	n, err := m.count(r, "types")
	if err != nil {
		return err
	}
	for i := range n {
		form, err := r.Byte("form of a type")
		if err != nil {
			return err
		}
		if form != 0x60 {
			r.pos--
			return r.Errorf("type %d has form 0x%02x, want 0x60 (a function)", i, form)
		}
		var t FuncType
		if t.Params, err = r.valueTypes("parameters"); err != nil {
			return err
		}
		if t.Results, err = r.valueTypes("results"); err != nil {
			return err
		}
		m.Types = append(m.Types, t)
	}
	return nil
}

func (r *Reader) valueTypes(field string) ([]ValueType, error) {
	start := r.pos
	n, err := r.Count(field)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > maxSignature {
		r.pos = start
		return nil, r.Errorf("%d %s of one function, want at most %d", n, field, maxSignature)
	}
	out := make([]ValueType, n)
	for i := range out {
		if out[i], err = r.ValueType(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ValueType reads the type of a value.
func (r *Reader) ValueType() (ValueType, error) {
	c, err := r.Byte("value type")
	if err != nil {
		return 0, err
	}
	if t := ValueType(c); t.known() {
		return t, nil
	}
	r.pos--
	return 0, beyondError{r.Errorf("value type 0x%02x is not one of WebAssembly 2.0", c)}
}

func (m *Module) readImports(r *Reader) error {
	n, err := m.count(r, "imports")
	if err != nil {
		return err
	}
	for range n {
		imp, err := m.readImport(r)
		if err != nil {
			return err
		}
		m.Imports = append(m.Imports, imp)
	}
	return nil
}

func (m *Module) readImport(r *Reader) (imp Import, err error) {
	if imp.Module, err = r.Name("module of an import"); err != nil {
		return imp, err
	}
	if imp.Name, err = r.Name("name of an import"); err != nil {
		return imp, err
	}
	kind, err := r.Byte("kind of an import")
	if err != nil {
		return imp, err
	}
	imp.Kind = Kind(kind)
	switch imp.Kind {
	case KindFunc:
		index, err := m.typeIndex(r)
		if err != nil {
			return imp, err
		}
		m.imported = append(m.imported, index)
		imp.Type = m.Types[index]
	case KindTable:
		if err := r.ReferenceType(); err != nil {
			return imp, err
		}
		imp.Limits, err = r.Limits()
		return imp, err
	case KindMemory:
		m.importedMemories++
		imp.Limits, err = r.memory()
		return imp, err
	case KindGlobal:
		if imp.Global, err = r.ValueType(); err != nil {
			return imp, err
		}
		mutable, err := r.Byte("mutability of a global")
		if err != nil {
			return imp, err
		}
		if mutable > 1 {
			r.pos--
			return imp, r.Errorf("mutability of global import %q.%q is %d, want 0 or 1", imp.Module, imp.Name, mutable)
		}
		imp.Mutable = mutable == 1
	default:
		r.pos--
		return imp, r.Errorf("import %q.%q is of kind %s, want func, table, memory or global", imp.Module, imp.Name,
			imp.Kind)
	}
	return imp, nil
}

// ReferenceType reads the type of a table's elements.
func (r *Reader) ReferenceType() error {
	start := r.pos
	t, err := r.ValueType()
	if err != nil {
		return err
	}
	if !t.reference() {
		r.pos = start
		return r.Errorf("table of %s, want funcref or externref", t)
	}
	return nil
}

func (m *Module) typeIndex(r *Reader) (uint32, error) {
	start := r.pos
	index, err := r.U32("type index")
	if err != nil {
		return 0, err
	}
	if uint64(index) >= uint64(len(m.Types)) {
		r.pos = start
		return 0, r.Errorf("type index %d, but the module has %d types", index, len(m.Types))
	}
	return index, nil
}

func (m *Module) readFunctions(r *Reader) error {
	n, err := m.count(r, "functions")
	if err != nil {
		return err
	}
	m.Functions = make([]uint32, n)
	for i := range m.Functions {
		if m.Functions[i], err = m.typeIndex(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) readTables(r *Reader) error {
	n, err := r.Count("tables")
	if err != nil {
		return err
	}
	if n > maxTables {
		return r.Errorf("%d tables, want at most %d", n, maxTables)
	}
	for range n {
		start := r.pos
		if err := r.ReferenceType(); err != nil {
			return err
		}
		m.tableTypes = append(m.tableTypes, ValueType(r.data[start]))
		start = r.pos
		l, err := r.Limits()
		if err != nil {
			return err
		}
		if l.Shared || l.HasMax && l.Max < l.Min {
			r.pos = start
			return r.Errorf("table of at least %d entries and at most %d, shared %t", l.Min, l.Max, l.Shared)
		}
		m.Tables = append(m.Tables, l)
	}
	return nil
}

func (m *Module) readMemories(r *Reader) error {
	n, err := m.count(r, "memories")
	if err != nil {
		return err
	}
	for range n {
		limits, err := r.memory()
		if err != nil {
			return err
		}
		m.Memories = append(m.Memories, limits)
	}
	return nil
}

// Limits reads the size limits of a table or memory.
func (r *Reader) Limits() (l Limits, err error) {
	flags, err := r.Byte("limits")
	if err != nil {
		return l, err
	}
	if flags > 3 {
		r.pos--
		return l, r.Errorf("limits have flags 0x%02x, want 0 to 3 (64-bit memories and page sizes are not supported)",
			flags)
	}
	l.HasMax, l.Shared = flags&1 != 0, flags&2 != 0
	if l.Min, err = r.U32("minimum"); err != nil || !l.HasMax {
		return l, err
	}
	l.Max, err = r.U32("maximum")
	return l, err
}

func (r *Reader) memory() (Limits, error) {
	start := r.pos
	l, err := r.Limits()
	if err != nil {
		return l, err
	}
	after := r.pos
	r.pos = start
	switch {
	case l.Min > maxPages, l.HasMax && l.Max > maxPages:
		return l, r.Errorf("memory of %d pages, want at most %d", max(l.Min, l.Max), maxPages)
	case l.HasMax && l.Max < l.Min:
		return l, r.Errorf("memory of at least %d pages and at most %d", l.Min, l.Max)
	case l.Shared && !l.HasMax:
		return l, r.Errorf("shared memory without a maximum")
	}
	r.pos = after
	return l, nil
}

func (m *Module) readExports(r *Reader) error {
	n, err := m.count(r, "exports")
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for range n {
		start := r.pos
		e, err := m.readExport(r)
		if err != nil {
			return err
		}
		if seen[e.Name] {
			r.pos = start
			return r.Errorf("export %q is there twice", e.Name)
		}
		seen[e.Name] = true
		m.Exports = append(m.Exports, e)
	}
	return nil
}

func (m *Module) readExport(r *Reader) (e Export, err error) {
	if e.Name, err = r.Name("name of an export"); err != nil {
		return e, err
	}
	kind, err := r.Byte("kind of an export")
	if err != nil {
		return e, err
	}
	e.Kind = Kind(kind)
	if e.Kind > KindTag {
		r.pos--
		return e, r.Errorf("export %q is of kind %s, want func, table, memory, global or tag", e.Name, e.Kind)
	}
	start := r.pos
	if e.Index, err = r.U32("index of an export"); err != nil {
		return e, err
	}
	switch e.Kind {
	case KindFunc:
		var ok bool
		if e.Type, ok = m.FuncType(e.Index); !ok {
			r.pos = start
			return e, r.Errorf("export %q names function %d, but the module has %d", e.Name, e.Index,
				len(m.imported)+len(m.Functions))
		}
	case KindMemory:
		if count := m.importedMemories + len(m.Memories); uint64(e.Index) >= uint64(count) {
			r.pos = start
			return e, r.Errorf("export %q names memory %d, but the module has %d", e.Name, e.Index, count)
		}
	}
	return e, nil
}

func (m *Module) readStart(r *Reader) (err error) {
	if m.Start, err = r.U32("start function"); err != nil {
		return err
	}
	if _, ok := m.FuncType(m.Start); !ok {
		r.pos = 0
		return r.Errorf("start function %d, but the module has %d functions", m.Start, len(m.imported)+len(m.Functions))
	}
	m.HasStart = true
	return nil
}
