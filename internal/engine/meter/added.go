package meter

import (
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// The functions that Rewrite adds behind the module's own. What a site does when it is out of units, and what instructions in bulk do, would otherwise stand in line
// wherever it is needed: compiled, a call of an import takes some 45 bytes, a memory.copy a hundred and more, and a function with a memory.copy in it saves and restores
// every register, whether or not it comes to copying (wazero 1.12). Code that is not run lies between code that is.
const (
	helperMore = iota
	helperCopy // only in modules with a memory, as the next
	helperFill
)

// bytesPerUnit of instructions in bulk, as a shift.
const bytesPerUnit = 3

// addedTypes stand behind the module's own: of the import, of helperMore, of the helpers in bulk.
var addedTypes = [][]byte{
	{0x60, 0, 1, byte(wasmbin.I64)},
	{0x60, 0, 0},
	{0x60, 3, byte(wasmbin.I32), byte(wasmbin.I32), byte(wasmbin.I32), 0},
}

type helper struct {
	name  string
	typed uint32 // which of addedTypes it has
	body  []byte
}

// helpers are the functions to add, in their order.
func (w *rewriter) helpers() []helper {
	more := wasmbin.AppendU32([]byte{0, byte(wasmbin.OpCall)}, w.imported)
	more = append(w.appendLeft(more, wasmbin.OpGlobalSet), byte(wasmbin.OpEnd))
	all := []helper{helperMore: {"refill", 1, more}}
	if w.hasMemory() {
		all = append(all,
			helper{"copy", 2, w.bulkBody(wasmbin.OpMemoryCopy, 0, 0)},
			helper{"fill", 2, w.bulkBody(wasmbin.OpMemoryFill, 0)})
	}
	return all
}

// helper gives the index of an added function.
func (w *rewriter) helper(i int) uint32 { return w.functions + 1 + uint32(i) }

func (w *rewriter) helperTypes() [][]byte {
	var types [][]byte
	for _, h := range w.helpers() {
		types = append(types, wasmbin.AppendU32(nil, uint32(len(w.parsed.Types))+h.typed))
	}
	return types
}

func (w *rewriter) hasMemory() bool {
	return len(w.parsed.Memories) > 0 || slices.ContainsFunc(w.parsed.Imports, func(i wasmbin.Import) bool { return i.Kind == wasmbin.KindMemory })
}

// bulkBody charges for what its caller has not, and for the length, before it begins.
func (w *rewriter) bulkBody(op wasmbin.Opcode, immediates ...byte) []byte {
	b := w.appendLeftLess([]byte{0}, 2, bytesPerUnit)
	b = append(b, byte(wasmbin.OpI64Const), beforeCall, byte(wasmbin.OpI64Sub))
	b = w.appendAsk(b)
	b = append(b, byte(wasmbin.OpLocalGet), 0, byte(wasmbin.OpLocalGet), 1, byte(wasmbin.OpLocalGet), 2)
	return append(append(b, byte(op>>8), byte(op)), append(immediates, byte(wasmbin.OpEnd))...)
}

// appendLeft writes an access to the units left.
func (w *rewriter) appendLeft(b []byte, op wasmbin.Opcode) []byte {
	return wasmbin.AppendU32(append(b, byte(op)), w.globals)
}

// appendLeftLess writes the units left less those of the length in a local: 1<<shift of it are a unit.
func (w *rewriter) appendLeftLess(b []byte, local uint32, shift byte) []byte {
	b = wasmbin.AppendU32(append(w.appendLeft(b, wasmbin.OpGlobalGet), byte(wasmbin.OpLocalGet)), local)
	return append(b, byte(wasmbin.OpI64ExtendU), byte(wasmbin.OpI64Const), shift, byte(wasmbin.OpI64ShrU), byte(wasmbin.OpI64Sub))
}

// appendAsk stores the units left that are on the stack and asks the host for more when they have run out.
func (w *rewriter) appendAsk(b []byte) []byte {
	b = w.appendLeft(w.appendLeft(b, wasmbin.OpGlobalSet), wasmbin.OpGlobalGet)
	b = append(b, byte(wasmbin.OpI64Const), 0, byte(wasmbin.OpI64LtS), byte(wasmbin.OpIf), wasmbin.EmptyBlock)
	return append(wasmbin.AppendU32(append(b, byte(wasmbin.OpCall)), w.helper(helperMore)), byte(wasmbin.OpEnd))
}
