package meter

import "github.com/memhost/memhost/internal/engine/wasmbin"

// Rewrite appends one function to the module's own, which gets new units from the host. Inlining the import's call at
// every site would add some 45 bytes of rarely executed compiled code each (wazero 1.12).

// bytesPerUnit is how many bytes of a bulk operation cost one unit, as a shift.
const bytesPerUnit = 3

// addedTypes are appended to the module's own types: that of the import, and that of the function.
var addedTypes = [][]byte{
	{0x60, 0, 1, byte(wasmbin.I64)},
	{0x60, 0, 0},
}

// refill is the index of the added function.
func (w *rewriter) refill() uint32 { return w.functions + 1 }

// refillType is the index of its type.
func (w *rewriter) refillType() []byte { return wasmbin.AppendU32(nil, uint32(len(w.parsed.Types))+1) }

// refillBody stores the import's result as the units left.
func (w *rewriter) refillBody() []byte {
	b := wasmbin.AppendU32([]byte{0, byte(wasmbin.OpCall)}, w.imported)
	return append(w.appendLeft(b, wasmbin.OpGlobalSet), byte(wasmbin.OpEnd))
}

// appendLeft appends an access to the global with the units left.
func (w *rewriter) appendLeft(b []byte, op wasmbin.Opcode) []byte {
	return wasmbin.AppendU32(append(b, byte(op)), w.globals)
}
