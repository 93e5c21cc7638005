package guest

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// mh1Program is a module of our own ABI, in a runtime that it shares with others.
type mh1Program struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func (m *Machine) compileMH1(ctx context.Context, way interruption, wasm []byte) (Program, error) {
	r, err := m.runtime(ctx, way)
	if err != nil {
		return nil, err
	}
	compiled, err := r.CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &mh1Program{r, compiled}, nil
}

// Instantiate implements Program.
func (p *mh1Program) Instantiate(ctx context.Context, c *Call, config wazero.ModuleConfig) (Guest, error) {
	// Anonymous, so that several instances can exist at once.
	module, err := p.runtime.InstantiateModule(ctx, p.compiled, config.WithName("").WithStartFunctions(abi.InitExport))
	if err != nil {
		return nil, err
	}
	return &mh1Guest{module: module, memory: module.Memory(), buffer: module.ExportedFunction(abi.BufferExport),
		functions: map[string]api.Function{}}, nil
}

// Close implements Program.
func (p *mh1Program) Close(ctx context.Context) error { return p.compiled.Close(ctx) }

type mh1Guest struct {
	module    api.Module
	memory    api.Memory
	buffer    api.Function
	functions map[string]api.Function
	stack     [1]uint64
}

// Enter implements Guest.
func (g *mh1Guest) Enter(ctx context.Context, c *Call, request []byte) (answer []byte, isError bool, err error) {
	n := uint64(len(request))
	g.stack[0] = n
	if err := g.buffer.CallWithStack(ctx, g.stack[:]); err != nil {
		return nil, false, err
	}
	if ptr := uint32(g.stack[0]); ptr == 0 || !g.memory.Write(ptr, request) {
		return nil, false, Breach(fmt.Sprintf("%s(%d) gave %#x, which has no room for it in the memory of %d bytes",
			abi.BufferExport, n, ptr, g.memory.Size()))
	}
	g.stack[0] = n
	if err := g.function(c.Op).CallWithStack(ctx, g.stack[:]); err != nil {
		return nil, false, err
	}
	if g.stack[0] == 0 {
		return nil, false, Breach("answered zero")
	}
	ptr, length, isError := abi.Unpack(g.stack[0])
	if err := c.MayAnswer(int64(length)); err != nil {
		return nil, false, err
	}
	answer, ok := g.memory.Read(ptr, length)
	if !ok || length == 0 {
		return nil, false, Breach(fmt.Sprintf("answered %d bytes at %#x, outside the memory of %d bytes", length, ptr,
			g.memory.Size()))
	}
	return answer, isError, nil
}

// function returns an operation's function. Each costs a stack of 10 KiB, so they are created on first use.
func (g *mh1Guest) function(op string) api.Function {
	f, ok := g.functions[op]
	if !ok {
		f = g.module.ExportedFunction(op)
		g.functions[op] = f
	}
	return f
}

// MemoryBytes implements Guest.
func (g *mh1Guest) MemoryBytes() int64 { return int64(g.memory.Size()) }

// Close implements Guest.
func (g *mh1Guest) Close() { _ = g.module.Close(context.Background()) }
