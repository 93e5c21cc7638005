package wasmbin

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// PageBytes is the size of a page of memory. EntryBytes is the memory that an engine needs for each entry of a table.
const (
	PageBytes  = 64 << 10
	EntryBytes = 8
)

// maxTables bounds the tables of a module: an engine needs some hundred bytes for each, even if it is empty.
const maxTables = 100

// growthShare is the share of all bytes by which tables may grow: 1/8.
const growthShare = 8

// StartBytes is the initial size of the module's memories and tables, in bytes.
func (m *Module) StartBytes() (bytes int64) {
	for _, memory := range m.Memories {
		bytes += int64(memory.Min) * PageBytes
	}
	for _, table := range m.Tables {
		bytes += int64(table.Min) * EntryBytes
	}
	return bytes
}

// Bound returns the module with maxima that keep its memory and its tables together within limit bytes. Everything else
// is kept byte for byte. A module whose maxima fit is returned unchanged.
//
// Tables that no instruction can grow get their minimum as maximum. The others share up to limit/8 bytes for growth, by
// which the memory's maximum is reduced. With a limit of 128 MiB, a single table without a maximum may grow by 16 MiB,
// which is 2,097,152 entries, and the memory to 112 MiB. Tables smaller than a page do not reduce the memory.
//
// Errors: those of Parse; an initial size of more than limit bytes.
func Bound(b []byte, limit int64) ([]byte, error) {
	m, err := Parse(b)
	if err != nil {
		return nil, err
	}
	rest := limit - m.StartBytes()
	if rest < 0 {
		return nil, fmt.Errorf("wasm: memory and tables of %d bytes at the start, want at most %d", m.StartBytes(),
			limit)
	}
	sections, err := Sections(b)
	if err != nil {
		return nil, err
	}
	tables := boundTables(m.Tables, min(rest, limit/growthShare)/EntryBytes, sections)
	var held int64 // by tables at their maximum
	for _, t := range tables {
		held += int64(t.Max) * EntryBytes
	}
	memories := slices.Clone(m.Memories)
	if most := (limit - held) / PageBytes; held >= PageBytes && most <= maxPages {
		for i := range memories {
			memories[i] = memories[i].atMost(max(memories[i].Min, uint32(most)))
		}
	}
	if slices.Equal(tables, m.Tables) && slices.Equal(memories, m.Memories) {
		return b, nil
	}
	out := append(make([]byte, 0, len(b)+16), coreHeader...)
	for i := range sections {
		s := &sections[i]
		switch s.ID {
		case SectionTable:
			out = appendLimits(out, s.ID, tables, m.tableTypes)
		case SectionMemory:
			out = appendLimits(out, s.ID, memories, nil)
		default:
			out = append(out, s.Raw...)
		}
	}
	return out, nil
}

// The time to compile a function grows with the square of its control flow: 10,000 blocks take 1.6 s, 5,000 loops 13 s.
// A 3 MB module built with standard Go uses 5 % of mostWork, one built with TinyGo 1 %.
const (
	loopWork     = 10  // cost of a loop, in blocks
	bytesOfWork  = 32  // how many bytes of code count as one block
	functionWork = 300 // cost of a function, besides the square of its blocks: an empty one takes 10 µs
	mostWork     = 1_000_000_000
	// A compiler reloads every global at the start of a function and after each call in it. Compilers to wasm create up
	// to 13 globals. With 65,535 globals, a module of 123 KB took 6 GB.
	usualGlobals  = 16
	bytesOfGlobal = 8 // how many bytes of code count as one reload of a further global
	// A compiler tracks each parameter and result of a call, a block or a branch. With 1,000 results, a module of 8 KB
	// took 257 MB.
	valuesOfWork = 16 // how many values count as a block; fewer in one place count nothing
)

// ErrTooMuch is the error for a module that is too expensive to compile.
var ErrTooMuch = errors.New("would take too long to compile")

// Compilable reads every function, instruction by instruction, and rejects a module that would take longer than half a
// minute to compile. The estimate is the sum over its functions of the square of their blocks, targets of br_table,
// loops (counted as 10 each) and bytes (32 count as one). Each global beyond 16 counts as 8 bytes at the start of a
// function and at every call. For functions, blocks and branches with more than 16 parameters and results, every 16
// count as a block.
//
// Errors: those of Parse; ErrTooMuch; those of Instruction; an index out of range.
func Compilable(b []byte) error {
	m, err := Parse(b)
	if err != nil {
		return err
	}
	sections, err := Sections(b)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(sections, func(s Section) bool { return s.ID == SectionCode })
	if at < 0 {
		return nil
	}
	reads := max(m.globals-usualGlobals, 0) * bytesOfGlobal / bytesOfWork
	code := sections[at].Reader()
	n, err := code.Count("bodies")
	if err != nil {
		return err
	}
	work := 0
	for i := range n {
		body, err := code.Sub("body")
		if err != nil {
			return err
		}
		blocks, err := m.blocks(body, m.Types[m.Functions[i]], reads)
		if err != nil {
			return err
		}
		if work += functionWork + blocks*blocks; work > mostWork {
			return fmt.Errorf("%w: %w", code.Errorf("body %d of %d, with %d globals, has as much control flow as %d blocks",
				i+1, n, m.globals, blocks), ErrTooMuch)
		}
	}
	return nil
}

// work is the cost of a signature's values, in blocks.
func (t FuncType) work() int { return (len(t.Params) + len(t.Results)) / valuesOfWork }

// blocks is the cost of a body in Compilable; reads is the cost of reloading further globals once.
func (m *Module) blocks(r *Reader, own FuncType, reads int) (n int, err error) {
	n = r.Rest()/bytesOfWork + reads + own.work()
	if _, err = r.skipLocals(); err != nil {
		return n, err
	}
	branch := own.work()                                        // upper bound so far
	for in := (Instruction{}); r.Rest() > 0 && n <= mostWork; { // more could not be squared
		start := r.pos
		if err = r.Instruction(&in); err != nil {
			return n, err
		}
		switch in.Op {
		case OpBlock, OpIf:
			n++
		case OpLoop:
			n += loopWork
		case OpBr, OpBrIf, OpReturn:
			n += branch
		case OpBrTable:
			n += len(in.Labels) * (1 + branch)
		case OpCall, OpCallIndirect:
			n += reads
		}
		t, ok := FuncType{}, true
		switch {
		case in.Op == OpCall:
			t, ok = m.FuncType(in.Index)
		case in.Op == OpCallIndirect || in.Typed:
			if ok = uint64(in.Index) < uint64(len(m.Types)); ok {
				t = m.Types[in.Index]
			}
		}
		if !ok {
			r.pos = start
			return n, r.Errorf("instruction 0x%02x names function or type %d, which the module does not have",
				uint32(in.Op), in.Index)
		}
		n += t.work()
		if in.Typed {
			branch = max(branch, t.work())
		}
	}
	return n, nil
}

// boundTables gives every table a maximum. Tables that can grow share the entries available for growth.
func boundTables(tables []Limits, growth int64, sections []Section) []Limits {
	bounded := slices.Clone(tables)
	growing := 0
	for _, t := range tables {
		if !t.HasMax || t.Max > t.Min {
			growing++
		}
	}
	if growing == 0 {
		return bounded
	}
	share := growth / int64(growing)
	if !growsTables(sections) {
		share = 0
	}
	for i, t := range tables {
		bounded[i] = t.atMost(uint32(min(int64(t.Min)+share, math.MaxUint32)))
	}
	return bounded
}

// atMost returns l with a maximum of at most most.
func (l Limits) atMost(most uint32) Limits {
	if !l.HasMax || l.Max > most {
		l.HasMax, l.Max = true, most
	}
	return l
}

// growsTables reports whether an instruction may grow a table. Code that cannot be parsed counts as growing.
func growsTables(sections []Section) bool {
	for i := range sections {
		if sections[i].ID != SectionCode {
			continue
		}
		grows, err := findTableGrow(sections[i].Reader())
		return grows || err != nil
	}
	return false
}

func findTableGrow(code *Reader) (bool, error) {
	n, err := code.Count("bodies")
	if err != nil {
		return false, err
	}
	var in Instruction
	for range n {
		body, err := code.Sub("body")
		if err != nil {
			return false, err
		}
		if _, err := body.skipLocals(); err != nil {
			return false, err
		}
		for body.Rest() > 0 {
			if err := body.Instruction(&in); err != nil {
				return false, err
			}
			if in.Op == OpTableGrow {
				return true, nil
			}
		}
	}
	return false, nil
}

// appendLimits appends a section of tables, each preceded by its type, or of memories, which have no types.
func appendLimits(out []byte, id SectionID, limits []Limits, types []ValueType) []byte {
	content := AppendU32(nil, uint32(len(limits)))
	for i, l := range limits {
		if types != nil {
			content = append(content, byte(types[i]))
		}
		var flags byte
		if l.HasMax {
			flags |= 1
		}
		if l.Shared {
			flags |= 2
		}
		content = AppendU32(append(content, flags), l.Min)
		if l.HasMax {
			content = AppendU32(content, l.Max)
		}
	}
	return append(AppendU32(append(out, byte(id)), uint32(len(content))), content...)
}
