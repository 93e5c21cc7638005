package wasmbin

import "bytes"

// Opcode identifies an instruction: its byte, or its prefix byte and the number after it (0xfc08 is memory.init).
type Opcode uint32

// Opcodes that users of Instruction need to distinguish, numbered as in WebAssembly 2.0.
const (
	OpUnreachable  Opcode = 0x00
	OpNop          Opcode = 0x01
	OpBlock        Opcode = 0x02
	OpLoop         Opcode = 0x03
	OpIf           Opcode = 0x04
	OpElse         Opcode = 0x05
	OpEnd          Opcode = 0x0b
	OpBr           Opcode = 0x0c
	OpBrIf         Opcode = 0x0d
	OpBrTable      Opcode = 0x0e
	OpReturn       Opcode = 0x0f
	OpCall         Opcode = 0x10
	OpCallIndirect Opcode = 0x11
	OpDrop         Opcode = 0x1a
	OpSelect       Opcode = 0x1b
	OpSelectTyped  Opcode = 0x1c
	OpLocalGet     Opcode = 0x20
	OpLocalSet     Opcode = 0x21
	OpLocalTee     Opcode = 0x22
	OpGlobalGet    Opcode = 0x23
	OpGlobalSet    Opcode = 0x24
	OpTableGet     Opcode = 0x25
	OpTableSet     Opcode = 0x26
	OpI32Load8U    Opcode = 0x2d
	OpMemorySize   Opcode = 0x3f
	OpMemoryGrow   Opcode = 0x40
	OpI32Const     Opcode = 0x41
	OpI64Const     Opcode = 0x42
	OpF32Const     Opcode = 0x43
	OpF64Const     Opcode = 0x44
	OpI64LtS       Opcode = 0x53
	OpI32DivS      Opcode = 0x6d
	OpI32RemU      Opcode = 0x70
	OpI64Sub       Opcode = 0x7d
	OpI64DivS      Opcode = 0x7f
	OpI64RemU      Opcode = 0x82
	OpI64ShrU      Opcode = 0x88
	OpF32Sqrt      Opcode = 0x91
	OpF32Div       Opcode = 0x95
	OpF64Sqrt      Opcode = 0x9f
	OpF64Div       Opcode = 0xa3
	OpI64ExtendU   Opcode = 0xad
	OpRefNull      Opcode = 0xd0
	OpRefFunc      Opcode = 0xd2
	OpMemoryInit   Opcode = 0xfc08
	OpDataDrop     Opcode = 0xfc09
	OpMemoryCopy   Opcode = 0xfc0a
	OpMemoryFill   Opcode = 0xfc0b
	OpTableInit    Opcode = 0xfc0c
	OpElemDrop     Opcode = 0xfc0d
	OpTableCopy    Opcode = 0xfc0e
	OpTableGrow    Opcode = 0xfc0f
	OpTableSize    Opcode = 0xfc10
	OpTableFill    Opcode = 0xfc11
	OpV128Const    Opcode = 0xfd0c
	OpI8x16Shuffle Opcode = 0xfd0d
)

// EmptyBlock is the block type without parameters and results.
const EmptyBlock byte = 0x40

// Instruction is one instruction of a function's body or of a constant expression.
type Instruction struct {
	Op Opcode
	// Index is the first index among the immediates: of a function, type, local, global, table or label. For a block
	// whose type is an index, Index has that index and Typed is set.
	Index uint32
	Typed bool
	// Labels are the targets of a br_table, the default last. The next instruction overwrites them.
	Labels []uint32
}

// Instruction reads the next instruction into in.
//
// It only reads what it knows exactly: a rewriter must not see one instruction where an engine sees two.
//
// Errors: truncated input; an instruction, or an immediate, beyond WebAssembly 2.0 (tail calls, threads, several
// memories, exceptions, relaxed SIMD, typed references). It does not check whether an instruction may occur at its
// place.
func (r *Reader) Instruction(in *Instruction) error {
	in.Index, in.Typed = 0, false
	if len(in.Labels) > 0 { // writing a pointer for each instruction would cost more than reading it
		in.Labels = in.Labels[:0]
	}
	start := r.pos
	c, err := r.Byte("instruction")
	if err != nil {
		return err
	}
	in.Op = Opcode(c)
	switch { // frequent ones first
	// locals, globals, tables; br, br_if, call, ref.func
	case c >= 0x20 && c <= 0x26, c == 0x0c, c == 0x0d, c == 0x10, c == 0xd2:
		in.Index, err = r.U32("index")
		return err
	// no immediates
	case c <= 0x01, c == 0x05, c == 0x0b, c == 0x0f, c == 0x1a, c == 0x1b, c >= 0x45 && c <= 0xc4, c == 0xd1:
		return nil
	case in.Op == OpI32Const:
		return r.signed(5, "i32 constant")
	case c >= 0x28 && c <= 0x3e:
		return r.memoryArgument()
	case c == 0xfc || c == 0xfd:
		n, err := r.U32("instruction")
		if err != nil {
			return err
		}
		// Reject vector opcodes that are not encoded as short as possible: wazero only reads the first byte of the
		// number, and treats the second as a nop, which a zero byte would be.
		if short := 2 + int(n>>7); n > 0xff || c == 0xfd && r.pos-start != short {
			r.pos = start
			return r.Errorf("instruction 0x%02x %d is not one of WebAssembly 2.0, or its number is longer than need be",
				c, n)
		}
		in.Op = Opcode(c)<<8 | Opcode(n)
		if c == 0xfc {
			return r.bulkImmediates(in, start)
		}
		return r.vectorImmediates(in.Op)
	case in.Op == OpBlock || in.Op == OpLoop || in.Op == OpIf:
		return r.blockType(in)
	case in.Op == OpBrTable:
		return r.labels(in)
	case in.Op == OpCallIndirect:
		if in.Index, err = r.U32("type index"); err == nil {
			_, err = r.U32("table index")
		}
		return err
	case in.Op == OpSelectTyped:
		if err := r.oneOf("number of types", 1); err != nil {
			return err
		}
		_, err := r.ValueType()
		return err
	case c == 0x43:
		_, err = r.Bytes(4, "f32 constant")
		return err
	case c == 0x44:
		_, err = r.Bytes(8, "f64 constant")
		return err
	case in.Op == OpI64Const:
		return r.signed(10, "i64 constant")
	case in.Op == OpMemorySize, in.Op == OpMemoryGrow:
		return r.oneOf("memory", 0)
	case in.Op == OpRefNull:
		return r.oneOf("type of a reference", byte(FuncRef), byte(ExternRef))
	}
	r.pos = start
	return r.Errorf("instruction 0x%02x is not one of WebAssembly 2.0", c)
}

// bulkImmediates reads the immediates of instructions with prefix 0xfc: saturating conversions, bulk operations on
// memories and tables.
func (r *Reader) bulkImmediates(in *Instruction, start int) (err error) {
	switch {
	case in.Op <= 0xfc07:
		return nil
	case in.Op == OpMemoryFill:
		return r.oneOf("memory", 0)
	case in.Op == OpMemoryCopy:
		if err := r.oneOf("memory", 0); err != nil {
			return err
		}
		return r.oneOf("memory", 0)
	case in.Op > OpTableFill:
		r.pos = start
		return r.Errorf("instruction 0xfc %d is not one of WebAssembly 2.0", in.Op&0xff)
	}
	if in.Index, err = r.U32("index"); err != nil {
		return err
	}
	switch in.Op {
	case OpMemoryInit:
		return r.oneOf("memory", 0)
	case OpTableInit, OpTableCopy:
		_, err = r.U32("table")
	}
	return err
}

// oneOf reads a byte that must be one of want.
func (r *Reader) oneOf(field string, want ...byte) error {
	c, err := r.Byte(field)
	if err == nil && bytes.IndexByte(want, c) < 0 {
		r.pos--
		return r.Errorf("%s is 0x%02x, want % x", field, c, want)
	}
	return err
}

// vectorImmediates reads the immediates of instructions with prefix 0xfd.
func (r *Reader) vectorImmediates(op Opcode) error {
	switch n := op & 0xff; {
	case n <= 11, n == 92, n == 93:
		return r.memoryArgument()
	case op == OpV128Const, op == OpI8x16Shuffle:
		_, err := r.Bytes(16, "v128 constant")
		return err
	case n >= 21 && n <= 34:
		_, err := r.Byte("lane")
		return err
	case n >= 84 && n <= 91:
		if err := r.memoryArgument(); err != nil {
			return err
		}
		_, err := r.Byte("lane")
		return err
	}
	return nil
}

func (r *Reader) memoryArgument() error {
	start := r.pos
	align, err := r.U32("alignment")
	if err != nil {
		return err
	}
	if align > 31 {
		r.pos = start
		return r.Errorf("alignment of 2^%d (several memories are not one of WebAssembly 2.0)", align)
	}
	_, err = r.U32("offset")
	return err
}

// blockType reads a signed number: negative for one-byte types, otherwise an index.
func (r *Reader) blockType(in *Instruction) error {
	if r.Rest() > 0 {
		if c := r.data[r.pos]; c == EmptyBlock || ValueType(c).known() {
			r.pos++
			return nil
		}
	}
	start := r.pos
	index, err := r.U32("block type")
	if err != nil {
		return err
	}
	if last := r.data[r.pos-1]; last&0x40 != 0 && r.pos-start < 5 {
		r.pos = start
		return r.Errorf("block type is negative")
	}
	in.Index, in.Typed = index, true
	return nil
}

func (r *Reader) labels(in *Instruction) error {
	n, err := r.Count("labels")
	if err != nil {
		return err
	}
	for range n + 1 {
		label, err := r.U32("label")
		if err != nil {
			return err
		}
		in.Labels = append(in.Labels, label)
	}
	return nil
}

// signed skips a signed LEB128 number of at most most bytes.
func (r *Reader) signed(most int, field string) error {
	for i := range most {
		c, err := r.Byte(field)
		if err != nil {
			return err
		}
		if c&0x80 == 0 {
			return nil
		}
		if i == most-1 {
			r.pos -= most
			return r.Errorf("%s is longer than %d bytes", field, most)
		}
	}
	return nil
}
