package host_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wasmFunc is a function of a hand-made module: exported under name, or imported if from is set.
type wasmFunc struct {
	from, name      string
	params, results []wasmbin.ValueType
}

// craftedModule is a module from which tests remove parts. Its functions trap, unless code has their bodies.
type craftedModule struct {
	funcs    []wasmFunc
	code     map[string][]byte // bodies of functions by name, without the last end
	start    string            // the start function
	pages    byte              // of memory, as a LEB128 number of one or two bytes
	pagesTop byte
	memory   string // the memory's export name
	table    []byte // limits of a table of functions
	globals  int    // number of mutable globals
	manifest string
	data     string // at the start of the memory
}

func goodModule() *craftedModule {
	i32, i64 := []wasmbin.ValueType{wasmbin.I32}, []wasmbin.ValueType{wasmbin.I64}
	m := &craftedModule{pages: 1, memory: abi.MemoryExport, manifest: `{"manifest":1,"name":"hand","version":"1","abi":"mh1","description":"d",
		"providers":[{"name":"hand","kind":"control"}],"config_schema":{"type":"object"}}`}
	m.funcs = append(m.funcs, wasmFunc{"", abi.Marker, nil, nil}, wasmFunc{"", abi.InitExport, nil, nil},
		wasmFunc{"", abi.BufferExport, i32, i32})
	for _, op := range abi.RequiredOperations() {
		m.funcs = append(m.funcs, wasmFunc{"", op, i32, i64})
	}
	return m
}

func (m *craftedModule) without(name string) *craftedModule {
	m.funcs = slices.DeleteFunc(m.funcs, func(f wasmFunc) bool { return f.name == name })
	return m
}

func (m *craftedModule) with(f wasmFunc) *craftedModule {
	m.funcs = append(m.without(f.name).funcs, f)
	return m
}

func (m *craftedModule) replaceText(old, new string) *craftedModule {
	m.manifest = strings.ReplaceAll(m.manifest, old, new)
	return m
}

func section(id byte, items ...[]byte) []byte {
	body := uleb(len(items))
	for _, i := range items {
		body = append(body, i...)
	}
	return append(append([]byte{id}, uleb(len(body))...), body...)
}

func uleb(n int) []byte {
	var b []byte
	for {
		if n < 0x80 {
			return append(b, byte(n))
		}
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
}

func name(s string) []byte { return append(uleb(len(s)), s...) }

func (m *craftedModule) bytes(t testing.TB) []byte {
	t.Helper()
	slices.SortStableFunc(m.funcs, func(a, b wasmFunc) int { return strings.Compare(b.from, a.from) }) // imports first
	var types, imports, funcs, exports, code [][]byte
	var start []byte
	for i, f := range m.funcs {
		typ := append([]byte{0x60}, uleb(len(f.params))...)
		for _, p := range f.params {
			typ = append(typ, byte(p))
		}
		typ = append(typ, uleb(len(f.results))...)
		for _, r := range f.results {
			typ = append(typ, byte(r))
		}
		types = append(types, typ)
		if f.from != "" {
			imports = append(imports, append(append(name(f.from), name(f.name)...), append([]byte{0}, uleb(i)...)...))
			continue
		}
		funcs = append(funcs, uleb(i))
		exports = append(exports, append(append(name(f.name), 0), uleb(i)...))
		body := []byte{0x00} // unreachable
		if c, ok := m.code[f.name]; ok {
			body = c
		}
		body = append(append([]byte{0}, body...), 0x0b)
		code = append(code, append(uleb(len(body)), body...))
		if f.name == m.start {
			start = append([]byte{8}, append(uleb(len(uleb(i))), uleb(i)...)...)
		}
	}
	exports = append(exports, append(name(m.memory), 2, 0))
	memory := []byte{0, m.pages}
	if m.pagesTop > 0 {
		memory = []byte{0, m.pages | 0x80, m.pagesTop}
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = append(b, section(1, types...)...)
	if len(imports) > 0 {
		b = append(b, section(2, imports...)...)
	}
	b = append(b, section(3, funcs...)...)
	if m.table != nil {
		b = append(b, section(4, append([]byte{0x70}, m.table...))...)
	}
	b = append(b, section(5, memory)...)
	if m.globals > 0 {
		b = append(b, section(6, slices.Repeat([][]byte{{0x7f, 1, opI32, 0, 0x0b}}, m.globals)...)...)
	}
	b = append(b, section(7, exports...)...)
	b = append(b, start...)
	b = append(b, section(10, code...)...)
	if m.data != "" {
		b = append(b, section(11, append([]byte{0, opI32, 0, 0x0b}, name(m.data)...))...)
	}
	if m.manifest == "" {
		return b
	}
	b, err := wasmbin.SetCustom(b, abi.ManifestSection, []byte(m.manifest))
	require.NoError(t, err)
	return b
}

func TestModulesThatAreRefusedAndWhatTheyAreTold(t *testing.T) {
	i32, i64 := []wasmbin.ValueType{wasmbin.I32}, []wasmbin.ValueType{wasmbin.I64}
	probe := host.ProbeModule
	for _, c := range []struct {
		name string
		wasm []byte
		says []string
	}{
		{"empty", nil, []string{"is not a wasm module"}},
		{"text", []byte("#!/bin/sh\nexit 0\n"), []string{"is not a wasm module"}},
		{"truncated", probe[:len(probe)/2], []string{"truncated"}},
		{"too large", make([]byte, 17<<20), []string{"limit is 16777216"}},
		{"no manifest", (&craftedModule{funcs: goodModule().funcs, pages: 1, memory: "memory"}).bytes(t),
			[]string{`no custom section "memhost.manifest"`, "memhost pack"}},
		{"manifest that is no JSON", goodModule().replaceText("{", "[").bytes(t), []string{"manifest that is wrong"}},
		{"manifest with an unknown key", goodModule().replaceText(`"version"`, `"verssion"`).bytes(t),
			[]string{"verssion", `"version"`}},
		{"manifest of another version", goodModule().replaceText(`"manifest":1`, `"manifest":3`).bytes(t),
			[]string{"manifest"}},
		{"manifest with a schema that is none", goodModule().replaceText(`{"type":"object"}`, `{"type":"objekt"}`).bytes(t),
			[]string{"config_schema"}},
		{"manifest without providers", goodModule().replaceText(`[{"name":"hand","kind":"control"}]`, `[]`).bytes(t),
			[]string{"providers"}},
		{"no marker", goodModule().without(abi.Marker).bytes(t), []string{"no memhost plugin", abi.Marker}},
		{"marker of another version", goodModule().without(abi.Marker).with(wasmFunc{"", "mh_abi_2", nil,
			nil}).bytes(t), []string{"another version", "mh_abi_2", "mh_abi_1"}},
		{"missing export", goodModule().without(abi.OpRetrieve).bytes(t),
			[]string{"lacks the export retrieve", "(i32) -> i64"}},
		{"mistyped export", goodModule().with(wasmFunc{"", abi.OpRetrieve, i32, i32}).bytes(t),
			[]string{"exports retrieve as (i32) -> i32", "want (i32) -> i64"}},
		{"mistyped capability", goodModule().with(wasmFunc{"", abi.OpInventory, nil, i64}).bytes(t),
			[]string{"exports inventory as () -> i64"}},
		{"no buffer", goodModule().without(abi.BufferExport).bytes(t), []string{"lacks the export mh_buffer"}},
		{"memory under another name", func() []byte {
			m := goodModule()
			m.memory = "mem"
			return m.bytes(t)
		}(), []string{`export its memory as "memory"`}},
		{"forbidden import", goodModule().with(wasmFunc{"env", "system", i32, i32}).bytes(t),
			[]string{"imports env.system", "memhost and wasi_snapshot_preview1 only"}},
		{"forbidden WASI import", goodModule().with(wasmFunc{abi.WASIModule, "proc_raise", i32, i32}).bytes(t),
			[]string{"wasi_snapshot_preview1.proc_raise"}},
		{"unknown host import", goodModule().with(wasmFunc{abi.HostModule, "state_gett", i32, i64}).bytes(t),
			[]string{"memhost.state_gett", "did it mean state_get?"}},
		{"mistyped host import", goodModule().with(wasmFunc{abi.HostModule, "deadline", i32, i64}).bytes(t),
			[]string{"imports memhost.deadline as (i32) -> i64, want () -> i64"}},
		{"200 MB of memory", func() []byte {
			m := goodModule()
			m.pages, m.pagesTop = 0, 25
			return m.bytes(t)
		}(),
			[]string{"demands 200 MiB", "limit is 128 MiB"}},
		{"manifest of another ABI", goodModule().replaceText(`"abi":"mh1"`, `"abi":"mh1-extism"`).bytes(t),
			[]string{`its manifest says abi "mh1-extism"`}},
		{"routes without the power to send", goodModule().replaceText(`"config_schema"`,
			`"origins":[{"name":"o","from":"/url","protocol":"http"}],"routes":[{"name":"r","origin":"o","method":"GET","path":"/","class":"read"}],"config_schema"`).bytes(t),
			[]string{"does not import http_send", "routes[0]"}},
		{"statements without the power to run them",
			goodModule().replaceText(`"config_schema"`, `"origins":[{"name":"o","from":"/url","protocol":"bolt"}],"routes":[{"name":"r","origin":"o","statement":"RETURN 1","class":"read"}],"config_schema"`).bytes(t),
			[]string{"does not import bolt_run", "routes[0]"}},
		{"the power to run statements without any",
			goodModule().with(wasmFunc{abi.HostModule, abi.ImportBoltRun, []wasmbin.ValueType{wasmbin.I32, wasmbin.I32},
				i64}).bytes(t),
			[]string{"imports bolt_run", "no route of protocol bolt"}},
		{"background without its export", goodModule().replaceText(`"config_schema"`,
			`"background":[{"export":"readiness","interval_ms":1000,"class":"read"}],"config_schema"`).bytes(t),
			[]string{"no export readiness", "background[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := host.Inspect(c.wasm, host.Limits{})
			e := host.RequireCode(t, err, abi.CodeInvalidArgument, c.says...)
			assert.Equal(t, "bad_module", e.Reason)
		})
	}
	_, err := host.Inspect(goodModule().bytes(t), host.Limits{})
	require.NoError(t, err, "and the one from which they were made is accepted")
}

func TestBadModuleLeavesTheSlotUnharmed(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	for name, c := range map[string]host.ProviderConfig{
		"no wasm":       {Name: "probe", Module: []byte("no")},
		"no provider":   {Name: "prob", Module: host.ProbeModule},
		"wrong block":   {Name: "probe", Module: host.ProbeModule, Block: abi.Raw(`{"urll":"x"}`)},
		"wrong word":    {Name: "probe", Word: "backend", Module: host.ProbeModule},
		"traps at once": {Name: "hand", Module: goodModule().bytes(t)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Swap(context.Background(), c)
			require.Error(t, err)
			assert.Contains(t, abi.AsError(err).Hint, "the slot still serves probe")
			host.RequireUsable(t, s, name)
		})
	}
}

func TestInspectReadsPowersOffTheImportSection(t *testing.T) {
	m, err := host.Inspect(host.ProbeModule, host.Limits{})
	require.NoError(t, err)
	assert.Contains(t, m.Powers, abi.ImportHTTPSend)
	assert.Contains(t, m.Exports, abi.OpNativeMutation)
	echo, err := host.Inspect(testguest.Echo(), host.Limits{})
	require.NoError(t, err)
	assert.Empty(t, echo.Powers, "a module that uses nothing imports nothing")
}

func TestConfigBlockIsValidatedWithTheNearestKey(t *testing.T) {
	h := host.Open(t, host.Options{})
	for block, says := range map[string]string{
		`{"heallth":"ok"}`:               `did you mean "health"`,
		`{"health":"fine"}`:              "health",
		`{"url":17}`:                     "url",
		`{"api_key":"inline"}`:           "api_key",
		`{"api_key":{"secret":"NOPE"}}`:  "NOPE",
		`{"url":"http://user:pw@host/"}`: "credentials",
		`[]`:                             "object",
	} {
		_, err := h.Open(context.Background(), host.ProbeConfig(block))
		host.RequireCode(t, err, abi.CodeInvalidArgument, says)
	}
}

func TestPresetOfAProviderIsLaidUnderTheBlock(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: "probe_backend", Module: host.ProbeModule,
		Block: abi.Raw(`{"health":"degraded"}`)})
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.JSONEq(t, `{"health":"degraded","note":"preset"}`, string(m.Config))
	assert.Equal(t, "probe_backend", m.Backend)
	assert.Empty(t, m.Condition, "exactly one of the two is set")
	assert.Equal(t, abi.KindArchitecture, m.ConditionKind)
}

func FuzzInspectNeverPanics(f *testing.F) {
	f.Add(goodModule().bytes(f))
	f.Add(testguest.Echo())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if m, err := host.Inspect(wasm, host.Limits{}); err == nil {
			require.NotNil(t, m.Manifest)
		} else {
			_ = host.RequireCode(t, err, abi.CodeInvalidArgument)
		}
	})
}

func FuzzManifestNeverPanics(f *testing.F) {
	f.Add([]byte(goodModule().manifest))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, _, err := host.ParseManifest(text); err == nil {
			require.True(t, json.Valid(text))
		}
	})
}

func TestAModuleIsRewrittenOnceForAllHosts(t *testing.T) {
	cache := t.TempDir()
	for range 2 {
		h := host.Open(t, host.Options{CacheDir: cache})
		_, err := h.Load(t.Context(), host.ProbeModule)
		require.NoError(t, err)
	}
	files, err := filepath.Glob(filepath.Join(cache, "metered-*", "*"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}
