package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Module is what a plugin's bytes reveal: see host.Module.
type Module struct {
	Manifest        *abi.ModuleManifest
	SHA256          string
	Bytes           int64
	Engine          string
	Warnings        []string
	Powers, Exports []string
	MemoryPages     uint32
	Customs         map[string]int

	// Schema is the JSON Schema of the configuration block.
	Schema *schema.Schema
	engine Engine // nil means mh1
}

// Limits bound modules and guests, in bytes: see host.Limits.
type Limits struct{ ModuleBytes, MemoryBytes int64 }

// Inspect checks a module without compiling or running it. engines are those besides mh1's.
//
// Errors: invalid_argument with what was found and wanted: no wasm or truncated wasm; a missing or unsupported ABI
// marker; an export that is missing or has another type; a forbidden import; a manifest that is missing, malformed or
// inconsistent with the module; more memory than the limit.
func Inspect(wasm []byte, limits Limits, engines []Engine) (*Module, error) {
	// 1. Size and form.
	if int64(len(wasm)) > limits.ModuleBytes {
		return nil, BadModule("", "has %d bytes, the limit is %d", len(wasm), limits.ModuleBytes)
	}
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, BadModule("", "is not a wasm module that can be read: %v", err).
			WithHint("is it the right file, and all of it? `memhost build FOLDER` makes a module of a plugin's folder")
	}
	sum := sha256.Sum256(wasm)
	m := &Module{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(wasm)), Customs: map[string]int{}}
	for _, s := range parsed.Customs {
		m.Customs[s.Name] += len(s.Data)
	}
	// 2. Manifest: its name makes the later messages readable.
	if err := m.readManifest(parsed); err != nil {
		return nil, err
	}
	// 3. Version, exports and imports.
	if err := m.checkABI(parsed, engines); err != nil {
		return nil, err
	}
	// 4. Memory.
	if err := m.checkMemory(parsed, limits); err != nil {
		return nil, err
	}
	// 5. Manifest against module.
	return m, m.checkManifestHolds()
}

// checkABI finds the engine for a module and checks the module against its ABI.
func (m *Module) checkABI(parsed *wasmbin.Module, engines []Engine) error {
	_, marked := parsed.Export(abi.Marker)
	for _, e := range engines {
		if e.Claims(parsed) || e.ABI() == m.Manifest.ABI && !marked {
			m.engine = e
			return e.Check(m, parsed)
		}
	}
	if m.Manifest.ABI != abi.ABIMemhost {
		if marked {
			return BadModule(m.Name(), "exports %s, but its manifest says abi %q", abi.Marker, m.Manifest.ABI)
		}
		return BadModule(m.Name(), "is of abi %q, and this host runs modules of abi %q only", m.Manifest.ABI,
			abi.ABIMemhost).
			WithHint("a program that embeds memhost passes engines for others in host.Options.Engines: " +
				"package host/extism has the one for Extism")
	}
	for _, check := range []func(*wasmbin.Module) error{m.checkMarker, m.checkExports, m.checkImports} {
		if err := check(parsed); err != nil {
			return err
		}
	}
	return nil
}

// Name is the module's name, for messages; empty before the manifest is read.
func (m *Module) Name() string {
	if m.Manifest == nil {
		return ""
	}
	return m.Manifest.Name
}

// Has reports whether the module exports an operation.
func (m *Module) Has(op string) bool { return slices.Contains(m.Exports, op) }

// BadModule is the error for a module that cannot be loaded.
func BadModule(name, format string, args ...any) *abi.Error {
	who := "module"
	if name != "" {
		who = "module " + name
	}
	return abi.NewError(abi.CodeInvalidArgument, who+" "+fmt.Sprintf(format, args...)).WithReason("bad_module").
		WithHint("abi/ABI.md says what a module must be, docs/new-plugin.md how one is made")
}

func (m *Module) readManifest(parsed *wasmbin.Module) error {
	text, found, err := parsed.Custom(abi.ManifestSection)
	if err != nil {
		return BadModule("", "has a manifest that cannot be read: %v", err)
	}
	if !found {
		return BadModule("", "has no custom section %q",
			abi.ManifestSection).WithHint("attach one: memhost pack FILE.wasm --manifest manifest.json")
	}
	m.Manifest, m.Schema, err = ParseManifest(text)
	return err
}

// manifestBytes is the size limit of a manifest; the largest one in this repository has 45 KB.
const manifestBytes = 512 << 10

// ParseManifest reads and validates a module's manifest.json, with the JSON Schema in it.
//
// Errors: invalid_argument with the field that is wrong.
func ParseManifest(text []byte) (*abi.ModuleManifest, *schema.Schema, error) {
	if len(text) > manifestBytes {
		return nil, nil, BadModule("", "has a manifest of %d bytes, the limit is %d", len(text), manifestBytes)
	}
	manifest := new(abi.ModuleManifest)
	if err := abi.UnmarshalStrict(text, manifest); err != nil {
		return nil, nil, BadModule("", "has a manifest that is wrong: %v", abi.AsError(err).Message)
	}
	if err := manifest.Validate(); err != nil {
		return nil, nil, BadModule(manifest.Name, "has a manifest that is wrong: %v", abi.AsError(err).Message)
	}
	compiled, err := schema.Compile(manifest.ConfigSchema)
	if err != nil {
		return nil, nil, BadModule(manifest.Name, "has a manifest that is wrong: config_schema: %v",
			abi.AsError(err).Message)
	}
	for i, e := range manifest.Empty {
		if _, err := regexp.Compile(e.Body); err != nil {
			return nil, nil, BadModule(manifest.Name, "has a manifest that is wrong: empty[%d].body: %v", i, err)
		}
	}
	for _, d := range slices.Concat(manifest.NativeQueries, manifest.NativeMutations) {
		if _, err := schema.Compile(d.Schema); err != nil {
			return nil, nil, BadModule(manifest.Name, "has a manifest that is wrong: the schema of %s: %v", d.Name,
				strings.TrimPrefix(abi.AsError(err).Message, "config_schema: "))
		}
	}
	return manifest, compiled, nil
}

var (
	typeOperation = wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32},
		Results: []wasmbin.ValueType{wasmbin.I64}}
	typeBuffer = wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32},
		Results: []wasmbin.ValueType{wasmbin.I32}}
	typeNothing = wasmbin.FuncType{}
)

func (m *Module) checkMarker(parsed *wasmbin.Module) error {
	if e, ok := parsed.Export(abi.Marker); ok && e.Kind == wasmbin.KindFunc {
		return nil
	}
	for _, e := range parsed.Exports {
		if e.Kind == wasmbin.KindFunc && len(e.Name) > 7 && e.Name[:7] == "mh_abi_" {
			return BadModule(m.Name(), "speaks another version of the ABI: it exports %s, this host wants %s", e.Name,
				abi.Marker)
		}
	}
	return BadModule(m.Name(), "is no memhost plugin: it exports no function %s", abi.Marker)
}

func (m *Module) checkExports(parsed *wasmbin.Module) error {
	if err := m.CheckOperations(parsed, typeOperation); err != nil {
		return err
	}
	for name, want := range map[string]wasmbin.FuncType{abi.BufferExport: typeBuffer, abi.InitExport: typeNothing} {
		e, ok := parsed.Export(name)
		if !ok {
			return BadModule(m.Name(), "lacks the export %s of type %s", name, want)
		}
		if err := m.checkFunc(e, want); err != nil {
			return err
		}
	}
	if e, ok := parsed.Export(abi.MemoryExport); !ok || e.Kind != wasmbin.KindMemory {
		return BadModule(m.Name(), "does not export its memory as %q", abi.MemoryExport)
	}
	return nil
}

// CheckOperations requires that every required operation, and every optional one that exists, is exported with the type
// want. It lists them in Exports.
func (m *Module) CheckOperations(parsed *wasmbin.Module, want wasmbin.FuncType) error {
	operations := append(abi.RequiredOperations(), abi.OptionalOperations()...)
	for _, e := range parsed.Exports {
		if !slices.Contains(operations, e.Name) {
			continue
		}
		if err := m.checkFunc(e, want); err != nil {
			return err
		}
		m.Exports = append(m.Exports, e.Name)
	}
	slices.Sort(m.Exports)
	for _, name := range abi.RequiredOperations() {
		if !m.Has(name) {
			return BadModule(m.Name(), "lacks the export %s of type %s", name, want)
		}
	}
	return nil
}

func (m *Module) checkFunc(e wasmbin.Export, want wasmbin.FuncType) error {
	if e.Kind != wasmbin.KindFunc {
		return BadModule(m.Name(), "exports %s as a %s, want a func of type %s", e.Name, e.Kind, want)
	}
	if !e.Type.Equal(want) {
		return BadModule(m.Name(), "exports %s as %s, want %s", e.Name, e.Type, want)
	}
	return nil
}

func (m *Module) checkImports(parsed *wasmbin.Module) error {
	types := importTypes()
	for _, i := range parsed.Imports {
		switch {
		case i.Module != abi.HostModule && i.Module != abi.WASIModule && i.Kind == wasmbin.KindFunc:
			return BadModule(m.Name(), "imports %s; a plugin may import from %s and %s only", named(i),
				abi.HostModule, abi.WASIModule)
		case i.Module == abi.HostModule:
			if err := m.CheckImport(i, types); err != nil {
				return err
			}
			m.AddPower(i.Name)
		default:
			if err := m.CheckWASI(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// named formats an import's name for messages: it may contain any characters.
func named(i wasmbin.Import) string { return Printable(i.Module+"."+i.Name, 200) }

// CheckImport requires that an import is one of the host's functions, with the right type.
func (m *Module) CheckImport(i wasmbin.Import, types map[string]wasmbin.FuncType) error {
	if i.Kind != wasmbin.KindFunc {
		return BadModule(m.Name(), "imports the %s %s; only functions may be imported", i.Kind, named(i))
	}
	want, ok := types[i.Name]
	if !ok {
		hint := ""
		if near := abi.Nearest(i.Name, abi.SortedKeys(types)); near != "" {
			hint = fmt.Sprintf("; did it mean %s?", near)
		}
		return BadModule(m.Name(), "imports %s, which this host does not have%s", named(i), hint)
	}
	if !i.Type.Equal(want) {
		return BadModule(m.Name(), "imports %s as %s, want %s", named(i), i.Type, want)
	}
	return nil
}

// CheckWASI requires that an import from WASI is one that plugins may use.
func (m *Module) CheckWASI(i wasmbin.Import) error {
	if i.Kind != wasmbin.KindFunc {
		return BadModule(m.Name(), "imports the %s %s; only functions may be imported", i.Kind, named(i))
	}
	if !slices.Contains(abi.WASIImports(), i.Name) {
		return BadModule(m.Name(), "imports %s, which a plugin may not have", named(i))
	}
	return nil
}

// AddPower adds a host function that the module imports, unless it is listed.
func (m *Module) AddPower(name string) {
	if at, found := slices.BinarySearch(m.Powers, name); !found {
		m.Powers = slices.Insert(m.Powers, at, name)
	}
}

func (m *Module) checkMemory(parsed *wasmbin.Module, limits Limits) error {
	if len(parsed.Memories) != 1 {
		return BadModule(m.Name(), "defines %d memories, want 1", len(parsed.Memories))
	}
	memory := parsed.Memories[0]
	m.MemoryPages = memory.Min
	if memory.Shared {
		return BadModule(m.Name(), "has a shared memory; threads are not offered")
	}
	if bytes := parsed.StartBytes(); bytes > limits.MemoryBytes {
		return BadModule(m.Name(), "demands %d MiB of memory and tables at its start, the limit is %d MiB", bytes>>20,
			limits.MemoryBytes>>20).
			WithHint("build it with a smaller initial memory, or raise limits.memory_bytes")
	}
	return nil
}

// checkManifestHolds rejects claims of the manifest that contradict the module's own sections.
func (m *Module) checkManifestHolds() error {
	for i, b := range m.Manifest.Background {
		if !m.Has(b.Export) {
			return BadModule(m.Name(), "has no export %s, which its manifest names in background[%d]", b.Export, i)
		}
	}
	for i, op := range m.Manifest.YieldsScope {
		if !m.Has(op) {
			return BadModule(m.Name(), "has no export %s, which its manifest names in yields_scope[%d]", op, i)
		}
	}
	if err := m.checkPower(abi.ImportHTTPSend, abi.ProtocolHTTP); err != nil {
		return err
	}
	return m.checkPower(abi.ImportBoltRun, abi.ProtocolBolt)
}

// checkPower requires that a module has routes of a protocol if and only if it imports the function that sends them.
func (m *Module) checkPower(power, protocol string) error {
	sends, routes := slices.Contains(m.Powers, power), 0
	for i, r := range m.Manifest.Routes {
		if egress.ProtocolOf(&r) != protocol {
			continue
		}
		routes++
		if !sends {
			return BadModule(m.Name(), "does not import %s, but its manifest has the route routes[%d] %s of protocol "+
				"%s",
				power, i, r.Name, protocol)
		}
	}
	if sends && routes == 0 {
		return BadModule(m.Name(), "imports %s, but its manifest has no route of protocol %s: it could send nothing",
			power, protocol)
	}
	return nil
}
