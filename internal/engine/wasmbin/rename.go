package wasmbin

// Rename returns a copy of the module with renamed imports and exports; everything else is kept byte for byte. imports
// and exports return the new name, or the name that they got.
//
// Errors: those of Parse.
func Rename(b []byte, imports func(module, name string) (string, string), exports func(name string) string) ([]byte,
	error) {
	sections, err := Sections(b)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(b)), coreHeader...)
	m := &Module{}
	for i := range sections {
		s := &sections[i]
		var content []byte
		switch s.ID {
		case SectionType:
			err = m.readTypes(s.Reader())
		case SectionImport:
			content, err = m.renameImports(s.Reader(), imports)
		case SectionExport:
			content, err = renameExports(s.Reader(), exports)
		}
		if err != nil {
			return nil, err
		}
		if content == nil {
			out = append(out, s.Raw...)
			continue
		}
		out = AppendU32(append(out, byte(s.ID)), uint32(len(content)))
		out = append(out, content...)
	}
	return out, nil
}

func (m *Module) renameImports(r *Reader, to func(module, name string) (string, string)) ([]byte, error) {
	n, err := r.Count("imports")
	if err != nil {
		return nil, err
	}
	out := AppendU32(nil, uint32(n))
	for range n {
		start := *r
		imp, err := m.readImport(r)
		if err != nil {
			return nil, err
		}
		// The names were just read; after them come the kind and its description.
		if _, err := start.Name("module of an import"); err != nil {
			return nil, err
		}
		if _, err := start.Name("name of an import"); err != nil {
			return nil, err
		}
		module, name := to(imp.Module, imp.Name)
		out = appendName(appendName(out, module), name)
		out = append(out, r.Since(start.Pos())...)
	}
	return out, r.End()
}

func renameExports(r *Reader, to func(name string) string) ([]byte, error) {
	n, err := r.Count("exports")
	if err != nil {
		return nil, err
	}
	out := AppendU32(nil, uint32(n))
	for range n {
		name, err := r.Name("name of an export")
		if err != nil {
			return nil, err
		}
		behind := r.Pos()
		if _, err := r.Byte("kind of an export"); err != nil {
			return nil, err
		}
		if _, err := r.U32("index of an export"); err != nil {
			return nil, err
		}
		out = append(appendName(out, to(name)), r.Since(behind)...)
	}
	return out, r.End()
}

func appendName(b []byte, name string) []byte {
	return append(AppendU32(b, uint32(len(name))), name...)
}
