package meter

import (
	"fmt"
	"math"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// How many units a path may accumulate. Smaller values make the guest read the clock at more regular intervals, but
// need more sites.
const (
	// stretch is how many units a path may accumulate before a site charges them. (A call of a function that is charged
	// to its caller may exceed it by inlined.)
	stretch = 256
	// inlined is how many units a function without a site at its entry may leave to its caller.
	inlined = 64
	// beforeCall is how many units may be uncharged when a function with a site at its entry is called, atExit when it
	// returns.
	beforeCall = 32
	atExit     = 16
	// importUnits is the charge for a call of an import. The time that the call takes is measured by the clock.
	importUnits = 64
)

// weight is the cost of an instruction in units.
func weight(op wasmbin.Opcode) int {
	switch op {
	case wasmbin.OpNop, wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpElse, wasmbin.OpEnd, wasmbin.OpDrop,
		wasmbin.OpLocalGet,
		wasmbin.OpI32Const, wasmbin.OpI64Const, wasmbin.OpF32Const, wasmbin.OpF64Const:
		return 0
	case wasmbin.OpF32Sqrt, wasmbin.OpF32Div, wasmbin.OpF64Sqrt, wasmbin.OpF64Div:
		return 8
	case wasmbin.OpCall:
		return 4
	case wasmbin.OpCallIndirect:
		return 8
	}
	if op >= wasmbin.OpI32DivS && op <= wasmbin.OpI32RemU || op >= wasmbin.OpI64DivS && op <= wasmbin.OpI64RemU {
		return 16
	}
	if op>>8 != 0 {
		return 4 // vectors and saturating conversions
	}
	return 1
}

// body is a function of the original module.
type body struct {
	locals uint32 // including the parameters
	header []byte // the declarations of locals, without their count
	groups uint32 // the number of declarations
	code   wasmbin.Reader
	bulk   bool // it has bulk instructions, which are charged where they occur
	weight int  // of all its instructions
	out    []byte
}

// readBodies reads the code section, looking at every instruction once to find the calls.
func (w *rewriter) readBodies(s *wasmbin.Section) error {
	r := s.Reader()
	n, err := r.Count("bodies")
	if err != nil {
		return err
	}
	if n != len(w.parsed.Functions) {
		return r.Errorf("%d bodies of %d functions", n, len(w.parsed.Functions))
	}
	w.graph = w.newGraph()
	w.bodies = make([]body, n)
	for i := range w.bodies {
		sub, err := r.Sub("body")
		if err != nil {
			return err
		}
		if err := w.readBody(i, sub); err != nil {
			return err
		}
	}
	return r.End()
}

func (w *rewriter) readBody(i int, r *wasmbin.Reader) error {
	b := &w.bodies[i]
	if err := w.readLocals(i, r); err != nil {
		return err
	}
	b.code = *r
	node := int(w.imported) + i
	var in wasmbin.Instruction
	for r.Rest() > 0 {
		if err := r.Instruction(&in); err != nil {
			return err
		}
		var err error
		b.weight += weight(in.Op)
		switch in.Op {
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
			if in.Typed {
				err = within(r, "type", in.Index, uint32(len(w.parsed.Types)))
			}
		case wasmbin.OpLocalGet, wasmbin.OpLocalSet, wasmbin.OpLocalTee:
			err = within(r, "local", in.Index, b.locals)
		case wasmbin.OpGlobalGet, wasmbin.OpGlobalSet:
			err = within(r, "global", in.Index, w.globals)
		case wasmbin.OpRefFunc:
			err = within(r, "function", in.Index, w.functions)
			w.referenced[in.Index] = true
		case wasmbin.OpCall, wasmbin.OpCallIndirect:
			if in.Op == wasmbin.OpCall {
				err = within(r, "function", in.Index, w.functions)
			} else {
				err = within(r, "type", in.Index, uint32(len(w.parsed.Types)))
			}
			if err == nil {
				w.graph.edges[node] = append(w.graph.edges[node], int32(w.graph.node(&in)))
			}
		case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit, wasmbin.OpTableInit, wasmbin.OpTableCopy,
			wasmbin.OpTableFill:
			b.bulk = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *rewriter) readLocals(i int, r *wasmbin.Reader) error {
	b := &w.bodies[i]
	n, err := r.Count("declarations of locals")
	if err != nil {
		return err
	}
	start := r.Pos()
	total := uint64(len(w.parsed.Types[w.parsed.Functions[i]].Params))
	for range n {
		count, err := r.U32("number of locals")
		if err != nil {
			return err
		}
		if _, err := r.ValueType(); err != nil {
			return err
		}
		if total += uint64(count); total >= math.MaxUint32 {
			return r.Errorf("too many locals")
		}
	}
	b.locals, b.groups, b.header = uint32(total), uint32(n), r.Since(start)
	return nil
}

// codeSection writes the bodies with their sites, callees before callers.
func (w *rewriter) codeSection(s *wasmbin.Section) ([]byte, error) {
	if s == nil && len(w.parsed.Functions) > 0 {
		return nil, fmt.Errorf("wasm: %d functions, but no bodies", len(w.parsed.Functions))
	}
	if s == nil {
		s = &wasmbin.Section{Data: []byte{0}}
	}
	if err := w.readBodies(s); err != nil {
		return nil, err
	}
	w.reach()
	w.graph.sort()
	size := 0
	for _, component := range w.graph.order {
		for _, f := range component {
			if int(f) >= w.graph.functions || uint32(f) < w.imported {
				continue
			}
			b := &w.bodies[uint32(f)-w.imported]
			if err := w.meter(int(f), b); err != nil {
				return nil, err
			}
			size += len(b.out) + 5
		}
	}
	out := wasmbin.AppendU32(make([]byte, 0, size+256), uint32(len(w.bodies)+1))
	for _, b := range append(w.bodies, body{out: w.refillBody()}) {
		out = append(wasmbin.AppendU32(out, uint32(len(b.out))), b.out...)
	}
	return out, nil
}

// meter writes one body. A small one has no site at its entry if possible; if a path turns out too heavy for that, the
// body is written again with one.
func (w *rewriter) meter(f int, b *body) error {
	checked := w.graph.recursive(f) || b.weight > 2*inlined
	m := &writer{rewriter: w, body: b, checked: checked}
	if err := m.write(); err != nil {
		return err
	}
	if !checked && m.exit > inlined {
		m = &writer{rewriter: w, body: b, checked: true}
		if err := m.write(); err != nil {
			return err
		}
	}
	b.out = m.out
	w.graph.costs[f] = cost{known: true, checked: m.checked, unchecked: !m.checked, units: m.exit}
	return nil
}

// writer writes one body. due is the most units that any path from earlier sites to this place has accumulated, or dead
// if no path leads here.
type writer struct {
	*rewriter
	body    *body
	checked bool
	out     []byte
	length  uint32 // an added local: the length of the next bulk instruction
	labels  []label
	due     int
	exit    int // the most units that are due when the function returns
}

const dead = -1

// label is a block, loop, if, or the function itself.
type label struct {
	op wasmbin.Opcode
	// due joins the paths that branch to the label; for a loop, those that go back to its header.
	due int
	// before is what was due at the if, needed for its else arm.
	before int
	// site is the position in out of the loop's charge; 0 if the loop is dead.
	site int
}

func (m *writer) write() error {
	b := m.body
	var added []byte // locals after the original's
	if b.bulk {
		m.length = b.locals
		added = append(added, 1, byte(wasmbin.I32))
	}
	m.out = wasmbin.AppendU32(make([]byte, 0, len(b.header)+b.code.Rest()*3/2), b.groups+uint32(len(added)/2))
	m.out = append(append(m.out, b.header...), added...)
	m.labels = append(m.labels, label{op: wasmbin.OpReturn, due: dead})
	if m.checked {
		m.due = beforeCall
		m.site()
	}
	r := b.code // a copy, because it starts over
	var in wasmbin.Instruction
	for r.Rest() > 0 {
		if len(m.labels) == 0 {
			return r.Errorf("%d bytes behind the end of a body", r.Rest())
		}
		start := r.Pos()
		if err := r.Instruction(&in); err != nil {
			return err
		}
		if err := m.instruction(&r, &in, r.Since(start)); err != nil {
			return err
		}
	}
	if len(m.labels) > 0 {
		return r.Errorf("a body that does not end")
	}
	return nil
}

// instruction writes one instruction, whose original bytes are raw, with the sites that belong before and after it.
func (m *writer) instruction(r *wasmbin.Reader, in *wasmbin.Instruction, raw []byte) error {
	if w := weight(in.Op); m.due != dead && w > 0 {
		if m.due+w > stretch {
			m.site()
		}
		m.due += w
	}
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpIf:
		m.labels = append(m.labels, label{op: in.Op, due: dead, before: m.due})
	case wasmbin.OpLoop:
		m.out = append(m.out, raw...)
		m.loop()
		return nil
	case wasmbin.OpElse:
		l := &m.labels[len(m.labels)-1]
		if l.op != wasmbin.OpIf {
			return r.Errorf("else without if")
		}
		l.op, l.due = wasmbin.OpElse, max(l.due, m.due)
		m.due = l.before
	case wasmbin.OpEnd:
		m.end(raw)
		return nil
	case wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		return m.branch(r, in, raw)
	case wasmbin.OpCall, wasmbin.OpCallIndirect:
		m.call(in, raw)
		return nil
	case wasmbin.OpRefFunc:
		m.out = wasmbin.AppendU32(append(m.out, byte(in.Op)), m.shift(in.Index))
		return nil
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		m.bulk(bytesPerUnit)
	case wasmbin.OpTableInit, wasmbin.OpTableCopy, wasmbin.OpTableFill:
		m.bulk(0)
	case wasmbin.OpMemoryGrow, wasmbin.OpTableGrow:
		m.out = append(m.out, raw...)
		m.askSoon()
		if m.due != dead {
			m.site()
		}
		return nil
	}
	m.out = append(m.out, raw...)
	return nil
}

func (m *writer) loop() {
	l := label{op: wasmbin.OpLoop, due: m.due}
	if m.due != dead {
		l.site = m.site()
	}
	m.labels = append(m.labels, l)
}

func (m *writer) end(raw []byte) {
	l := m.labels[len(m.labels)-1]
	switch l.op {
	case wasmbin.OpReturn: // a return from the function
		m.leave()
		m.due = dead
	case wasmbin.OpLoop:
		if l.site > 0 {
			putCharge(m.out[l.site:], max(l.due, 1))
		}
	case wasmbin.OpIf: // without else, its body may be skipped
		m.due = max(m.due, l.due, l.before)
	default:
		m.due = max(m.due, l.due)
	}
	m.labels = m.labels[:len(m.labels)-1]
	m.out = append(m.out, raw...)
}

// branch writes a branch, and charges what is due if it may leave the function.
func (m *writer) branch(r *wasmbin.Reader, in *wasmbin.Instruction, raw []byte) error {
	targets := in.Labels
	switch in.Op {
	case wasmbin.OpBr, wasmbin.OpBrIf:
		targets = append(targets, in.Index)
	case wasmbin.OpReturn:
		targets = append(targets, uint32(len(m.labels)-1))
	}
	for _, t := range targets {
		if uint64(t) >= uint64(len(m.labels)) {
			return r.Errorf("label %d, but there are %d", t, len(m.labels))
		}
		if int(t) == len(m.labels)-1 {
			m.leave()
		}
	}
	for _, t := range targets {
		l := &m.labels[len(m.labels)-1-int(t)]
		l.due = max(l.due, m.due)
	}
	m.out = append(m.out, raw...)
	if in.Op != wasmbin.OpBrIf {
		m.due = dead
	}
	return nil
}

// leave marks a place where the function may return.
func (m *writer) leave() {
	if m.checked && m.due > atExit {
		m.site()
	}
	m.exit = max(m.exit, m.due)
}

func (m *writer) call(in *wasmbin.Instruction, raw []byte) {
	c := m.graph.cost(m.graph.node(in), m.openTables)
	if m.due != dead && c.checked && m.due > beforeCall {
		m.site()
	}
	if in.Op == wasmbin.OpCall {
		m.out = wasmbin.AppendU32(append(m.out, byte(in.Op)), m.shift(in.Index))
	} else {
		m.out = append(m.out, raw...)
	}
	if c.imported {
		m.askSoon()
	}
	switch {
	case m.due == dead:
	case c.checked && !c.unchecked:
		m.due = c.units
	default:
		m.due += c.units
	}
}

// putCharge writes a charge as a signed LEB128 number of two bytes. It can hold 8191, more than any path can
// accumulate.
func putCharge(b []byte, units int) {
	b[0], b[1] = byte(units)|0x80, byte(units>>7)
}

func (m *writer) global(op wasmbin.Opcode) {
	m.out = m.appendLeft(m.out, op)
}

// site charges what is due, and returns the position of the charge in out.
func (m *writer) site() int {
	m.global(wasmbin.OpGlobalGet)
	at := m.charge()
	m.ask()
	return at
}

// charge subtracts what is due from the number on the stack.
func (m *writer) charge() int {
	m.out = append(m.out, byte(wasmbin.OpI64Const), 0, 0)
	at := len(m.out) - 2
	putCharge(m.out[at:], max(m.due, 1))
	m.out = append(m.out, byte(wasmbin.OpI64Sub))
	m.due = 0
	return at
}

// ask stores the number on the stack as the units left, and asks the host for more if they have run out.
func (m *writer) ask() {
	m.global(wasmbin.OpGlobalSet)
	m.global(wasmbin.OpGlobalGet)
	m.out = append(m.out, byte(wasmbin.OpI64Const), 0, byte(wasmbin.OpI64LtS), byte(wasmbin.OpIf), wasmbin.EmptyBlock)
	m.out = append(wasmbin.AppendU32(append(m.out, byte(wasmbin.OpCall)), m.refill()), byte(wasmbin.OpEnd))
}

// askSoon makes the next site read the clock.
func (m *writer) askSoon() {
	m.out = append(m.out, byte(wasmbin.OpI64Const), 0)
	m.global(wasmbin.OpGlobalSet)
}

// bulk charges for a bulk operation before it starts: its length is on top of the stack, and 1<<shift bytes or entries
// cost one unit.
func (m *writer) bulk(shift byte) {
	if m.due == dead {
		return
	}
	m.out = wasmbin.AppendU32(append(m.out, byte(wasmbin.OpLocalSet)), m.length)
	m.global(wasmbin.OpGlobalGet)
	m.out = wasmbin.AppendU32(append(m.out, byte(wasmbin.OpLocalGet)), m.length)
	m.out = append(m.out, byte(wasmbin.OpI64ExtendU), byte(wasmbin.OpI64Const), shift, byte(wasmbin.OpI64ShrU),
		byte(wasmbin.OpI64Sub))
	m.charge()
	m.ask()
	m.out = wasmbin.AppendU32(append(m.out, byte(wasmbin.OpLocalGet)), m.length)
}
