package meter

import "github.com/memhost/memhost/internal/engine/wasmbin"

// Rewrite adds one function after the module's own, which gets new units from the host. In line, wherever a site needs
// it, the call of the import would take some 45 bytes of compiled code that is rarely run (wazero 1.12).

// bytesPerUnit of instructions in bulk, as a shift.
const bytesPerUnit = 3

// addedTypes follow the module's own: of the import, and of the function.
var addedTypes = [][]byte{
	{0x60, 0, 1, byte(wasmbin.I64)},
	{0x60, 0, 0},
}

// refill gives the index of the added function.
func (w *rewriter) refill() uint32 { return w.functions + 1 }

// refillType is the index of its type.
func (w *rewriter) refillType() []byte { return wasmbin.AppendU32(nil, uint32(len(w.parsed.Types))+1) }

// refillBody stores as the units left what the import gives.
func (w *rewriter) refillBody() []byte {
	b := wasmbin.AppendU32([]byte{0, byte(wasmbin.OpCall)}, w.imported)
	return append(w.appendLeft(b, wasmbin.OpGlobalSet), byte(wasmbin.OpEnd))
}

// appendLeft writes an access to the units left.
func (w *rewriter) appendLeft(b []byte, op wasmbin.Opcode) []byte {
	return wasmbin.AppendU32(append(b, byte(op)), w.globals)
}
