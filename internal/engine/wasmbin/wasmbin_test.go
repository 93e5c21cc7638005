package wasmbin

import (
	"bytes"
	"context"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func section(id SectionID, content ...byte) []byte {
	return append(AppendU32([]byte{byte(id)}, uint32(len(content))), content...)
}

func custom(name, payload string) []byte {
	return section(SectionCustom, append(AppendU32(nil, uint32(len(name))), name+payload...)...)
}

func module(sections ...[]byte) []byte {
	return append(bytes.Clone(coreHeader), bytes.Join(sections, nil)...)
}

func str(s string) []byte { return append(AppendU32(nil, uint32(len(s))), s...) }

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// guest is a valid module with one of everything that Parse reports: types
// (i32)->i64 and ()->(), an imported function, an imported global, one memory, three
// exports and two custom sections.
func guest() []byte {
	return module(
		custom("first", "1"),
		section(SectionType, 2, 0x60, 1, 0x7f, 1, 0x7e, 0x60, 0, 0),
		section(SectionImport, cat([]byte{2},
			str("memhost"), str("log"), []byte{0, 1},
			str("env"), str("base"), []byte{3, 0x7f, 0})...),
		section(SectionFunction, 2, 0, 1),
		section(SectionMemory, 1, 1, 2, 16),
		section(SectionExport, cat([]byte{3},
			str("retrieve"), []byte{0, 1},
			str("mh_abi_1"), []byte{0, 2},
			str("memory"), []byte{2, 0})...),
		section(SectionCode, 2, 4, 0, 0x42, 0, 0x0b, 2, 0, 0x0b),
		custom("memhost.manifest", `{"manifest":1}`),
	)
}

func TestParseReadsWhatAModuleWantsAndOffers(t *testing.T) {
	m, err := Parse(guest())
	require.NoError(t, err)

	operation := FuncType{Params: []ValueType{I32}, Results: []ValueType{I64}}
	assert.Equal(t, []FuncType{operation, {}}, m.Types)
	assert.Equal(t, []Import{
		{Module: "memhost", Name: "log", Kind: KindFunc},
		{Module: "env", Name: "base", Kind: KindGlobal, Global: I32},
	}, m.Imports)
	assert.Equal(t, []uint32{0, 1}, m.Functions)
	assert.Equal(t, []Limits{{Min: 2, Max: 16, HasMax: true}}, m.Memories)
	assert.Equal(t, []Export{
		{Name: "retrieve", Kind: KindFunc, Index: 1, Type: operation},
		{Name: "mh_abi_1", Kind: KindFunc, Index: 2},
		{Name: "memory", Kind: KindMemory},
	}, m.Exports)
	assert.False(t, m.HasStart)

	manifest, ok, err := m.Custom("memhost.manifest")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, `{"manifest":1}`, string(manifest))

	export, ok := m.Export("retrieve")
	assert.True(t, ok)
	assert.Equal(t, "(i32) -> i64", export.Type.String())
	_, ok = m.Export("record_event")
	assert.False(t, ok)
}

func TestParseAgreesWithTheEngine(t *testing.T) {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { require.NoError(t, runtime.Close(ctx)) }()
	compiled, err := runtime.CompileModule(ctx, guest())
	require.NoError(t, err)
	m, err := Parse(guest())
	require.NoError(t, err)

	var functions int
	for _, e := range m.Exports {
		if e.Kind != KindFunc {
			continue
		}
		functions++
		definition := compiled.ExportedFunctions()[e.Name]
		require.NotNil(t, definition, e.Name)
		assert.Equal(t, e.Index, definition.Index())
		assert.Equal(t, types(definition.ParamTypes()), e.Type.Params, e.Name)
		assert.Equal(t, types(definition.ResultTypes()), e.Type.Results, e.Name)
	}
	assert.Len(t, compiled.ExportedFunctions(), functions)
	assert.Len(t, compiled.ImportedFunctions(), 1)
}

func types(engine []byte) []ValueType {
	var out []ValueType
	for _, t := range engine {
		out = append(out, ValueType(t))
	}
	return out
}

func TestStartSectionIsReported(t *testing.T) {
	m, err := Parse(module(
		section(SectionType, 1, 0x60, 0, 0),
		section(SectionFunction, 1, 0),
		section(SectionStart, 0),
		section(SectionCode, 1, 2, 0, 0x0b),
	))
	require.NoError(t, err)
	assert.True(t, m.HasStart)
	assert.Zero(t, m.Start)
}

func TestErrorsSayWhatIsWrongAndWhere(t *testing.T) {
	type1 := section(SectionType, 1, 0x60, 0, 0)
	func1 := section(SectionFunction, 1, 0)
	cases := []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "wasm: not a WebAssembly core module: it is empty"},
		{"text", []byte("hello, world"), "wasm: not a WebAssembly core module: it starts with 68 65 6c 6c 6f 2c 20 " +
			"77, want 00 61 73 6d 01 00 00 00"},
		{"component", componentHeader, "wasm: this is a WebAssembly component, want a core module (a WASI preview 1 " +
			"reactor)"},
		{"size missing", module([]byte{7}), "wasm: section 7 (export) at byte 9: truncated size: the number does not " +
			"end"},
		{"size too long", module([]byte{7, 0x80, 0x80, 0x80, 0x80, 0x80, 0}),
			"wasm: section 7 (export) at byte 9: size is longer than 5 bytes"},
		{"size too large", module([]byte{7, 0xff, 0xff, 0xff, 0xff, 0x7f}),
			"wasm: section 7 (export) at byte 9: size is 34359738367, want at most 4294967295"},
		{"content missing", module(type1, []byte{7, 99}, make([]byte, 12)),
			"wasm: truncated section 7 (export) at byte 14: want 99 bytes, have 12"},
		{"unknown section", module([]byte{14, 0}), "wasm: section 14 at byte 8: unknown section"},
		{"order", module(func1, type1), "wasm: section 1 (type) at byte 12: stands after section 3 (function), want " +
			"each once and in the order of the specification"},
		{"twice", module(type1, type1), "wasm: section 1 (type) at byte 14: stands after section 1 (type), want each " +
			"once and in the order of the specification"},
		{"custom without name", module([]byte{0, 0}),
			"wasm: section 0 (custom) at byte 10: truncated length of name: the number does not end"},
		{"custom name too long", module([]byte{0, 2, 5, 'a'}),
			"wasm: section 0 (custom) at byte 11: truncated name: want 5 bytes, have 1"},
		{"custom name not UTF-8", module([]byte{0, 2, 1, 0xff}),
			"wasm: section 0 (custom) at byte 11: name is not UTF-8"},
		{"count beyond the section", module(section(SectionType, 0xff, 0xff, 0xff, 0xff, 0x0f)),
			"wasm: section 1 (type) at byte 10: 4294967295 types announced, but only 0 bytes follow"},
		{"type form", module(section(SectionType, 1, 0x5f, 0)),
			"wasm: section 1 (type) at byte 11: type 0 has form 0x5f, want 0x60 (a function)"},
		{"value type", module(section(SectionType, 1, 0x60, 1, 0x40, 0)),
			"wasm: section 1 (type) at byte 13: value type 0x40 is not one of WebAssembly 2.0"},
		{"left over", module(section(SectionType, 0, 1, 2)),
			"wasm: section 1 (type) at byte 11: 2 bytes left over at its end"},
		{"type index of an import", module(section(SectionImport, 1, 1, 'a', 1, 'b', 0, 3)),
			"wasm: section 2 (import) at byte 16: type index 3, but the module has 0 types"},
		{"kind of an import", module(section(SectionImport, 1, 1, 'a', 1, 'b', 9, 0)),
			`wasm: section 2 (import) at byte 15: import "a"."b" is of kind unknown (9), want func, table, memory or global`},
		{"table of numbers", module(section(SectionImport, 1, 1, 'a', 1, 'b', 1, 0x7f, 0, 0)),
			"wasm: section 2 (import) at byte 16: table of i32, want funcref or externref"},
		{"mutability", module(section(SectionImport, 1, 1, 'a', 1, 'b', 3, 0x7f, 2)),
			`wasm: section 2 (import) at byte 17: mutability of global import "a"."b" is 2, want 0 or 1`},
		{"type index of a function", module(type1, section(SectionFunction, 1, 1)),
			"wasm: section 3 (function) at byte 17: type index 1, but the module has 1 types"},
		{"64-bit memory", module(section(SectionMemory, 1, 4, 1)),
			"wasm: section 5 (memory) at byte 11: limits have flags 0x04, want 0 to 3 (64-bit memories and page " +
				"sizes are not supported)"},
		{"memory too large", module(section(SectionMemory, 1, 0, 0x81, 0x80, 4)),
			"wasm: section 5 (memory) at byte 11: memory of 65537 pages, want at most 65536"},
		{"memory upside down", module(section(SectionMemory, 1, 1, 3, 2)),
			"wasm: section 5 (memory) at byte 11: memory of at least 3 pages and at most 2"},
		{"shared without maximum", module(section(SectionMemory, 1, 2, 3)),
			"wasm: section 5 (memory) at byte 11: shared memory without a maximum"},
		{"export of a missing function", module(section(SectionExport, 1, 1, 'f', 0, 5)),
			`wasm: section 7 (export) at byte 14: export "f" names function 5, but the module has 0`},
		{"export of a missing memory", module(section(SectionExport, 1, 1, 'm', 2, 0)),
			`wasm: section 7 (export) at byte 14: export "m" names memory 0, but the module has 0`},
		{"kind of an export", module(section(SectionExport, 1, 1, 'm', 5, 0)),
			`wasm: section 7 (export) at byte 13: export "m" is of kind unknown (5), want func, table, memory, global or tag`},
		{"export twice", module(type1, func1, section(SectionExport, 2, 1, 'f', 0, 0, 1, 'f', 0, 0)),
			`wasm: section 7 (export) at byte 25: export "f" is there twice`},
		{"start of nothing", module(section(SectionStart, 2)),
			"wasm: section 8 (start) at byte 10: start function 2, but the module has 0 functions"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.in)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestEveryTruncationIsAnErrorOrASmallerModule(t *testing.T) {
	whole := guest()
	for n := range whole {
		m, err := Parse(whole[:n])
		if err == nil {
			assert.Less(t, len(m.Customs), 2, "cut at byte %d", n)
		}
	}
}

func TestCustomRefusesTwoOfOneName(t *testing.T) {
	b := module(custom("memhost.manifest", "{}"), custom("other", ""), custom("memhost.manifest", "{}"))
	_, _, err := Custom(b, "memhost.manifest")
	assert.EqualError(t, err, `wasm: custom section "memhost.manifest" is there twice, at byte 8 and at byte 37: want one`)

	_, ok, err := Custom(b, "missing")
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestSetCustomReplacesAndKeepsTheRest(t *testing.T) {
	b := guest()
	out, err := SetCustom(b, "memhost.manifest", []byte("new"))
	require.NoError(t, err)
	assert.Equal(t, guest(), b, "the input is left alone")

	got, ok, err := Custom(out, "memhost.manifest")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "new", string(got))

	before, err := StripCustom(b, "memhost.manifest")
	require.NoError(t, err)
	after, err := StripCustom(out, "memhost.manifest")
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestStripCustomRemovesOnlyWhatIsNamed(t *testing.T) {
	type1 := section(SectionType, 1, 0x60, 0, 0)
	out, err := StripCustom(module(custom("name", "x"), type1, custom("producers", "y"), custom("kept", "z")), "name",
		"producers", "absent")
	require.NoError(t, err)
	assert.Equal(t, module(type1, custom("kept", "z")), out)
}

func TestOverlongNumbersOfForeignCompilersSurvive(t *testing.T) {
	padded := []byte{byte(SectionType), 0x84, 0x80, 0x80, 0x80, 0x00, 1, 0x60, 0, 0}
	b := module(padded)
	m, err := Parse(b)
	require.NoError(t, err)
	assert.Len(t, m.Types, 1)
	out, err := SetCustom(b, "a", nil)
	require.NoError(t, err)
	assert.Equal(t, module(padded, custom("a", "")), out)
}

func TestSignaturesReadLikeTheTextFormat(t *testing.T) {
	assert.Equal(t, "() -> ()", FuncType{}.String())
	assert.Equal(t, "(i32, f64) -> i64", FuncType{Params: []ValueType{I32, F64}, Results: []ValueType{I64}}.String())
	assert.Equal(t, "(externref) -> (i32, v128)", FuncType{Params: []ValueType{ExternRef},
		Results: []ValueType{I32, V128}}.String())
	assert.True(t, FuncType{Params: []ValueType{I32}}.Equal(FuncType{Params: []ValueType{I32}}))
	assert.False(t, FuncType{Params: []ValueType{I32}}.Equal(FuncType{Results: []ValueType{I32}}))
}

func FuzzParse(f *testing.F) {
	f.Add(guest(), "memhost.manifest", []byte("{}"))
	f.Add(module(), "", []byte(nil))
	f.Add(module(section(SectionImport, 2, 1, 'a', 1, 'b', 1, 0x70, 1, 0, 9, 1, 'a', 1, 'm', 2, 3, 1, 2)), "name",
		[]byte{0xff})
	f.Add(module(custom("twice", ""), custom("twice", "")), "twice", []byte("x"))
	f.Fuzz(func(t *testing.T, b []byte, name string, payload []byte) {
		original := bytes.Clone(b)
		m, parseErr := Parse(b)
		sections, err := Sections(b)
		if err != nil {
			require.Error(t, parseErr)
			return
		}
		var joined []byte
		for i := range sections {
			joined = append(joined, sections[i].Raw...)
		}
		require.Equal(t, b, append(bytes.Clone(coreHeader), joined...))
		if parseErr == nil {
			for _, e := range m.Exports {
				got, ok := m.FuncType(e.Index)
				require.True(t, e.Kind != KindFunc || ok && got.Equal(e.Type))
			}
		}

		out, err := SetCustom(b, name, payload)
		require.Equal(t, original, b)
		if !utf8.ValidString(name) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		got, ok, err := Custom(out, name)
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, bytes.Equal(payload, got))
		stripped, err := StripCustom(out, name)
		require.NoError(t, err)
		want, err := StripCustom(b, name)
		require.NoError(t, err)
		require.Equal(t, want, stripped)
	})
}
