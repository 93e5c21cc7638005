package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Module is a checked and compiled plugin. What it may do was read off its bytes before any of its code ran.
type Module struct {
	// Manifest is what the module says of itself.
	Manifest *abi.ModuleManifest
	// SHA256 is of the bytes as given, in hex.
	SHA256 string
	// Bytes is their number.
	Bytes int64
	// Engine names how the module is run and interrupted, Warnings say what is to be known about that. Before it is loaded, EngineOf tells both.
	Engine   string
	Warnings []string
	// Powers are the host functions that it imports, Exports the operations and capabilities that it offers.
	Powers, Exports []string
	// MemoryPages is the linear memory that it starts with, in pages of 64 KiB.
	MemoryPages uint32
	// Customs are its custom sections' sizes in bytes by name.
	Customs map[string]int

	schema  *schema.Schema
	program program
}

// Load checks a module and compiles it.
//
// Errors: invalid_argument with what was found and wanted: no wasm, truncated, no or another ABI marker, an export missing or of another type, an import that
// is not permitted, a manifest that is absent, malformed or at odds with the module, more memory than the limit.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Module, error) {
	m, err := inspect(wasm, h.limits)
	if err != nil {
		return nil, err
	}
	return m, h.compile(ctx, m, wasm)
}

// compile makes an inspected module ready to be instantiated.
func (h *Host) compile(ctx context.Context, m *Module, wasm []byte) error {
	if m.Manifest.ABI == abi.ABIExtism {
		return h.compileExtism(ctx, m, wasm)
	}
	e := h.engine
	prepared, err := e.prepare(m.SHA256, wasm)
	if err != nil {
		m.Warnings = []string{notMetered(err)}
		h.logger.Warn(m.Warnings[0], "module", m.name())
		if e, err = h.slowEngine(ctx); err != nil {
			return err
		}
		prepared = wasm
	}
	m.Engine = e.name()
	compiled, err := e.runtime.CompileModule(ctx, prepared)
	if err != nil {
		return h.notCompiled(m, err)
	}
	m.program = &mh1Program{engine: e, compiled: compiled}
	return nil
}

// notCompiled is the error of a module that the engine does not take, or of a cache that cannot be used.
func (h *Host) notCompiled(m *Module, err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("the compilation cache %s cannot be used: %v", h.options.CacheDir, err), err).
			WithHint("make room there, or name another folder")
	}
	return badModule(m.name(), "does not compile: %v", err)
}

// Inspect is Load without compiling: what can be told of a module by reading it. limits' zero value means the defaults.
func Inspect(wasm []byte, limits Limits) (*Module, error) {
	return inspect(wasm, limits.withDefaults())
}

func inspect(wasm []byte, limits Limits) (*Module, error) {
	// 1. Size and form.
	if int64(len(wasm)) > limits.ModuleBytes {
		return nil, badModule("", "has %d bytes, the limit is %d", len(wasm), limits.ModuleBytes)
	}
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, badModule("", "is not a wasm module that can be read: %v", err).WithHint("is it the right file, and all of it? `memhost build FOLDER` makes a module of a plugin's folder")
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
	// 3. Version, 4. exports, 5. imports, 6. memory.
	checks := []func(*wasmbin.Module) error{m.checkMarker, m.checkExports, m.checkImports}
	if isExtism(parsed) {
		checks = []func(*wasmbin.Module) error{m.checkExtismMarker, m.checkExtismExports, m.checkExtismImports}
	}
	for _, check := range checks {
		if err := check(parsed); err != nil {
			return nil, err
		}
	}
	if err := m.checkMemory(parsed, limits); err != nil {
		return nil, err
	}
	// 7. Manifest against module.
	return m, m.checkManifestHolds()
}

// Check validates a configuration against the module without loading anything, and returns the effective block: preset and defaults laid under it.
//
// Errors: invalid_argument that names the key and what is wanted there.
func (m *Module) Check(provider, word string, block abi.Raw) (abi.Raw, error) {
	_, _, effective, err := m.choose(provider, word, block)
	return effective, err
}

// choose finds the provider that a configuration names, the word by which it was chosen, and its effective block.
func (m *Module) choose(provider, word string, block abi.Raw) (decl *abi.ProviderDecl, as string, effective abi.Raw, err error) {
	if decl, err = m.provider(provider); err != nil {
		return nil, "", nil, err
	}
	if as, err = chosenAs(word, decl); err != nil {
		return nil, "", nil, err
	}
	if effective, err = m.schema.Apply(decl.Preset, block); err != nil {
		return nil, "", nil, inBlock(decl.Name, err)
	}
	return decl, as, effective, nil
}

func (m *Module) name() string {
	if m.Manifest == nil {
		return ""
	}
	return m.Manifest.Name
}

// badModule is the error of a module that cannot be loaded.
func badModule(name, format string, args ...any) *abi.Error {
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
		return badModule("", "has a manifest that cannot be read: %v", err)
	}
	if !found {
		return badModule("", "has no custom section %q", abi.ManifestSection).WithHint("attach one: memhost pack FILE.wasm --manifest manifest.json")
	}
	m.Manifest, m.schema, err = ParseManifest(text)
	return err
}

// ParseManifest reads and validates a manifest.json, with the JSON Schema in it.
func ParseManifest(text []byte) (*abi.ModuleManifest, *schema.Schema, error) {
	manifest := new(abi.ModuleManifest)
	if err := abi.UnmarshalStrict(text, manifest); err != nil {
		return nil, nil, badModule("", "has a manifest that is wrong: %v", abi.AsError(err).Message)
	}
	if err := manifest.Validate(); err != nil {
		return nil, nil, badModule(manifest.Name, "has a manifest that is wrong: %v", abi.AsError(err).Message)
	}
	compiled, err := schema.Compile(manifest.ConfigSchema)
	if err != nil {
		return nil, nil, badModule(manifest.Name, "has a manifest that is wrong: config_schema: %v", abi.AsError(err).Message)
	}
	for i, e := range manifest.Empty {
		if _, err := regexp.Compile(e.Body); err != nil {
			return nil, nil, badModule(manifest.Name, "has a manifest that is wrong: empty[%d].body: %v", i, err)
		}
	}
	return manifest, compiled, nil
}

var (
	typeOperation = wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I64}}
	typeBuffer    = wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}}
	typeNothing   = wasmbin.FuncType{}
)

func (m *Module) checkMarker(parsed *wasmbin.Module) error {
	if e, ok := parsed.Export(abi.Marker); ok && e.Kind == wasmbin.KindFunc {
		if m.Manifest.ABI != abi.ABIMemhost {
			return badModule(m.name(), "exports %s, but its manifest says abi %q", abi.Marker, m.Manifest.ABI)
		}
		return nil
	}
	for _, e := range parsed.Exports {
		if len(e.Name) > 7 && e.Name[:7] == "mh_abi_" {
			return badModule(m.name(), "speaks another version of the ABI: it exports %s, this host wants %s", e.Name, abi.Marker)
		}
	}
	if m.Manifest.ABI == abi.ABIExtism {
		return badModule(m.name(), "says abi %q in its manifest, but imports nothing from %s", abi.ABIExtism, extismEnv)
	}
	return badModule(m.name(), "is no memhost plugin: it has no export %s", abi.Marker)
}

func (m *Module) checkExports(parsed *wasmbin.Module) error {
	wanted := map[string]wasmbin.FuncType{abi.BufferExport: typeBuffer, abi.InitExport: typeNothing}
	for _, name := range abi.RequiredOperations() {
		wanted[name] = typeOperation
	}
	required := append([]string{abi.BufferExport, abi.InitExport}, abi.RequiredOperations()...)
	for _, name := range required {
		if _, ok := parsed.Export(name); !ok {
			return badModule(m.name(), "lacks the export %s of type %s", name, wanted[name])
		}
	}
	for _, name := range abi.OptionalOperations() {
		wanted[name] = typeOperation
	}
	for _, e := range parsed.Exports {
		want, known := wanted[e.Name]
		switch {
		case !known:
			continue
		case e.Kind != wasmbin.KindFunc:
			return badModule(m.name(), "exports %s as a %s, want a func of type %s", e.Name, e.Kind, want)
		case !e.Type.Equal(want):
			return badModule(m.name(), "exports %s as %s, want %s", e.Name, e.Type, want)
		case want.Equal(typeOperation):
			m.Exports = append(m.Exports, e.Name)
		}
	}
	slices.Sort(m.Exports)
	if e, ok := parsed.Export(abi.MemoryExport); !ok || e.Kind != wasmbin.KindMemory {
		return badModule(m.name(), "does not export its memory as %q", abi.MemoryExport)
	}
	return nil
}

func (m *Module) checkImports(parsed *wasmbin.Module) error {
	powers, wasi := hostFunctionTypes(), abi.WASIImports()
	for _, i := range parsed.Imports {
		if i.Kind != wasmbin.KindFunc {
			return badModule(m.name(), "imports the %s %s.%s; only functions may be imported", i.Kind, i.Module, i.Name)
		}
		switch i.Module {
		case abi.WASIModule:
			if !slices.Contains(wasi, i.Name) {
				return badModule(m.name(), "imports %s.%s, which a plugin may not have", i.Module, i.Name)
			}
		case abi.HostModule:
			want, ok := powers[i.Name]
			if !ok {
				hint := ""
				if near := abi.Nearest(i.Name, names(powers)); near != "" {
					hint = fmt.Sprintf("; did it mean %s?", near)
				}
				return badModule(m.name(), "imports %s.%s, which this host does not have%s", i.Module, i.Name, hint)
			}
			if !i.Type.Equal(want) {
				return badModule(m.name(), "imports %s.%s as %s, want %s", i.Module, i.Name, i.Type, want)
			}
			if !slices.Contains(m.Powers, i.Name) {
				m.Powers = append(m.Powers, i.Name)
			}
		default:
			return badModule(m.name(), "imports %s.%s; a plugin may import from %s and %s only", i.Module, i.Name, abi.HostModule, abi.WASIModule)
		}
	}
	slices.Sort(m.Powers)
	return nil
}

const pageBytes = 64 << 10

func (m *Module) checkMemory(parsed *wasmbin.Module, limits Limits) error {
	if len(parsed.Memories) != 1 {
		return badModule(m.name(), "defines %d memories, want 1", len(parsed.Memories))
	}
	memory := parsed.Memories[0]
	m.MemoryPages = memory.Min
	if memory.Shared {
		return badModule(m.name(), "has a shared memory; threads are not offered")
	}
	if bytes := int64(memory.Min) * pageBytes; bytes > limits.MemoryBytes {
		return badModule(m.name(), "demands %d MiB of memory at its start, the limit is %d MiB", bytes>>20, limits.MemoryBytes>>20).
			WithHint("build it with a smaller initial memory, or raise limits.memory_bytes")
	}
	return nil
}

// checkManifestHolds looks for claims of the manifest that the module's own sections refute.
func (m *Module) checkManifestHolds() error {
	for i, b := range m.Manifest.Background {
		if !slices.Contains(m.Exports, b.Export) {
			return badModule(m.name(), "has no export %s, which its manifest names in background[%d]", b.Export, i)
		}
	}
	for i, op := range m.Manifest.YieldsScope {
		if !slices.Contains(m.Exports, op) {
			return badModule(m.name(), "has no export %s, which its manifest names in yields_scope[%d]", op, i)
		}
	}
	if err := m.checkPower(abi.ImportHTTPSend, abi.ProtocolHTTP); err != nil {
		return err
	}
	return m.checkPower(abi.ImportBoltRun, abi.ProtocolBolt)
}

// checkPower wants a module to have routes of a protocol if and only if it imports what sends them.
func (m *Module) checkPower(power, protocol string) error {
	sends, routes := slices.Contains(m.Powers, power), 0
	for i := range m.Manifest.Routes {
		r := &m.Manifest.Routes[i]
		if egress.ProtocolOf(r) != protocol {
			continue
		}
		routes++
		if !sends {
			return badModule(m.name(), "does not import %s, but its manifest has the route routes[%d] %s of protocol %s", power, i, r.Name, protocol)
		}
	}
	if sends && routes == 0 {
		return badModule(m.name(), "imports %s, but its manifest has no route of protocol %s: it could send nothing", power, protocol)
	}
	return nil
}

// provider finds one of the names that the module serves.
func (m *Module) provider(name string) (*abi.ProviderDecl, error) {
	known := make([]string, len(m.Manifest.Providers))
	for i := range m.Manifest.Providers {
		p := &m.Manifest.Providers[i]
		if p.Name == name {
			return p, nil
		}
		known[i] = p.Name
	}
	e := abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("module %s serves no provider %q, it serves %v", m.name(), name, known))
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}

// has tells whether the module exports a capability.
func (m *Module) has(op string) bool { return slices.Contains(m.Exports, op) }
