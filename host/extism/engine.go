// Package extism is a second engine for package host: it runs modules that were built with an Extism PDK, through
// github.com/extism/go-sdk. A program passes it in the options:
//
//	h, err := host.New(ctx, host.Options{DataDir: "memory", Engines: []host.Engine{extism.Engine()}})
//
// abi/ABI.md, section 12, lists the requirements on such a module. All guarantees of the host apply to it; Extism's own
// HTTP and variables are switched off.
package extism

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	sdk "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Engine returns the engine for host.Options.Engines.
func Engine() guest.Engine { return engine{} }

type engine struct{}

// ABI implements guest.Engine.
func (engine) ABI() string { return abi.ABIExtism }

// Name implements guest.Engine.
func (engine) Name(interruption string) string { return "extism go-sdk on " + interruption }

// extismInit is the name that a module's initialisation function gets at load, so that go-sdk does not call it and the
// host can.
const extismInit = "memhost." + abi.InitExport

// Adapt implements guest.Engine: it redirects imports to the host, and renames the initialisation function.
func (engine) Adapt(wasm []byte) ([]byte, error) {
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, err
	}
	return wasmbin.Rename(wasm, renames, func(name string) string {
		if name == abi.InitExport && startsAlone(parsed) {
			return extismInit
		}
		return name
	})
}

// startsAlone reports whether a module needs nothing but _initialize to start. Haskell's runtime needs more, in an
// order that go-sdk knows.
func startsAlone(parsed *wasmbin.Module) bool {
	_, haskell := parsed.Export("hs_init")
	e, ok := parsed.Export(abi.InitExport)
	return ok && e.Kind == wasmbin.KindFunc && e.Type.Equal(wasmbin.FuncType{}) && !haskell
}

// envWASIOutput is an environment variable that makes go-sdk send a guest's output to this process's own output.
const envWASIOutput = "EXTISM_ENABLE_WASI_OUTPUT"

// Compile implements guest.Engine. Each program has its own runtime.
func (engine) Compile(ctx context.Context, m *guest.Module, wasm []byte, s guest.Setup) (guest.Program, error) {
	if _, set := os.LookupEnv(envWASIOutput); set {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("module %s is for Extism, and %s is set: what it prints would go to this process's own output",
				m.Name(), envWASIOutput)).
			WithHint("unset it; the end of what a guest printed is in the error of a trap")
	}
	parsed, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, err
	}
	functions := functionsOf(parsed)
	if more := s.More; more != nil {
		f := sdk.NewHostFunctionWithStack(meter.Function,
			func(ctx context.Context, _ *sdk.CurrentPlugin, stack []uint64) { more(ctx, stack) },
			nil, []api.ValueType{api.ValueTypeI64})
		f.SetNamespace(meter.Module)
		functions = append(functions, f)
	}
	compiled, err := sdk.NewCompiledPlugin(ctx,
		sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: wasm, Name: "main"}}, AllowedHosts: []string{}},
		sdk.PluginConfig{RuntimeConfig: s.Config, EnableWasi: true}, functions)
	if err != nil {
		return nil, err
	}
	_, initialize := parsed.Export(extismInit)
	return &program{compiled: compiled, initialize: initialize, memory: s.MemoryBytes}, nil
}

// program is a module that go-sdk has compiled and runs. All its imports from Extism are served by the host.
type program struct {
	compiled *sdk.CompiledPlugin
	// initialize is true if the module has a WASI-style initialisation function. The host runs it at the start; go-sdk
	// would run it with the first operation.
	initialize bool
	memory     int64
}

// Close implements guest.Program.
func (p *program) Close(ctx context.Context) error { return p.compiled.Close(ctx) }

// Instantiate implements guest.Program.
func (p *program) Instantiate(ctx context.Context, c *guest.Call, config wazero.ModuleConfig) (guest.Guest, error) {
	g := &instance{blocks: newBlocks(p.memory)}
	g.blocks.open(nil)
	c.Memory = g.blocks
	// go-sdk's host functions expect a plugin in the context, but there is none yet while the start function runs. Our
	// functions ignore it.
	starting := context.WithValue(experimental.WithMemoryAllocator(ctx, &g.grown), sdk.PluginCtxKey("plugin"),
		new(sdk.Plugin))
	plugin, err := p.compiled.Instance(starting, sdk.PluginInstanceConfig{ModuleConfig: config})
	if err != nil {
		return nil, err
	}
	g.plugin = plugin
	if p.initialize {
		if _, _, err := plugin.CallWithContext(ctx, extismInit, nil); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// instance is a go-sdk instance with the memory that it shares with the host.
type instance struct {
	plugin *sdk.Plugin
	blocks *blocks
	grown  memorySize
}

// Enter implements guest.Guest: the request is Extism's input, the answer its output. The function returns 0, or
// another number for an error. The error object is what the module set as Extism's error, or else the output.
func (g *instance) Enter(ctx context.Context, c *guest.Call, request []byte) (answer []byte, isError bool, err error) {
	b := g.blocks
	b.open(request)
	c.Memory = b
	// The input is in blocks; go-sdk's own memory stays empty.
	code, _, err := g.plugin.CallWithContext(ctx, c.Op, nil)
	if err != nil {
		if b.asked != "" && ctx.Err() == nil {
			err = deniedPower(c, b.asked, err.Error())
		}
		return nil, false, err
	}
	out := b.output
	if isError = code != 0 || b.failure.size > 0; b.failure.size > 0 {
		out = b.failure
	}
	if err := c.MayAnswer(int64(out.size)); err != nil {
		return nil, false, err
	}
	answer = b.data[out.start : out.start+out.size]
	switch {
	case isError && !isErrorObject(answer):
		message := string(answer[:min(len(answer), maxMessage)])
		if b.asked != "" {
			return nil, false, deniedPower(c, b.asked, message)
		}
		e := c.Plugin().Breach(c.Op, fmt.Sprintf("returned %d and said: %s", int32(code), message)).WithReason("untyped").
			WithHint("an error is an error object of the contract, as JSON: see docs/write-a-plugin.md")
		return abi.Marshal(c.Plugin().Redact(e)), true, nil
	case out.size == 0:
		return nil, false, guest.Breach("answered zero bytes of output")
	}
	return answer, isError, nil
}

// maxMessage bounds how many bytes of a module's own error message are kept.
const maxMessage = 4 << 10

func isErrorObject(text []byte) bool {
	e := new(abi.Error)
	return abi.Unmarshal(text, e) == nil && e.Code != ""
}

// deniedPower is the error of a module that failed after it asked for a file or a socket.
func deniedPower(c *guest.Call, asked, message string) *abi.Error {
	what := "files"
	if strings.HasPrefix(asked, "sock_") {
		what = "sockets"
	}
	message, _, _ = strings.Cut(message, "\n")
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("plugin %s asked for %s (%s), which no plugin has; it said: %s",
		c.Plugin().Name, what, asked, message)).
		WithReason(what).WithHint("what lasts goes into state, what is sent goes by a route of the manifest")
}

// MemoryBytes implements guest.Guest.
func (g *instance) MemoryBytes() int64 { return g.grown.bytes + int64(cap(g.blocks.data)) }

// Close implements guest.Guest.
func (g *instance) Close() { _ = g.plugin.CloseWithContext(context.Background()) }

// memorySize allocates linear memory as wazero does, and tracks its size, because go-sdk does not expose the memory to
// the host.
type memorySize struct{ bytes int64 }

// Allocate implements experimental.MemoryAllocator.
func (s *memorySize) Allocate(_, limit uint64) experimental.LinearMemory {
	return &sizedMemory{of: s, limit: limit}
}

type sizedMemory struct {
	of    *memorySize
	data  []byte
	limit uint64
}

// Reallocate implements experimental.LinearMemory.
func (m *sizedMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
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
