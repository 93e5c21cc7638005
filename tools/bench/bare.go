package main

import (
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// bare is a guest on wazero with no host around it: get a buffer, write, run, read.
type bare struct {
	memory    api.Memory
	buffer    api.Function
	functions map[string]api.Function
	stack     [1]uint64
	out       []byte
}

// The configurations of wazero: without and with its own context check.
var (
	unchecked = wazero.NewRuntimeConfig()
	checked   = wazero.NewRuntimeConfig().WithCloseOnContextDone(true)
)

// units is how many units a metered guest gets each time that it asks.
const units = 1 << 17

// bareGuest starts a guest of the ABI that imports nothing from memhost.
func (e *env) bareGuest(ctx context.Context, config wazero.RuntimeConfig, wasm []byte) (*bare, error) {
	r := wazero.NewRuntimeWithConfig(ctx, config)
	e.later(func() error { return r.Close(context.WithoutCancel(ctx)) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	more := api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = units })
	if _, err := r.NewHostModuleBuilder(meter.Module).NewFunctionBuilder().WithGoFunction(more, nil,
		[]api.ValueType{api.ValueTypeI64}).
		Export(meter.Function).Instantiate(ctx); err != nil {
		return nil, err
	}
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions(abi.InitExport))
	if err != nil {
		return nil, err
	}
	return &bare{memory: m.Memory(), buffer: m.ExportedFunction(abi.BufferExport), functions: map[string]api.Function{
			abi.OpNativeQuery: m.ExportedFunction(abi.OpNativeQuery),
			abi.OpRetrieve:    m.ExportedFunction(abi.OpRetrieve)}},
		nil
}

// ask runs one operation. It copies the answer, as a caller that keeps it would have to.
func (g *bare) ask(ctx context.Context, op string, request []byte) error {
	g.stack[0] = uint64(len(request))
	if err := g.buffer.CallWithStack(ctx, g.stack[:]); err != nil {
		return err
	}
	g.memory.Write(uint32(g.stack[0]), request)
	g.stack[0] = uint64(len(request))
	if err := g.functions[op].CallWithStack(ctx, g.stack[:]); err != nil {
		return err
	}
	at, length, isError := abi.Unpack(g.stack[0])
	view, ok := g.memory.Read(at, length)
	if !ok || isError || length == 0 {
		return errors.New("the guest did not answer")
	}
	g.out = append(g.out[:0], view...)
	return nil
}

func (g *bare) echo(ctx context.Context, body []byte) error {
	if err := g.ask(ctx, abi.OpNativeQuery, body); err != nil {
		return err
	}
	if len(g.out) < len(body) { // it is wrapped
		return errors.New("the echo is too short")
	}
	return nil
}
