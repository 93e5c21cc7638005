package meter

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Globals of a random module. Fuel ends it: every loop and function consumes some, and returns when none is left. Work
// sums the weights of executed instructions, counted by the module itself: the meter must not charge less.
const (
	globalFuel = iota
	globalWork
	globalFree // used by the random code itself
)

// generator writes a random valid module that terminates.
type generator struct {
	*rand.Rand
	code   []byte
	weight int    // of the code written since work was last counted
	labels []bool // whether a branch to the label goes backwards
	funcs  int
	traps  bool // it may trap, or grow its memory, which makes it read the clock
}

// Locals of each random function: two parameters, three i32, two i64, one f64.
var randomLocals = []byte{3, 3, 0x7f, 2, 0x7e, 1, 0x7c}

func randomModule(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	// fuel: 2000
	a := &assembly{globals: [][]byte{{0x7f, 1, 0x41, 0xd0, 0x0f, 0x0b}, {0x7e, 1, 0x42, 0, 0x0b},
		{0x7f, 1, 0x41, 5, 0x0b}}}
	g.funcs, g.traps = 1+g.IntN(6), seed%4 == 0
	for i := range g.funcs {
		f := assembledFunction{kind: 2, locals: randomLocals}
		if i == 0 {
			f.name = "run"
		}
		g.code, g.weight, g.labels = nil, 0, []bool{false}
		g.burn()
		g.statements(0)
		g.number(0)
		f.code = g.code
		a.funcs = append(a.funcs, f)
		a.table = append(a.table, uint32(i))
	}
	return a.bytes()
}

// op writes an instruction and adds its weight.
func (g *generator) op(op wasmbin.Opcode, immediates ...byte) {
	g.code = append(g.code, byte(op))
	if op > 0xff {
		g.code = append(g.code[:len(g.code)-1], byte(op>>8), byte(op))
	}
	g.code = append(g.code, immediates...)
	g.weight += weight(op)
}

// count adds the weight so far to the work. The counting code itself does not count.
func (g *generator) count() {
	g.code = append(g.code, 0x23, globalWork, 0x42, byte(g.weight)|0x80, byte(g.weight>>7), 0x7c, 0x24, globalWork)
	g.weight = 0
}

func (g *generator) burn() {
	g.code = append(g.code, 0x23, globalFuel, 0x41, 1, 0x6b, 0x24, globalFuel, 0x23, globalFuel, 0x41, 0, 0x48, 0x04,
		0x40, 0x20, 0, 0x0f, 0x0b)
}

func (g *generator) local() byte { return byte(g.IntN(5)) }

// number writes an expression of type i32.
func (g *generator) number(depth int) {
	if depth > 3 {
		g.op(wasmbin.OpLocalGet, g.local())
		return
	}
	switch g.IntN(12) {
	case 0, 1:
		g.op(wasmbin.OpI32Const, byte(g.IntN(64)))
	case 2, 3:
		g.op(wasmbin.OpLocalGet, g.local())
	case 4:
		g.op(wasmbin.OpGlobalGet, globalFree)
	case 5, 6:
		g.number(depth + 1)
		g.number(depth + 1)
		g.op(wasmbin.Opcode([]byte{0x6a, 0x6b, 0x6c, 0x71, 0x73, 0x74, 0x48, 0x4f}[g.IntN(8)]))
	case 7: // may trap
		g.number(depth + 1)
		g.number(depth + 1)
		if !g.traps {
			g.op(wasmbin.OpI32Const, 1)
			g.op(0x72)
			g.op(wasmbin.Opcode(0x6e + 2*g.IntN(2)))
			return
		}
		g.op(wasmbin.Opcode(0x6d + g.IntN(4)))
	case 8:
		g.address()
		g.op(0x28, 2, byte(g.IntN(100)))
	case 9: // through i64 and f64
		g.number(depth + 1)
		g.op(0xac)
		g.op(0xb9)
		g.op(wasmbin.OpF64Sqrt)
		g.op(0xfc06)
		g.op(0xa7)
	case 10: // if with a result
		g.number(depth + 1)
		g.op(wasmbin.OpIf, 0x7f)
		g.labels = append(g.labels, false)
		g.number(depth + 1)
		g.op(wasmbin.OpElse)
		g.number(depth + 1)
		g.op(wasmbin.OpEnd)
		g.labels = g.labels[:len(g.labels)-1]
		g.weight = 0 // only one arm was executed
	case 11: // vectors
		g.number(depth + 1)
		g.op(0xfd11)
		g.number(depth + 1)
		g.op(0xfd11)
		g.op(0xfdae, 1)
		g.op(0xfd1b, byte(g.IntN(4)))
	}
}

// address writes a number below 16 KiB.
func (g *generator) address() {
	g.number(2)
	g.op(wasmbin.OpI32Const, 0xff, 0xff, 0)
	g.op(0x71)
}

func (g *generator) statements(depth int) {
	for range 1 + g.IntN(5) {
		g.statement(depth)
	}
}

func (g *generator) statement(depth int) {
	kind := g.IntN(23)
	if depth > 4 {
		kind %= 8
	}
	switch kind {
	default:
		g.number(0)
		g.op(wasmbin.OpLocalSet, g.local())
		g.count()
	case 2:
		g.address()
		g.number(1)
		g.op(0x36, 2, byte(g.IntN(100)))
		g.count()
	case 3:
		g.number(1)
		g.op(wasmbin.OpGlobalSet, globalFree)
		g.count()
	case 4:
		if !g.traps {
			return
		}
		g.op(wasmbin.OpI32Const, byte(g.IntN(3)))
		g.op(wasmbin.OpMemoryGrow, 0)
		g.op(wasmbin.OpLocalSet, g.local())
		g.count()
	case 5:
		g.address()
		g.address()
		g.address()
		g.op([]wasmbin.Opcode{wasmbin.OpMemoryFill, wasmbin.OpMemoryCopy}[g.IntN(2)], 0)
		if g.code[len(g.code)-2] == 0x0a {
			g.code = append(g.code, 0)
		}
		g.count()
	case 6: // a branch outwards, or the end of the function
		g.branch()
	case 7: // a long straight-line sequence
		for range g.IntN(200) {
			g.op(wasmbin.OpMemorySize, 0)
			g.op(wasmbin.OpDrop)
		}
		g.count()
	case 8, 9, 10:
		g.nested(depth, wasmbin.OpBlock)
	case 11, 12, 13:
		g.nested(depth, wasmbin.OpLoop)
	case 14, 15, 16:
		g.number(1)
		g.weight = 0
		g.nested(depth, wasmbin.OpIf)
	case 17, 18: // the code inside counts itself
		g.number(1)
		g.number(1)
		g.count()
		g.op(wasmbin.OpCall, byte(g.IntN(g.funcs)))
		g.op(wasmbin.OpLocalSet, g.local())
		g.count()
	case 19:
		g.number(1)
		g.number(1)
		function := g.IntN(g.funcs)
		if g.traps {
			function = g.IntN(g.funcs + 1)
		}
		g.op(wasmbin.OpI32Const, byte(function))
		g.count()
		g.op(wasmbin.OpCallIndirect, 2, 0)
		g.op(wasmbin.OpLocalSet, g.local())
		g.count()
	case 20, 21:
		g.fields()
		g.count()
	case 22:
		for range 1 + g.IntN(4) {
			address := g.IntN(60000)
			if g.traps && g.IntN(3) == 0 {
				address = 1<<16 - g.IntN(16)
			}
			g.op(wasmbin.OpI32Const, signedConst(address)...)
			g.access()
		}
		g.count()
	}
}

// fields writes accesses to one address in a local, with other code in between.
func (g *generator) fields() {
	local := g.local()
	if g.traps && g.IntN(3) == 0 {
		g.op(wasmbin.OpI32Const, signedConst(1<<16-g.IntN(64))...)
	} else {
		g.address()
	}
	g.op(wasmbin.OpLocalSet, local)
	for range 1 + g.IntN(8) {
		switch g.IntN(10) {
		case 0: // another local has it from here on
			g.op(wasmbin.OpLocalGet, local)
			local = g.local()
			g.op(wasmbin.OpLocalSet, local)
		case 1: // the address is on the stack when the local gets another value
			g.op(wasmbin.OpLocalGet, local)
			g.op(wasmbin.OpLocalGet, local)
			g.op(wasmbin.OpI32Const, 8)
			g.op(0x6a)
			g.op(wasmbin.OpLocalSet, local)
			g.access()
		case 2:
			g.op(wasmbin.OpLocalGet, local)
			g.op(wasmbin.OpLocalTee, local)
			g.access()
		case 3: // what follows may be unreachable
			g.number(1)
			g.op(wasmbin.OpIf, wasmbin.EmptyBlock)
			g.labels = append(g.labels, false)
			g.op(wasmbin.OpLocalGet, local)
			g.access()
			g.op(wasmbin.OpEnd)
			g.labels = g.labels[:len(g.labels)-1]
			g.weight = 0
		case 4:
			if g.traps {
				g.op(wasmbin.OpI32Const, 1)
				g.op(wasmbin.OpMemoryGrow, 0)
				g.op(wasmbin.OpDrop)
			}
		default:
			g.op(wasmbin.OpLocalGet, local)
			g.access()
		}
	}
}

// access writes a load or store of integers to the address on the stack.
func (g *generator) access() {
	op := []wasmbin.Opcode{0x28, 0x29, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x3a,
		0x3b, 0x3c, 0x3d, 0x3e}[g.IntN(19)]
	switch {
	case op < 0x36: // a load
		g.op(op, 0, byte(g.IntN(60)))
		g.op(wasmbin.OpDrop)
		return
	case op == 0x36 || op == 0x3a || op == 0x3b:
		g.number(2)
	default:
		g.op(wasmbin.OpI64Const, byte(g.IntN(60)))
	}
	g.op(op, 0, byte(g.IntN(60)))
}

// signedConst encodes a small number for i32.const.
func signedConst(n int) []byte {
	return []byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n >> 14)}
}

func (g *generator) nested(depth int, op wasmbin.Opcode) {
	g.op(op, wasmbin.EmptyBlock)
	g.labels = append(g.labels, op == wasmbin.OpLoop)
	if op == wasmbin.OpLoop {
		g.burn()
	}
	g.statements(depth + 1)
	if op == wasmbin.OpIf && g.IntN(2) == 0 {
		g.op(wasmbin.OpElse)
		g.statements(depth + 1)
	}
	if op == wasmbin.OpLoop && g.IntN(4) > 0 {
		g.number(1)
		g.count()
		g.op(wasmbin.OpBrIf, 0)
	}
	g.op(wasmbin.OpEnd)
	g.labels = g.labels[:len(g.labels)-1]
	g.weight = 0
}

func (g *generator) branch() {
	outer := len(g.labels) - 1
	label := g.IntN(len(g.labels))
	if label == outer { // the function: with its result
		g.number(1)
		g.number(1)
		g.count()
		if g.IntN(2) == 0 {
			g.op(wasmbin.OpBrIf, byte(label))
			g.op(wasmbin.OpDrop)
		} else {
			g.op(wasmbin.OpDrop)
			g.op(wasmbin.OpReturn)
		}
	} else if g.IntN(2) == 0 {
		g.number(1)
		g.count()
		g.op(wasmbin.OpBrIf, byte(label))
	} else {
		g.number(1)
		g.count()
		g.op(wasmbin.OpBrTable, 2, byte(g.IntN(outer)), byte(label), byte(g.IntN(outer)))
	}
	g.weight = 0
}

// outcome is the observable result of a run.
type outcome struct {
	results []uint64
	trap    string
	memory  []byte
	globals []uint64
}

// runRandom runs the module twice, on one instance, and returns the units left.
func runRandom(t *testing.T, e *engine, wasm []byte, args ...uint64) (o outcome, left int64) {
	ctx := context.Background()
	compiled, err := e.CompileModule(ctx, wasm)
	require.NoError(t, err)
	defer func() { require.NoError(t, compiled.Close(ctx)) }()
	m, err := e.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close(ctx)) }()
	o.results, err = m.ExportedFunction("run").Call(ctx, args...)
	o.trap = firstLine(err)
	view, _ := m.Memory().Read(0, m.Memory().Size())
	o.memory = bytes.Clone(view)
	for _, name := range []string{"g0", "g1", "g2"} {
		o.globals = append(o.globals, m.ExportedGlobal(name).Get())
	}
	if g := m.ExportedGlobal("left"); g != nil {
		left = int64(g.Get())
	}
	return o, left
}

// showLeft exports the global with the unit count.
func showLeft(t *testing.T, metered []byte) []byte {
	sections, err := wasmbin.Sections(metered)
	require.NoError(t, err)
	out := []byte(header)
	var globals uint32
	for i := range sections {
		s := &sections[i]
		switch s.ID {
		case wasmbin.SectionGlobal:
			globals, err = s.Reader().U32("globals")
			require.NoError(t, err)
		case wasmbin.SectionExport:
			content, err := grow(s, wasmbin.AppendU32(append(appendName(nil, "left"), 3), globals-1))
			require.NoError(t, err)
			out = append(out, section(s.ID, content)...)
			continue
		}
		out = append(out, s.Raw...)
	}
	return out
}

// checkRandom requires that a random module with few units at a time has the same results as unmetered, and that the
// charge is at least the work.
func checkRandom(t *testing.T, e *engine, seed uint64) (work int64, accounted bool) {
	original := randomModule(seed)
	metered, err := Rewrite(original)
	require.NoError(t, err, "seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	args := []uint64{uint64(r.Uint32N(100)), uint64(r.Uint32N(100))}
	want, _ := runRandom(t, e, original, args...)
	e.more = func() int64 { return r.Int64N(1000) }
	got, _ := runRandom(t, e, metered, args...)
	require.Equal(t, want, got, "seed %d", seed)

	const units = 1 << 40
	e.looks, e.more = 0, func() int64 { return units }
	got, left := runRandom(t, e, showLeft(t, metered), args...)
	require.Equal(t, want, got, "seed %d", seed)
	if accounted = got.trap == "" && e.looks == 1; accounted { // growing memory makes it read the clock, and resets the count
		work = int64(got.globals[globalWork])
		charged := units - left
		require.GreaterOrEqual(t, charged+stretch+inlined, work,
			"seed %d: the first charge, and what is due at the end, are not in it", seed)
	}
	return work, accounted
}

func TestRandomModulesComeToTheSame(t *testing.T) {
	e := newEngine(t, wazero.NewRuntimeConfig().WithMemoryLimitPages(64).WithCoreFeatures(api.CoreFeaturesV2))
	modules, most, accounts := 400, int64(0), 0
	if brief.Tests() {
		modules = 30
	}
	for seed := range uint64(modules) {
		work, accounted := checkRandom(t, e, seed)
		if accounted {
			most = max(most, work)
			accounts++
		}
	}
	t.Logf("the account of %d of %d modules was checked, the heaviest did %d units of work", accounts, modules, most)
	assert.Greater(t, most, int64(1000), "the modules do something")
}

// damage changes, removes or repeats some bytes of a module.
func damage(r *rand.Rand, wasm []byte) []byte {
	b := bytes.Clone(wasm)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b))
		switch r.IntN(6) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2:
			b = slices.Delete(b, at, min(len(b), at+1+r.IntN(3)))
		case 3:
			b = slices.Insert(b, at, b[at:min(len(b), at+r.IntN(5))]...)
		case 4: // probably an instruction
			b[at] = []byte{0x0c, 0x10, 0x11, 0x23, 0x24, 0x20, 0xd2, 0xfc, 0xfd, 0x0b, 0x02, 0x03}[r.IntN(12)]
		case 5:
			binary.LittleEndian.PutUint16(b[min(at, len(b)-2):], uint16(r.Uint32()))
		}
		if len(b) < 16 {
			return b
		}
	}
	return b
}

// checkDamaged requires that nothing panics, and that a metered module is only valid if the original is.
func checkDamaged(t *testing.T, r wazero.Runtime, wasm []byte) (accepted bool) {
	metered, err := Rewrite(wasm)
	if err != nil {
		return false
	}
	ctx := context.Background()
	compiled, err := r.CompileModule(ctx, metered)
	original, originalErr := r.CompileModule(ctx, wasm)
	if err == nil {
		require.NoError(t, compiled.Close(ctx))
		require.NoError(t, originalErr, "% x", wasm)
	}
	if originalErr == nil {
		require.NoError(t, original.Close(ctx))
		require.NoError(t, err, "% x", wasm)
	}
	return err == nil
}

func interpreter(t testing.TB) wazero.Runtime {
	// Few pages, because a damaged module may ask for 4 GiB at its start.
	return newEngine(t, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(64))
}

func TestDamagedModules(t *testing.T) {
	e, r := interpreter(t), rand.New(rand.NewPCG(3, 3))
	accepted, n := 0, 3000
	if brief.Tests() {
		n = 300
	}
	for i := range n {
		if checkDamaged(t, e, damage(r, randomModule(uint64(i%50)))) {
			accepted++
		}
	}
	assert.Greater(t, accepted, n/100, "some damage leaves a valid module")
}

func FuzzRewrite(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomModule(seed))
	}
	f.Add([]byte(header))
	e := interpreter(f)
	f.Fuzz(func(t *testing.T, wasm []byte) { checkDamaged(t, e, wasm) })
}
