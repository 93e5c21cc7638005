package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	extism "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// extismProgram is a module that was built with an Extism PDK. go-sdk compiles it, starts it and calls it; every function that it imports from Extism is the host's.
type extismProgram struct {
	host     *Host
	compiled *extism.CompiledPlugin
	// initialize: the module has an initialisation of WASI's kind, which runs at the start and not with the first operation, as go-sdk would have it.
	initialize bool
	memory     int64
}

var _ program = (*extismProgram)(nil)

// extismInit is what the module's initialisation is called at load, so that go-sdk leaves it to the host.
const extismInit = "memhost." + abi.InitExport

// envWASIOutput is a variable with which go-sdk sends what a guest prints to this process's own output.
const envWASIOutput = "EXTISM_ENABLE_WASI_OUTPUT"

// prepareExtism rewrites a module for its engine: imports led to the host, interruption.
func prepareExtism(way interruption, _ string, wasm []byte) ([]byte, error) {
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, err
	}
	renamed, err := wasmbin.Rename(wasm, extismRenames, func(name string) string {
		if name == abi.InitExport && startsAlone(parsed) {
			return extismInit
		}
		return name
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(renamed)
	return way.prepare(hex.EncodeToString(sum[:]), renamed)
}

// startsAlone tells whether a module's _initialize is all that there is to its start. Haskell's runtime has more, in an order that go-sdk knows.
func startsAlone(parsed *wasmbin.Module) bool {
	_, haskell := parsed.Export("hs_init")
	e, ok := parsed.Export(abi.InitExport)
	return ok && e.Kind == wasmbin.KindFunc && e.Type.Equal(typeNothing) && !haskell
}

// compileExtism makes an inspected Extism module ready to be instantiated, in a runtime of its own.
func (h *Host) compileExtism(ctx context.Context, m *Module, wasm []byte) error {
	if _, set := os.LookupEnv(envWASIOutput); set {
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("module %s is for Extism, and %s is set: what it prints would go to this process's own output", m.name(), envWASIOutput)).
			WithHint("unset it; the end of what a guest printed is in the error of a trap")
	}
	way := h.engine.interruption
	prepared, err := prepareExtism(way, m.SHA256, wasm)
	if err != nil {
		m.Warnings = append(m.Warnings, notMetered(err))
		h.logger.Warn(m.Warnings[len(m.Warnings)-1], "module", m.name())
		way = contextCheck{}
		if prepared, err = prepareExtism(way, m.SHA256, wasm); err != nil {
			return badModule(m.name(), "cannot be rewritten: %v", err)
		}
	}
	m.Engine = extismName(way)
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return badModule(m.name(), "is not a wasm module that can be read: %v", err)
	}
	functions := extismFunctions(parsed)
	if ask := way.more(); ask != nil {
		f := extism.NewHostFunctionWithStack(meter.Function, func(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) { ask(ctx, stack) },
			nil, []api.ValueType{api.ValueTypeI64})
		f.SetNamespace(meter.Module)
		functions = append(functions, f)
	}
	compiled, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: prepared, Name: "main"}}, AllowedHosts: []string{}},
		extism.PluginConfig{RuntimeConfig: way.configure(h.runtimeConfig()), EnableWasi: true}, functions)
	if err != nil {
		return h.notCompiled(m, err)
	}
	p := &extismProgram{host: h, compiled: compiled, initialize: startsAlone(parsed), memory: h.limits.MemoryBytes}
	h.mu.Lock()
	h.extism[p] = true
	h.mu.Unlock()
	m.program = p
	return nil
}

func extismName(way interruption) string { return "extism go-sdk on " + way.name() }

func (p *extismProgram) close(ctx context.Context) error {
	p.host.mu.Lock()
	open := p.host.extism[p]
	delete(p.host.extism, p)
	p.host.mu.Unlock()
	if !open {
		return nil
	}
	return p.compiled.Close(ctx)
}

func (p *extismProgram) instantiate(ctx callContext, config wazero.ModuleConfig) (guest, error) {
	g := &extismGuest{blocks: newBlocks(p.memory)}
	g.blocks.open(nil)
	ctx.call.blocks = g.blocks
	// go-sdk's host functions want a plugin in the context, and there is none yet while the start function runs. Ours do not look at it.
	starting := context.WithValue(experimental.WithMemoryAllocator(ctx, &g.grown), extism.PluginCtxKey("plugin"), new(extism.Plugin))
	plugin, err := p.compiled.Instance(starting, extism.PluginInstanceConfig{ModuleConfig: config})
	if err != nil {
		return nil, err
	}
	g.plugin = plugin
	if p.initialize {
		if _, _, err := plugin.CallWithContext(ctx, extismInit, nil); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// extismGuest is one instance of go-sdk's with the memory that it shares with the host.
type extismGuest struct {
	plugin *extism.Plugin
	blocks *blocks
	grown  memorySize
}

var _ guest = (*extismGuest)(nil)

// enter calls an operation: the request is Extism's input, the answer its output. The function returns 0, or another number for an error: its object is what was set
// as Extism's error, or else the output.
func (g *extismGuest) enter(ctx callContext, request []byte) (answer []byte, isError bool, err error) {
	c, b := ctx.call, g.blocks
	b.open(request)
	c.blocks = b
	// The input is in blocks. go-sdk's own memory stays empty.
	code, _, err := g.plugin.CallWithContext(ctx, c.op, nil)
	if err != nil {
		if b.asked != "" && ctx.Err() == nil {
			err = c.deniedPower(b.asked, err.Error())
		}
		return nil, false, err
	}
	out := b.output
	if isError = code != 0 || b.failure.size > 0; b.failure.size > 0 {
		out = b.failure
	}
	if err := c.mayAnswer(int64(out.size)); err != nil {
		return nil, false, err
	}
	answer = b.data[out.start : out.start+out.size]
	switch {
	case isError && !isErrorObject(answer):
		said := c.provider.network.Redactor().Text(string(answer[:min(len(answer), maxSaid)]))
		if b.asked != "" {
			return nil, false, c.deniedPower(b.asked, said)
		}
		e := c.provider.breach(c.op, fmt.Sprintf("returned %d and said: %s", int32(code), said)).WithReason("untyped").
			WithHint("an error is an error object of the contract, as JSON: see docs/extism.md")
		return abi.Marshal(e), true, nil
	case out.size == 0:
		return nil, false, abiBreach{"answered zero bytes of output"}
	}
	return answer, isError, nil
}

// maxSaid bounds what is kept of an error in a module's own words, in bytes.
const maxSaid = 4 << 10

func isErrorObject(text []byte) bool {
	e := new(abi.Error)
	return abi.Unmarshal(text, e) == nil && e.Code != ""
}

// deniedPower is the error of a module that failed after it had asked for a file or a socket.
func (c *call) deniedPower(asked, said string) *abi.Error {
	what := "files"
	if strings.HasPrefix(asked, "sock_") {
		what = "sockets"
	}
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("plugin %s asked for %s (%s), which no plugin has; it said: %s", c.provider.name, what, asked, firstLine(said))).
		WithReason(what).WithHint("what lasts goes into state, what is sent goes by a route of the manifest")
}

func (g *extismGuest) memoryBytes() int64 { return g.grown.bytes + int64(cap(g.blocks.data)) }

func (g *extismGuest) close() { _ = g.plugin.CloseWithContext(context.Background()) }

// memorySize allocates linear memory as wazero does and knows how large it is: go-sdk does not let the host see it.
type memorySize struct{ bytes int64 }

var _ experimental.MemoryAllocator = (*memorySize)(nil)

// Allocate implements experimental.MemoryAllocator.
func (s *memorySize) Allocate(_, most uint64) experimental.LinearMemory {
	return &sizedMemory{of: s, most: most}
}

type sizedMemory struct {
	of   *memorySize
	data []byte
	most uint64
}

// Reallocate implements experimental.LinearMemory.
func (m *sizedMemory) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if add := int(size) - len(m.data); add > 0 {
		m.of.bytes += int64(add)
		m.data = slices.Grow(m.data, add)
	}
	m.data = m.data[:size]
	return m.data
}

// Free implements experimental.LinearMemory.
func (m *sizedMemory) Free() {}
