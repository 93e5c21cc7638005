package wasmbin

import (
	"errors"
	"fmt"
)

// An engine allocates memory for as many items as a module announces before it reads them. Parse therefore reads every
// section to its end, even those of which Module keeps nothing, and rejects a count that the section cannot hold. The
// limits below are the same as, or close to, those of browsers.
const (
	// maxItems bounds the total items of all vectors outside function bodies. An engine needs about 100 bytes for each.
	maxItems = 1_000_000
	// maxSignature bounds a function's parameters, and its results.
	maxSignature = 1000
	// maxLocals bounds the locals that one function declares.
	maxLocals = 50_000
)

// ErrBeyond means that a module uses features that WebAssembly 2.0 does not have, but which an engine may support.
// errors.Is finds it in errors of a Reader.
var ErrBeyond = errors.New("beyond WebAssembly 2.0")

// beyondError is an error with a position that is ErrBeyond.
type beyondError struct{ error }

func (beyondError) Is(target error) bool { return target == ErrBeyond }

// Prefixes of a reference type that is encoded with its heap type.
const (
	refNonNull byte = 0x64
	refNull    byte = 0x63
)

// count reads the number of items of one of the module's vectors, and adds it to the total.
func (m *Module) count(r *Reader, field string) (int, error) {
	start := r.pos
	n, err := r.Count(field)
	if err != nil {
		return 0, err
	}
	if m.items += n; m.items > maxItems {
		r.pos = start
		return 0, r.Errorf("%d %s: with them the module has %d items in all vectors, want at most %d", n, field, m.items,
			maxItems)
	}
	return n, nil
}

// skipType skips a value type, including typed references.
func (r *Reader) skipType() error {
	if r.Rest() > 0 && (r.data[r.pos] == refNull || r.data[r.pos] == refNonNull) {
		r.pos++
		return r.signed(5, "heap type")
	}
	_, err := r.ValueType()
	return err
}

// skipConstant skips a constant expression.
func (r *Reader) skipConstant() error {
	var in Instruction
	for {
		start := r.pos
		if r.Rest() > 1 && Opcode(r.data[r.pos]) == OpRefNull {
			// For typed references, the type may be an index.
			r.pos++
			if err := r.signed(5, "heap type"); err != nil {
				return err
			}
			continue
		}
		if err := r.Instruction(&in); err != nil {
			return err
		}
		switch in.Op {
		case OpEnd:
			return nil
		case OpI32Const, OpI64Const, OpF32Const, OpF64Const, OpV128Const, OpGlobalGet, OpRefFunc:
		default:
			r.pos = start
			return r.Errorf("instruction 0x%02x in a constant expression", uint32(in.Op))
		}
	}
}

func (m *Module) readGlobals(r *Reader) error {
	n, err := m.count(r, "globals")
	if err != nil {
		return err
	}
	m.globals = n
	for range n {
		if err := r.skipType(); err != nil {
			return err
		}
		if err := r.oneOf("mutability of a global", 0, 1); err != nil {
			return err
		}
		if err := r.skipConstant(); err != nil {
			return err
		}
	}
	return nil
}

// Flags of an element segment.
const (
	elementPassive     = 1 // or declared, if elementTable is set too
	elementTable       = 2 // an active segment names its table
	elementExpressions = 4 // constant expressions instead of function indices
)

func (m *Module) readElements(r *Reader) error {
	n, err := m.count(r, "element segments")
	if err != nil {
		return err
	}
	for range n {
		if err := m.readElementSegment(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) readElementSegment(r *Reader) error {
	start := r.pos
	flags, err := r.U32("flags of an element segment")
	if err != nil {
		return err
	}
	if flags > elementPassive|elementTable|elementExpressions {
		r.pos = start
		return r.Errorf("element segment has flags %d, want 0 to 7", flags)
	}
	if flags&elementPassive == 0 {
		if flags&elementTable != 0 {
			if _, err := r.U32("table"); err != nil {
				return err
			}
		}
		if err := r.skipConstant(); err != nil {
			return err
		}
	}
	expressions := flags&elementExpressions != 0
	switch {
	case flags&(elementPassive|elementTable) == 0:
	case expressions:
		err = r.skipType()
	default:
		err = r.oneOf("kind of elements", 0)
	}
	if err != nil {
		return err
	}
	n, err := m.count(r, "elements")
	if err != nil {
		return err
	}
	for range n {
		if expressions {
			err = r.skipConstant()
		} else {
			_, err = r.U32("function")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDataCount reads the number of data segments, which comes before the code that refers to them.
func (m *Module) readDataCount(r *Reader) (err error) {
	m.hasDataCount = true
	m.dataCount, err = r.U32("number of data segments")
	return err
}

func (m *Module) readData(r *Reader) error {
	n, err := m.count(r, "data segments")
	if err != nil {
		return err
	}
	m.data = uint32(n)
	for range n {
		start := r.pos
		flags, err := r.U32("flags of a data segment")
		if err != nil {
			return err
		}
		switch flags {
		case 1: // passive
		case 2:
			if _, err = r.U32("memory"); err != nil {
				return err
			}
			fallthrough
		case 0:
			if err = r.skipConstant(); err != nil {
				return err
			}
		default:
			r.pos = start
			return r.Errorf("data segment has flags %d, want 0 to 2", flags)
		}
		if _, err := r.Sub("data segment"); err != nil {
			return err
		}
	}
	return nil
}

// readCode reads the sizes of the bodies and the locals at their start. Compilable reads their instructions.
func (m *Module) readCode(r *Reader) error {
	n, err := r.Count("bodies") // one for each function, which were already counted
	if err != nil {
		return err
	}
	m.bodies = n
	locals, most := 0, r.Rest()
	for range n {
		body, err := r.Sub("body")
		if err != nil {
			return err
		}
		declared, err := body.skipLocals()
		if err != nil {
			return err
		}
		if locals += declared; locals > most {
			return body.Errorf("%d locals announced so far, but the section has only %d bytes", locals, most)
		}
		if body.Rest() == 0 || body.data[len(body.data)-1] != byte(OpEnd) {
			return body.Errorf("a body that does not end")
		}
	}
	return nil
}

// skipLocals skips the locals that a body declares, and returns their number.
func (r *Reader) skipLocals() (int, error) {
	n, err := r.Count("groups of locals")
	if err != nil {
		return 0, err
	}
	var locals uint64
	for range n {
		start := r.pos
		count, err := r.U32("locals")
		if err != nil {
			return 0, err
		}
		if locals += uint64(count); locals > maxLocals {
			r.pos = start
			return 0, r.Errorf("%d locals in one function, want at most %d", locals, maxLocals)
		}
		if err := r.skipType(); err != nil {
			return 0, err
		}
	}
	return int(locals), nil
}

// checkCounts compares numbers that different sections announce.
func (m *Module) checkCounts() error {
	switch {
	case m.bodies != len(m.Functions):
		return fmt.Errorf("wasm: %d bodies of %d functions", m.bodies, len(m.Functions))
	case m.hasDataCount && m.dataCount != m.data:
		return fmt.Errorf("wasm: %d data segments announced, but there are %d", m.dataCount, m.data)
	}
	return nil
}
