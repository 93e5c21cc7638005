package host

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// hostFunction is one import of module "memhost". Stack-based, so that a call costs no reflection and no allocation.
type hostFunction struct {
	name            string
	params, results []wasmbin.ValueType
	run             func(c *call, m guestMemory, stack []uint64)
}

// hostFunctions lists every import, in the order of ABI.md.
var hostFunctions = sync.OnceValue(func() []hostFunction {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	packed := []wasmbin.ValueType{i64}
	in := func(types ...wasmbin.ValueType) []wasmbin.ValueType { return types }
	return []hostFunction{
		{abi.ImportPull, in(i32, i32), in(i32), hostPull},
		{abi.ImportConfig, nil, packed, hostConfig},
		{abi.ImportDeadline, nil, in(i64), hostDeadline},
		{abi.ImportLog, in(i32, i32, i32), nil, hostLog},
		{abi.ImportTokensCount, in(i32, i32), in(i64), hostTokensCount},
		{abi.ImportTokensFit, in(i32, i32, i32), in(i64), hostTokensFit},
		{abi.ImportStateGet, in(i32, i32), packed, hostStateGet},
		{abi.ImportStatePut, in(i32, i32, i32, i32, i64), packed, hostStatePut},
		{abi.ImportStateDelete, in(i32, i32), packed, hostStateDelete},
		{abi.ImportStateList, in(i32, i32), packed, hostStateList},
		{abi.ImportStateAppend, in(i32, i32, i32, i32), packed, hostStateAppend},
		{abi.ImportStateRead, in(i32, i32), packed, hostStateRead},
		{abi.ImportHTTPSend, in(i32, i32, i32, i32), packed, hostHTTPSend},
		{abi.ImportBoltRun, in(i32, i32), packed, hostBoltRun},
	}
})

func hostFunctionTypes() map[string]wasmbin.FuncType {
	types := map[string]wasmbin.FuncType{}
	for _, f := range hostFunctions() {
		types[f.name] = wasmbin.FuncType{Params: f.params, Results: f.results}
	}
	return types
}

func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	return list
}

// instantiateHostModule makes the imports available to every guest of the runtime.
func instantiateHostModule(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(abi.HostModule)
	for _, f := range hostFunctions() {
		b.NewFunctionBuilder().WithName(f.name).WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			f.call(callOf(ctx), guestMemory{mod.Memory()}, stack)
		}), valueTypes(f.params), valueTypes(f.results)).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// call runs the function, past the tape where there is one. What is pulled is on the tape with the call before.
func (f *hostFunction) call(c *call, m guestMemory, stack []uint64) {
	c.shareThread()
	if c.tape != nil && f.name != abi.ImportPull {
		c.tape.hostCall(c, f, m, stack)
		return
	}
	f.run(c, m, stack)
}

// isText tells whether a parameter and the one behind it are a text's address and length.
func (f *hostFunction) isText(i int) bool {
	if f.name == abi.ImportLog && i == 0 {
		return false // the level
	}
	return f.params[i] == wasmbin.I32 && i+1 < len(f.params) && f.params[i+1] == wasmbin.I32
}

func valueTypes(types []wasmbin.ValueType) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t)
	}
	return list
}

// guestMemory reads and writes a guest's linear memory. A range outside of it is a breach of the ABI and traps the guest.
type guestMemory struct{ linear }

// linear is memory by address: a module's own, or Extism's blocks.
type linear interface {
	Read(ptr, n uint32) ([]byte, bool)
	Size() uint32
}

// abiBreach is the panic that turns into a trap.
type abiBreach struct{ message string }

func (b abiBreach) Error() string { return b.message }

// view returns the guest's own bytes: valid until the guest runs again.
func (m guestMemory) view(ptr, n uint64) []byte {
	b, ok := m.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(abiBreach{fmt.Sprintf("host call with %d bytes at %#x, outside the memory of %d bytes", uint32(n), uint32(ptr), m.Size())})
	}
	return b
}

// text is view as a string of its own.
func (m guestMemory) text(ptr, n uint64) string { return string(m.view(ptr, n)) }

// parse reads what the guest asks for. v refers to one copy of it, since the guest's bytes change.
func (m guestMemory) parse(ptr, n uint64, v abi.Decodable) error {
	return abi.UnmarshalStrictOwned(bytes.Clone(m.view(ptr, n)), v)
}

func hostPull(c *call, m guestMemory, stack []uint64) {
	dst := m.view(stack[0], stack[1])
	n := 0
	for len(dst) > n && len(c.pending) > 0 {
		k := copy(dst[n:], c.pending[0])
		n += k
		if c.pending[0] = c.pending[0][k:]; len(c.pending[0]) == 0 {
			c.pending = c.pending[1:]
		}
	}
	stack[0] = uint64(n)
}

// answer makes head and body the pending result of the call and returns them packed.
func (c *call) answer(head abi.Encodable, body ...[]byte) uint64 {
	c.headBuffer = abi.AppendJSON(c.headBuffer[:0], head)
	return c.hold(c.headBuffer, false, body)
}

// refuse makes err the pending result.
func (c *call) refuse(err error) uint64 {
	e := *abi.AsError(err)
	e.Operation = c.op
	return c.hold(abi.Marshal(c.provider.network.Redactor().Error(&e)), true, nil)
}

func (c *call) hold(head []byte, isError bool, body [][]byte) uint64 {
	c.pending = append(c.pending[:0], head)
	total := 0
	for _, b := range body {
		if len(b) > 0 {
			c.pending = append(c.pending, b)
			total += len(b)
		}
	}
	return abi.Pack(uint32(total), uint32(len(head)), isError)
}

func hostConfig(c *call, _ guestMemory, stack []uint64) {
	stack[0] = c.hold(c.provider.guestConfig, false, nil)
}

func hostDeadline(c *call, _ guestMemory, stack []uint64) {
	stack[0] = uint64(c.remaining().Milliseconds())
}

// hostLogLine is the longest single line kept of a guest's log, in bytes.
const hostLogLine = 8 << 10

func hostLog(c *call, m guestMemory, stack []uint64) {
	level, text := int32(stack[0]), m.view(stack[1], stack[2])
	c.logBytes += int64(len(text)) + 16
	if c.logBytes > c.provider.limits.LogBytes {
		if !c.logCut {
			c.logCut = true
			c.provider.logger.Warn("log cut: the guest logged more than it may in one call", "operation", c.op, "limit_bytes", c.provider.limits.LogBytes)
		}
		return
	}
	if len(text) > hostLogLine {
		text = text[:hostLogLine]
	}
	c.provider.logGuest(level, c.op, c.provider.network.Redactor().Text(string(text)))
}

func hostTokensCount(c *call, m guestMemory, stack []uint64) {
	stack[0] = uint64(c.provider.tokens.Count(m.view(stack[0], stack[1])))
}

func hostTokensFit(c *call, m guestMemory, stack []uint64) {
	bytes, count := c.provider.tokens.Fit(m.view(stack[0], stack[1]), int64(int32(stack[2])))
	stack[0] = uint64(count)<<32 | uint64(uint32(bytes))
}
