package meter

import (
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// assembly builds a module. Its types are fixed: 0 is () -> (), 1 is (i32) -> (), 2 is (i32, i32) -> i32.
type assembly struct {
	imports []string // functions of type 0 from module "env"
	funcs   []assembledFunction
	globals [][]byte
	table   []uint32 // functions in it
	start   int      // plus 1; 0 is none
}

type assembledFunction struct {
	kind   byte
	name   string // exported, unless empty
	locals []byte
	code   []byte // without the last end
}

func vec(items ...[]byte) []byte {
	return append(wasmbin.AppendU32(nil, uint32(len(items))), slices.Concat(items...)...)
}

func section(id wasmbin.SectionID, content []byte) []byte {
	return append(wasmbin.AppendU32([]byte{byte(id)}, uint32(len(content))), content...)
}

func (a *assembly) bytes() []byte {
	var imports, kinds, exports, code, table [][]byte
	for _, name := range a.imports {
		imports = append(imports, append(appendName(appendName(nil, "env"), name), 0, 0))
	}
	exports = append(exports, append(appendName(nil, "memory"), 2, 0))
	for i, f := range a.funcs {
		kinds = append(kinds, []byte{f.kind})
		if f.name != "" {
			exports = append(exports, wasmbin.AppendU32(append(appendName(nil, f.name), 0), uint32(len(a.imports)+i)))
		}
		body := slices.Concat(f.locals, f.code, []byte{0x0b})
		if f.locals == nil {
			body = slices.Concat([]byte{0}, body)
		}
		code = append(code, append(wasmbin.AppendU32(nil, uint32(len(body))), body...))
	}
	for i := range a.globals {
		exports = append(exports, append(appendName(nil, "g"+string(rune('0'+i))), 3, byte(i)))
	}
	for _, f := range a.table {
		table = append(table, wasmbin.AppendU32(nil, f))
	}
	out := []byte(header)
	out = append(out, section(wasmbin.SectionType,
		vec([]byte{0x60, 0, 0}, []byte{0x60, 1, 0x7f, 0}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7f}))...)
	out = append(out, section(wasmbin.SectionImport, vec(imports...))...)
	out = append(out, section(wasmbin.SectionFunction, vec(kinds...))...)
	out = append(out, section(wasmbin.SectionTable,
		vec(append([]byte{0x70, 0}, wasmbin.AppendU32(nil, uint32(len(a.table)))...)))...)
	out = append(out, section(wasmbin.SectionMemory, vec([]byte{1, 1, 0x80, 0x08}))...)
	out = append(out, section(wasmbin.SectionGlobal, vec(a.globals...))...)
	out = append(out, section(wasmbin.SectionExport, vec(exports...))...)
	if a.start > 0 {
		out = append(out, section(wasmbin.SectionStart, wasmbin.AppendU32(nil, uint32(len(a.imports)+a.start-1)))...)
	}
	out = append(out, section(wasmbin.SectionElement, vec(append([]byte{0, 0x41, 0, 0x0b}, vec(table...)...)))...)
	return append(out, section(wasmbin.SectionCode, vec(code...))...)
}
