package meter

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// edge writes functions whose accesses lie around the end of a memory of one page: an access that is looked at too early, too far or not at all shows.
// Local 0 is a number that decides which branches are taken, 1 to 3 are addresses; 1 is a parameter too.
type edge struct {
	*rand.Rand
	code []byte
}

func (g *edge) write(op wasmbin.Opcode, immediates ...byte) {
	g.code = append(append(g.code, byte(op)), immediates...)
}

func (g *edge) address() byte { return byte(1 + g.IntN(3)) }

// access takes the address on the stack.
func (g *edge) access() {
	offset := byte(g.IntN(24))
	if g.IntN(2) == 0 {
		g.write([]wasmbin.Opcode{0x28, 0x29, 0x2d, 0x2f, 0x35}[g.IntN(5)], 0, offset)
		g.write(wasmbin.OpDrop)
		return
	}
	g.write(wasmbin.OpLocalGet, 0)
	g.write([]wasmbin.Opcode{0x36, 0x3a, 0x3b}[g.IntN(3)], 0, offset)
}

func (g *edge) maybe() {
	g.write(wasmbin.OpLocalGet, 0)
	g.write(wasmbin.OpI32Const, byte(1<<g.IntN(3)))
	g.write(0x71)
}

func (g *edge) statement(depth int) {
	switch kind := g.IntN(16); {
	case kind < 6:
		g.write(wasmbin.OpLocalGet, g.address())
		g.access()
	case kind == 6:
		g.write(wasmbin.OpI32Const, signedConst(1<<16-g.IntN(32))...)
		g.access()
	case kind == 7: // two locals with one address
		g.write(wasmbin.OpLocalGet, g.address())
		g.write(wasmbin.OpLocalTee, g.address())
		g.access()
	case kind == 8: // another address
		g.write(wasmbin.OpI32Const, signedConst(1<<16-g.IntN(40))...)
		if g.IntN(2) == 0 {
			g.write(wasmbin.OpLocalTee, g.address())
			g.access()
			return
		}
		g.write(wasmbin.OpLocalSet, g.address())
	case kind == 9: // the local has another by the time of the access
		at := g.address()
		if g.IntN(2) == 0 {
			g.write(wasmbin.OpLocalGet, at)
			g.write(wasmbin.OpLocalSet, 1+at%3)
		}
		g.write(wasmbin.OpLocalGet, at)
		g.write(wasmbin.OpLocalGet, at)
		g.write(wasmbin.OpI32Const, byte(g.IntN(16)))
		g.write([]wasmbin.Opcode{0x6a, 0x6b}[g.IntN(2)])
		g.write(wasmbin.OpLocalSet, at)
		g.access()
	case kind == 10 && g.IntN(2) == 0:
		g.write(wasmbin.OpCall, 0)
	case kind == 10: // an address waits on the stack
		if g.IntN(2) == 0 {
			g.write(wasmbin.OpLocalGet, g.address())
		} else {
			g.write(wasmbin.OpI32Const, signedConst(1<<16-g.IntN(32))...)
		}
		g.write(wasmbin.OpI32Const, signedConst(g.IntN(100))...)
		g.write(wasmbin.OpLocalGet, g.address())
		g.write(wasmbin.OpCall, 1+edgeFunctions)
		g.write(0x36, 0, byte(g.IntN(24)))
	case kind == 11: // fails in another way
		g.maybe()
		g.maybe()
		g.write(0x6e)
		g.write(wasmbin.OpDrop)
	case kind == 12 && g.IntN(3) == 0:
		g.write(wasmbin.OpI32Const, 1)
		g.write(wasmbin.OpMemoryGrow, 0)
		g.write(wasmbin.OpDrop)
	case kind == 13:
		g.write(wasmbin.OpLocalGet, g.address())
		g.write(wasmbin.OpI32Const, 0)
		g.write(wasmbin.OpI32Const, byte(g.IntN(24)))
		g.write(0xfc, 0x0b, 0)
	case kind >= 14 && depth < 2:
		op := []wasmbin.Opcode{wasmbin.OpBlock, wasmbin.OpIf, wasmbin.OpLoop}[g.IntN(3)]
		if op == wasmbin.OpIf {
			g.maybe()
		}
		g.write(op, wasmbin.EmptyBlock)
		if op == wasmbin.OpBlock {
			g.maybe()
			g.write(wasmbin.OpBrIf, 0)
		}
		g.statements(depth + 1)
		if op == wasmbin.OpIf && g.IntN(2) == 0 {
			g.write(wasmbin.OpElse)
			g.statements(depth + 1)
		}
		if op == wasmbin.OpLoop { // once more, as often as bit 0 of local 0 was set
			g.write(wasmbin.OpLocalGet, 0)
			g.write(wasmbin.OpLocalGet, 0)
			g.write(wasmbin.OpI32Const, 1)
			g.write(0x76)
			g.write(wasmbin.OpLocalSet, 0)
			g.write(wasmbin.OpI32Const, 1)
			g.write(0x71)
			g.write(wasmbin.OpBrIf, 0)
		}
		g.write(wasmbin.OpEnd)
	}
}

func (g *edge) statements(depth int) {
	for range 1 + g.IntN(6) {
		g.statement(depth)
	}
}

const edgeFunctions = 16

func edgeModule(seed uint64) []byte {
	g := &edge{Rand: rand.New(rand.NewPCG(seed, 4))}
	a := &assembly{imports: []string{"note"}}
	for i := range edgeFunctions {
		g.code = nil
		g.statements(0)
		g.write(wasmbin.OpLocalGet, 0)
		a.funcs = append(a.funcs, assembled{kind: 2, name: fmt.Sprint("run", i), locals: []byte{1, 2, 0x7f}, code: g.code})
	}
	a.funcs = append(a.funcs, assembled{kind: 2, code: []byte{byte(wasmbin.OpLocalGet), 0}})
	return a.bytes()
}

// TestAccessesFailWhereTheyDid runs functions with a rewritten module's checks and with its own: the same ones fail, in the same way, after the same calls of the host.
func TestAccessesFailWhereTheyDid(t *testing.T) {
	e := newEngine(t, wazero.NewRuntimeConfig().WithMemoryLimitPages(3))
	ctx := context.Background()
	notes := 0
	_, err := e.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { notes++ }), nil, nil).Export("note").Instantiate(ctx)
	require.NoError(t, err)
	e.more = func() int64 { return 1 << 40 }
	type seen struct {
		results []uint64
		trap    string
		notes   int
		memory  []byte
	}
	run := func(c wazero.CompiledModule, function string, choice, address uint64) (s seen) {
		m, err := e.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName(""))
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close(ctx)) }()
		notes = 0
		s.results, err = m.ExportedFunction(function).Call(ctx, choice, address)
		if s.trap, s.notes = firstLine(err), notes; err == nil {
			view, _ := m.Memory().Read(0, m.Memory().Size())
			s.memory = bytes.Clone(view[1<<16-128:])
		}
		return s
	}
	outcomes, modules := map[string]int{}, uint64(400)
	if brief() {
		modules = 20
	}
	for seed := range modules {
		original := edgeModule(seed)
		rewritten, err := Rewrite(original)
		require.NoError(t, err)
		want, err := e.CompileModule(ctx, original)
		require.NoError(t, err, "seed %d", seed)
		got, err := e.CompileModule(ctx, rewritten)
		require.NoError(t, err, "seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 5))
		for i := range edgeFunctions {
			for range 4 {
				function, choice, address := fmt.Sprint("run", i), uint64(r.IntN(8)), uint64(1<<16-r.IntN(40))
				w := run(want, function, choice, address)
				require.Equal(t, w, run(got, function, choice, address), "seed %d, %s(%d, %d)", seed, function, choice, address)
				outcomes[w.trap]++
			}
		}
		require.NoError(t, want.Close(ctx))
		require.NoError(t, got.Close(ctx))
	}
	t.Log(outcomes)
	assert.Len(t, outcomes, 3, "some return, some reach beyond the memory, some divide by zero")
}
