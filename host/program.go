package host

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// program is a compiled module: what its instances are made of. There is one kind for each engine, and nothing behind it knows which it is.
type program interface {
	// instantiate starts an instance: the module's start function and its initialisation run. config has clocks, randomness and where it prints.
	instantiate(ctx callContext, config wazero.ModuleConfig) (guest, error)
	// close frees the code. No instance of it may be left.
	close(ctx context.Context) error
}

// guest is one instance of a program. It runs one call at a time.
type guest interface {
	// enter calls an operation. The answer is the guest's own memory, valid until it is entered again.
	enter(ctx callContext, request []byte) (answer []byte, isError bool, err error)
	// memoryBytes is what its memory has grown to.
	memoryBytes() int64
	close()
}

// mh1Program is a module of our own ABI, on an engine that it shares with others.
type mh1Program struct {
	engine   *engine
	compiled wazero.CompiledModule
}

var _ program = (*mh1Program)(nil)

func (p *mh1Program) instantiate(ctx callContext, config wazero.ModuleConfig) (guest, error) {
	// Anonymous, so that several live side by side.
	module, err := p.engine.runtime.InstantiateModule(ctx, p.compiled, config.WithName("").WithStartFunctions(abi.InitExport))
	if err != nil {
		return nil, err
	}
	return &mh1Guest{module: module, memory: module.Memory(), buffer: module.ExportedFunction(abi.BufferExport), functions: map[string]api.Function{}}, nil
}

func (p *mh1Program) close(ctx context.Context) error { return p.compiled.Close(ctx) }

type mh1Guest struct {
	module    api.Module
	memory    api.Memory
	buffer    api.Function
	functions map[string]api.Function
	stack     [1]uint64
}

var _ guest = (*mh1Guest)(nil)

func (g *mh1Guest) enter(ctx callContext, request []byte) (answer []byte, isError bool, err error) {
	var inside context.Context = ctx // once: each conversion allocates
	n := uint64(len(request))
	g.stack[0] = n
	if err := g.buffer.CallWithStack(inside, g.stack[:]); err != nil {
		return nil, false, err
	}
	if ptr := uint32(g.stack[0]); ptr == 0 || !g.memory.Write(ptr, request) {
		return nil, false, abiBreach{fmt.Sprintf("%s(%d) gave %#x, which has no room for it in the memory of %d bytes", abi.BufferExport, n, ptr, g.memory.Size())}
	}
	g.stack[0] = n
	if err := g.function(ctx.call.op).CallWithStack(inside, g.stack[:]); err != nil {
		return nil, false, err
	}
	if g.stack[0] == 0 {
		return nil, false, abiBreach{"answered zero"}
	}
	ptr, length, isError := abi.Unpack(g.stack[0])
	if err := ctx.call.mayAnswer(int64(length)); err != nil {
		return nil, false, err
	}
	answer, ok := g.memory.Read(ptr, length)
	if !ok || length == 0 {
		return nil, false, abiBreach{fmt.Sprintf("answered %d bytes at %#x, outside the memory of %d bytes", length, ptr, g.memory.Size())}
	}
	return answer, isError, nil
}

// mayAnswer checks the length of an answer against the limit.
func (c *call) mayAnswer(length int64) error {
	if limit := c.provider.limits.ResponseBytes; length > limit {
		return abi.NewError(abi.CodeTooLarge, fmt.Sprintf("plugin %s answered %s with %d bytes, the limit is %d", c.provider.name, c.op, length, limit)).
			WithHint("ask for less (budget.max_tokens, max_items), or raise limits.response_bytes")
	}
	return nil
}

// function finds an operation. Each costs a stack of 10 KiB, so an instance has those that it was asked for.
func (g *mh1Guest) function(op string) api.Function {
	f, ok := g.functions[op]
	if !ok {
		f = g.module.ExportedFunction(op)
		g.functions[op] = f
	}
	return f
}

func (g *mh1Guest) memoryBytes() int64 { return int64(g.memory.Size()) }

func (g *mh1Guest) close() { _ = g.module.Close(context.Background()) }
