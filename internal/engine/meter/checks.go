package meter

import (
	"cmp"
	"math"
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Every access to memory is checked against the memory's length. The engine leaves a check out when it knows the same address to be good up to there, so of accesses to
// the fields of a struct in ascending order each is checked anew; and it does not look at addresses that are constants (wazero 1.12; a check is some 65 bytes of code,
// of which 40 are never run). So, in code that runs in a straight line, the first access of several to one address is preceded by a load of the last byte that they
// reach, whose result nobody uses: the engine keeps its check and drops the load. Whoever would have failed at a later one of them fails at the first; nothing lies
// between that another could see.
//
// Addresses that are constants below the memory's smallest length cannot fail. They become offsets from a local that is always zero, which is then known to be good as
// far as the function's highest goes.

// checks reads a body and finds what to write differently. The order of calls: begin, see for every instruction, finish.
type checks struct {
	*rewriter
	minimum uint64 // bytes that the memory has at least
	edits   []edit // of the body at hand, by place
	// line counts joins of control: what is known of locals and of the stack holds within one line. region counts the straight lines in it, which end at
	// calls and branches too.
	line, region int32
	last         int32 // the number of the last value
	stack        []value
	locals       []numbered
	accesses     []access // of the region
	constants    []access // of the function
}

// value is what an expression gives. Equal numbers are equal values.
type value struct {
	number int32
	// local had it when it was read, or none.
	local uint32
	// constant is what an i32.const at place gave; place is -1 for every other value.
	constant uint32
	place    int
}

const none = math.MaxUint32

// numbered is the value of a local, if it is of this line.
type numbered struct{ line, number int32 }

// access is a load or store. end is how far behind its address it reaches, in bytes.
type access struct {
	place  int
	base   value
	offset uint32
	end    uint64
	raw    []byte // the opcode and the alignment
	region int32
}

// edit says that the instruction at a place is written as raw (nil: as it is), after what belongs before it: a look at byte last behind the address in local.
type edit struct {
	place int
	raw   []byte
	look  bool
	local uint32
	last  uint32
	zero  bool // local is the one that is zero, whatever its index
}

func (w *rewriter) newChecks() *checks {
	c := &checks{rewriter: w}
	limits := w.parsed.Memories
	for _, i := range w.parsed.Imports {
		if i.Kind == wasmbin.KindMemory {
			limits = append(slices.Clone(limits), i.Limits)
		}
	}
	if len(limits) == 1 {
		c.minimum = uint64(limits[0].Min) << 16
	}
	return c
}

func (c *checks) begin(locals uint32) {
	c.edits, c.constants = nil, c.constants[:0]
	if int(min(locals, maxNumbered)) > len(c.locals) {
		c.locals = append(c.locals, make([]numbered, int(min(locals, maxNumbered))-len(c.locals))...)
	}
	c.join()
}

// maxNumbered bounds what is kept of a stranger's locals.
const maxNumbered = 4096

// join begins a new line: control may come from elsewhere.
func (c *checks) join() {
	c.cut()
	c.line++
	c.stack = c.stack[:0]
}

func (c *checks) fresh() value {
	c.last++
	return value{number: c.last, local: none, place: -1}
}

func (c *checks) push(v value) { c.stack = append(c.stack, v) }

// pop takes a value; what lay on the stack before the line began is unknown.
func (c *checks) pop(n int) (v value) {
	for range n {
		if len(c.stack) == 0 {
			return c.fresh()
		}
		v = c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
	}
	return v
}

func (c *checks) set(local uint32, v value) {
	if int(local) < len(c.locals) {
		c.locals[local] = numbered{c.line, v.number}
	}
}

func (c *checks) get(local uint32) value {
	v := c.fresh()
	if int(local) < len(c.locals) {
		if at := &c.locals[local]; at.line == c.line {
			v.number = at.number
		} else {
			*at = numbered{c.line, v.number}
		}
		v.local = local
	}
	return v
}

// see takes note of an instruction that was read from place on.
func (c *checks) see(in *wasmbin.Instruction, raw []byte, place int) {
	switch op := in.Op; {
	case op == wasmbin.OpLocalGet:
		c.push(c.get(in.Index))
	case op == wasmbin.OpLocalSet:
		c.set(in.Index, c.pop(1))
	case op == wasmbin.OpLocalTee:
		v := c.pop(1)
		c.set(in.Index, v)
		v.local, v.place = in.Index, -1
		c.push(v)
	case op == wasmbin.OpI32Const:
		v := c.fresh()
		v.constant, v.place = uint32(signed(raw[1:])), place
		c.push(v)
	case isAccess(op):
		c.access(op, raw, place)
	case op == wasmbin.OpCall, op == wasmbin.OpCallIndirect:
		c.call(in)
	case op == wasmbin.OpBrIf, op == wasmbin.OpIf && !in.Typed:
		c.pop(1)
		c.cut()
	case op == wasmbin.OpBlock && !in.Typed, op == wasmbin.OpNop:
	default:
		takes, gives, fails, known := effect(op)
		if !known {
			c.join()
			return
		}
		if fails {
			c.cut()
		}
		c.pop(takes)
		for range gives {
			c.push(c.fresh())
		}
	}
}

func (c *checks) call(in *wasmbin.Instruction) {
	c.cut()
	t, ok := c.parsed.FuncType(in.Index)
	if in.Op == wasmbin.OpCallIndirect {
		t, ok = c.parsed.Types[in.Index], true
		c.pop(1)
	}
	if !ok {
		c.join()
		return
	}
	c.pop(len(t.Params))
	for range t.Results {
		c.push(c.fresh())
	}
}

func (c *checks) access(op wasmbin.Opcode, raw []byte, place int) {
	width := uint64(accessWidth[op-firstAccess])
	store := op >= firstStore
	if store {
		c.pop(1)
	}
	base := c.pop(1)
	_, n := unsigned(raw[1:])
	offset, _ := unsigned(raw[1+n:])
	a := access{place: place, base: base, offset: offset, end: uint64(offset) + width, raw: raw[:1+n], region: c.region}
	switch {
	case base.place >= 0:
		if uint64(base.constant)+a.end <= c.minimum {
			c.constants = append(c.constants, a)
		}
	case base.local != none && c.locals[base.local] == (numbered{c.line, base.number}):
		c.accesses = append(c.accesses, a)
	}
	if !store {
		c.push(c.fresh())
	}
}

// cut ends a region: where several accesses to one address would be checked, the first looks as far as they all reach.
func (c *checks) cut() {
	c.region++
	slices.SortStableFunc(c.accesses, func(a, b access) int { return cmp.Compare(a.base.number, b.base.number) })
	for all := c.accesses; len(all) > 0; {
		n := 1
		for n < len(all) && all[n].base.number == all[0].base.number {
			n++
		}
		reach := all[0].end
		for _, a := range all[1:n] {
			reach = max(reach, a.end)
		}
		if first := all[0]; reach > first.end && reach-1 <= math.MaxUint32 {
			c.edits = append(c.edits, edit{place: first.place, look: true, local: first.base.local, last: uint32(reach - 1)})
		}
		all = all[n:]
	}
	c.accesses = c.accesses[:0]
}

// finish gives what to write differently, by place, and whether a local that is zero is needed.
func (c *checks) finish() (edits []edit, zero bool) {
	c.join()
	if len(c.constants) > 1 {
		reach := uint64(0)
		for _, a := range c.constants {
			reach = max(reach, uint64(a.base.constant)+a.end)
		}
		region := int32(-1)
		for _, a := range c.constants {
			c.edits = append(c.edits, edit{place: a.base.place, raw: []byte{byte(wasmbin.OpLocalGet)}, zero: true})
			c.edits = append(c.edits, edit{place: a.place, raw: wasmbin.AppendU32(slices.Clone(a.raw), a.base.constant+a.offset), look: a.region != region, last: uint32(reach - 1), zero: true})
			region = a.region
		}
		zero = true
	}
	slices.SortFunc(c.edits, func(a, b edit) int { return cmp.Compare(a.place, b.place) })
	return c.edits, zero
}

// edit writes what belongs before an instruction, and gives what to write in its stead.
func (m *writer) edit(e *edit, raw []byte) []byte {
	local := e.local
	if e.zero {
		local = m.zero
	}
	if e.look {
		m.out = wasmbin.AppendU32(append(m.out, byte(wasmbin.OpLocalGet)), local)
		m.out = wasmbin.AppendU32(append(m.out, byte(wasmbin.OpI32Load8U), 0), e.last)
		m.out = append(m.out, byte(wasmbin.OpDrop))
	}
	if e.raw == nil {
		return raw
	}
	if e.raw[0] == byte(wasmbin.OpLocalGet) {
		return wasmbin.AppendU32(slices.Clone(e.raw), local)
	}
	return e.raw
}

// firstAccess to lastAccess are the loads and stores that are not of vectors, the stores from firstStore on.
const (
	firstAccess wasmbin.Opcode = 0x28
	firstStore  wasmbin.Opcode = 0x36
	lastAccess  wasmbin.Opcode = 0x3e
)

// accessWidth is how many bytes each of them takes.
var accessWidth = [lastAccess - firstAccess + 1]byte{4, 8, 4, 8, 1, 1, 2, 2, 1, 1, 2, 2, 4, 4, 4, 8, 4, 8, 1, 2, 1, 2, 4}

func isAccess(op wasmbin.Opcode) bool { return op >= firstAccess && op <= lastAccess }

// effect tells how many values an instruction takes off the stack and puts there, and whether it may fail, for those after which control goes on.
func effect(op wasmbin.Opcode) (takes, gives int, fails, known bool) {
	switch {
	case op == wasmbin.OpI64Const, op == wasmbin.OpF32Const, op == wasmbin.OpF64Const, op == wasmbin.OpGlobalGet, op == wasmbin.OpMemorySize:
		return 0, 1, false, true
	case op == wasmbin.OpDrop, op == wasmbin.OpGlobalSet:
		return 1, 0, false, true
	case op == wasmbin.OpSelect, op == wasmbin.OpSelectTyped:
		return 3, 1, false, true
	case op >= wasmbin.OpI32DivS && op <= wasmbin.OpI32RemU, op >= wasmbin.OpI64DivS && op <= wasmbin.OpI64RemU:
		return 2, 1, true, true
	case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // conversions of floats to integers
		return 1, 1, true, true
	case op == 0x45, op == 0x50, op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f, op >= 0xa7 && op <= 0xc4:
		return 1, 1, false, true // tests for zero, counts of bits, of floats what has one operand, conversions
	case op >= 0x46 && op <= 0xa6:
		return 2, 1, false, true
	case op >= 0xfc00 && op <= 0xfc07: // conversions that saturate
		return 1, 1, false, true
	case op == wasmbin.OpMemoryCopy, op == wasmbin.OpMemoryFill:
		return 3, 0, true, true
	}
	return 0, 0, false, false
}

// unsigned and signed read LEB128 numbers that were read once before.
func unsigned(b []byte) (v uint32, n int) {
	for {
		v |= uint32(b[n]&0x7f) << (7 * n)
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
}

func signed(b []byte) (v int32) {
	n := 0
	for {
		v |= int32(b[n]&0x7f) << (7 * n)
		n++
		if b[n-1] < 0x80 {
			break
		}
	}
	if n < 5 && b[n-1]&0x40 != 0 {
		v |= -1 << (7 * n)
	}
	return v
}
