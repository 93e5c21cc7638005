package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Engine runs the modules of one ABI. Package guest has the one for mh1; package host/extism has another, which a
// program passes in host.Options.
type Engine interface {
	// ABI is the ABI's name in the manifests of its modules.
	ABI() string
	// Claims reports, based on its imports, whether a module is for this engine.
	Claims(parsed *wasmbin.Module) bool
	// Check validates a module's exports and imports against the ABI, and sets exports, powers and warnings in m.
	Check(m *Module, parsed *wasmbin.Module) error
	// Adapt may rewrite a checked module before it is metered.
	Adapt(wasm []byte) ([]byte, error)
	// Quick reports whether an import only moves a few bytes, so that it costs a guest no more than an instruction.
	Quick(module, name string) bool
	// Name is the engine's name in the run manifest and in inspect, including the way in which its guests are
	// interrupted.
	Name(interruption string) string
	// Compile makes a module ready to be instantiated. wasm is adapted and usually metered.
	Compile(ctx context.Context, m *Module, wasm []byte, s Setup) (Program, error)
}

// Setup is what an engine needs to compile a module.
type Setup struct {
	// Config has memory limit, cache and interruption.
	Config wazero.RuntimeConfig
	// More is the function that a metered module imports as meter.Function of meter.Module; nil if the module is not
	// metered.
	More api.GoFunc
	// MemoryBytes bounds a guest's memory.
	MemoryBytes int64
}

// Program is a compiled module, from which instances are created.
type Program interface {
	// Instantiate starts an instance: it runs the module's start function and its initialisation. config has clocks,
	// randomness and output. ctx carries the call, c.
	Instantiate(ctx context.Context, c *Call, config wazero.ModuleConfig) (Guest, error)
	// Close frees the code. All instances must have been closed before.
	Close(ctx context.Context) error
}

// Guest is one instance of a program. It runs one call at a time.
type Guest interface {
	// Enter calls the operation c.Op. ctx carries the call. The answer is in the guest's own memory, valid until the
	// next Enter.
	Enter(ctx context.Context, c *Call, request []byte) (answer []byte, isError bool, err error)
	// MemoryBytes is the present size of the guest's memory.
	MemoryBytes() int64
	Close()
}

// Machine compiles modules, and owns what they share: the runtimes and the compilation cache.
type Machine struct {
	logger hclog.Logger
	dir    string
	limits Limits
	cache  wazero.CompilationCache
	quick  interruption

	// compiling is held while the engine compiles. wazero 1.12 publishes a module in its cache before the module is whole,
	// so that a second compilation of the same module could start instances too early.
	compiling sync.Mutex

	mu       sync.Mutex
	runtimes map[string]wazero.Runtime // of mh1, by the name of the interruption
	programs map[Program]bool
}

// NewMachine creates a machine that keeps compiled modules in a folder.
//
// Errors: unavailable for a folder that cannot be used.
func NewMachine(ctx context.Context, dir string, limits Limits, logger hclog.Logger) (*Machine, error) {
	return newMachine(ctx, dir, limits, logger, meteredEngine{keepRewritten(dir)})
}

func newMachine(ctx context.Context, dir string, limits Limits, logger hclog.Logger, way interruption) (m *Machine,
	err error) {
	m = &Machine{logger: logger, dir: dir, limits: limits, quick: way, runtimes: map[string]wazero.Runtime{},
		programs: map[Program]bool{}}
	if m.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("compilation cache %s: %v", dir, err), err)
	}
	if _, err = m.runtime(ctx, way); err != nil {
		_ = m.Close(ctx)
		return nil, err
	}
	return m, nil
}

// setup is what all runtimes with one kind of interruption have in common.
func (m *Machine) setup(way interruption) Setup {
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(uint32(m.limits.MemoryBytes / wasmbin.PageBytes)).
		WithCompilationCache(m.cache).WithDebugInfoEnabled(false)
	return Setup{way.configure(config), way.more(), m.limits.MemoryBytes}
}

// runtime returns the runtime for mh1 modules with one kind of interruption. All runtimes share the cache, which
// distinguishes them.
func (m *Machine) runtime(ctx context.Context, way interruption) (wazero.Runtime, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runtimes[way.name()]; r != nil {
		return r, nil
	}
	s := m.setup(way)
	r := wazero.NewRuntimeWithConfig(ctx, s.Config)
	_, err := wasi_snapshot_preview1.Instantiate(ctx, r)
	if err == nil {
		err = instantiateImports(ctx, r)
	}
	if err == nil && s.More != nil {
		err = instantiateMeter(ctx, r, s.More)
	}
	if err != nil {
		_ = r.Close(ctx)
		return nil, abi.WrapError(abi.CodeInternal, "host functions: "+err.Error(), err)
	}
	m.runtimes[way.name()] = r
	return r, nil
}

// Compile makes an inspected module ready to be instantiated, and records in it how it is run. Release the program when
// it is no longer needed.
//
// Errors: invalid_argument for a module that the engine rejects; unavailable if the cache cannot be written.
func (m *Machine) Compile(ctx context.Context, module *Module, wasm []byte) (Program, error) {
	way, prepared, name, warnings, err := prepare(module, wasm, m.quick, m.limits.MemoryBytes)
	if err != nil {
		return nil, err
	}
	if len(warnings) > len(module.Warnings) {
		m.logger.Warn(warnings[len(warnings)-1], "module", module.Name())
	}
	module.Engine, module.Warnings = name, warnings
	p, err := m.compile(ctx, module, way, prepared)
	var disk *fs.PathError
	var known *abi.Error
	switch {
	case errors.As(err, &disk):
		return nil, abi.WrapError(abi.CodeUnavailable,
			fmt.Sprintf("the compilation cache %s cannot be used: %v", m.dir, err), err).
			WithHint("make room there, or name another folder")
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, BadModule(module.Name(), "does not compile: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.programs[p] = true
	return p, nil
}

func (m *Machine) compile(ctx context.Context, module *Module, way interruption, prepared []byte) (Program, error) {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	if module.engine != nil {
		return module.engine.Compile(ctx, module, prepared, m.setup(way))
	}
	return m.compileMH1(ctx, way, prepared)
}

// prepare limits how far a module's memory and tables can grow, and rewrites it for the quick interruption. It only
// falls back to the slow one, with a warning, for a module that uses features beyond WebAssembly 2.0. It passes no
// other module to an engine unchecked, because engines allocate memory for whatever number of items a malformed module
// announces.
func prepare(m *Module, wasm []byte, quick interruption, memoryBytes int64) (way interruption, prepared []byte,
	name string, warnings []string, err error) {
	given := wasm
	sum, marks, named := m.SHA256, func(_, _ string) bool { return false },
		func(interruption string) string { return interruption }
	if e := m.engine; e != nil {
		if wasm, err = e.Adapt(wasm); err != nil {
			return nil, nil, "", nil, BadModule(m.Name(), "cannot be rewritten: %v", err)
		}
		marks, named = e.Quick, e.Name
	}
	if err = wasmbin.Compilable(wasm); errors.Is(err, wasmbin.ErrTooMuch) {
		return nil, nil, "", nil, BadModule(m.Name(), "is too much for the compiler: %v", err).
			WithHint("split that function, make fewer of its calls inline, or have fewer globals")
	} else if err != nil {
		return nil, nil, "", nil, BadModule(m.Name(), "is not valid: %v", err)
	}
	if wasm, err = wasmbin.Bound(wasm, memoryBytes); err != nil {
		return nil, nil, "", nil, BadModule(m.Name(), "cannot be held to limits.memory_bytes: %v", err)
	}
	if !bytes.Equal(wasm, given) {
		hash := sha256.Sum256(wasm)
		sum = hex.EncodeToString(hash[:])
	}
	way, warnings = quick, m.Warnings
	switch prepared, err = way.prepare(sum, wasm, marks); {
	case err == nil:
		return way, prepared, named(way.name()), warnings, nil
	case !errors.Is(err, wasmbin.ErrBeyond):
		return nil, nil, "", nil, BadModule(m.Name(), "is not valid: %v", err)
	}
	// The module may be valid, but use features that the meter does not know. Engines parse the name section, which has
	// not been checked.
	if prepared, err = wasmbin.StripCustom(wasm, "name"); err != nil {
		return nil, nil, "", nil, BadModule(m.Name(), "is not valid: %v", err)
	}
	way, warnings = contextCheck{}, append(append([]string{}, warnings...), notMetered(err))
	return way, prepared, named(way.name()), warnings, nil
}

// EngineOf reports how a module that Inspect accepts will be run, without compiling it, and warns if it will run the
// slow way.
func EngineOf(m *Module, wasm []byte) (name string, warnings []string) {
	_, _, name, warnings, err := prepare(m, wasm, meteredEngine{keepRewritten("")}, math.MaxInt64)
	if err != nil {
		return "", append(append([]string{}, m.Warnings...), err.Error())
	}
	return name, warnings
}

// Release closes a program of this machine. Calling it again has no effect.
func (m *Machine) Release(ctx context.Context, p Program) error {
	m.mu.Lock()
	open := m.programs[p]
	delete(m.programs, p)
	m.mu.Unlock()
	if !open {
		return nil
	}
	return p.Close(ctx)
}

// Close frees all programs and runtimes. All instances must have been closed before.
func (m *Machine) Close(ctx context.Context) error {
	var failed []error
	for p := range maps.Clone(m.programs) {
		failed = append(failed, m.Release(ctx, p))
	}
	for _, r := range m.runtimes {
		failed = append(failed, r.Close(ctx))
	}
	return errors.Join(append(failed, m.cache.Close(ctx))...)
}
