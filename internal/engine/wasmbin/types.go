package wasmbin

import (
	"fmt"
	"slices"
	"strings"
)

// ValueType is the type of a parameter, result or global, by its byte in the binary
// format.
type ValueType byte

// Value types of WebAssembly 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String names the type as the text format does.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	default:
		return fmt.Sprintf("unknown (0x%02x)", byte(t))
	}
}

func (t ValueType) known() bool {
	return t >= V128 && t <= I32 || t.reference()
}

func (t ValueType) reference() bool { return t == FuncRef || t == ExternRef }

// FuncType is the signature of a function.
type FuncType struct {
	Params, Results []ValueType
}

// String formats the signature: "(i32, i32) -> i64", "() -> ()".
func (t FuncType) String() string {
	results := typeList(t.Results)
	if len(t.Results) == 1 {
		results = t.Results[0].String()
	}
	return typeList(t.Params) + " -> " + results
}

// Equal reports whether both signatures have the same parameters and results.
func (t FuncType) Equal(other FuncType) bool {
	return slices.Equal(t.Params, other.Params) && slices.Equal(t.Results, other.Results)
}

func typeList(types []ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// Kind is the kind of an import or export.
type Kind byte

// Kinds of imports and exports.
const (
	KindFunc   Kind = 0
	KindTable  Kind = 1
	KindMemory Kind = 2
	KindGlobal Kind = 3
	KindTag    Kind = 4
)

// String names the kind as the text format does.
func (k Kind) String() string {
	names := [...]string{"func", "table", "memory", "global", "tag"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("unknown (%d)", byte(k))
}

// Limits bound a memory (in pages of 64 KiB) or a table (in elements).
type Limits struct {
	Min uint32
	// Max is only valid if HasMax is set; otherwise the host chooses the upper limit.
	Max    uint32
	HasMax bool
	// Shared marks a memory of the threads proposal.
	Shared bool
}

// Import is one item that the module needs from its host.
type Import struct {
	Module, Name string
	Kind         Kind
	// Type is the signature of a function.
	Type FuncType
	// Limits belong to a memory or a table.
	Limits Limits
	// Global and Mutable belong to a global.
	Global  ValueType
	Mutable bool
}

// Export is one item that the module offers.
type Export struct {
	Name string
	Kind Kind
	// Index is the index among items of the same kind, counting imports first.
	Index uint32
	// Type is the signature of a function.
	Type FuncType
}
