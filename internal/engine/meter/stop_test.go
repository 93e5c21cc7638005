package meter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// doubling is a chain of functions, each of which calls the next one twice, so that the first makes 2^n calls without a
// loop or recursion.
func doubling(n int, call func(next byte) []byte, last ...byte) []assembledFunction {
	var funcs []assembledFunction
	for i := range n {
		funcs = append(funcs, assembledFunction{code: slices.Concat(call(byte(i+1)), call(byte(i+1)))})
	}
	funcs = append(funcs, assembledFunction{code: last})
	funcs[0].name = "run"
	return funcs
}

func upTo(n uint32) []uint32 {
	var list []uint32
	for i := range n {
		list = append(list, i)
	}
	return list
}

// endless returns modules whose run, or start, practically never returns.
func endless(t *testing.T) map[string][]byte {
	run := func(code ...byte) []byte {
		return (&assembly{funcs: []assembledFunction{{name: "run", code: code}}}).bytes()
	}
	direct := func(next byte) []byte { return []byte{0x10, next} }
	indirect := func(next byte) []byte { return []byte{0x41, next, 0x11, 0, 0} }
	// run(n): if n != 0 { run(n-1); run(n-1) }
	twice := func(call ...byte) []byte {
		one := slices.Concat([]byte{0x20, 0, 0x41, 1, 0x6b}, call)
		return slices.Concat([]byte{0x20, 0, 0x04, 0x40}, one, one, []byte{0x0b})
	}
	tree := func(call ...byte) *assembly {
		return &assembly{table: []uint32{0}, funcs: []assembledFunction{{kind: 1, code: twice(call...)},
			{name: "run", code: []byte{0x41, 60, 0x10, 0}}}}
	}
	mutual := &assembly{funcs: []assembledFunction{{kind: 1, code: twice(0x10, 1)}, {kind: 1, code: []byte{0x20, 0, 0x10, 0}},
		{name: "run", code: []byte{0x41, 60, 0x10, 0}}}}
	mib := []byte{0x41, 0x80, 0x80, 0xc0, 0x00} // i32.const 1 MiB
	fill := slices.Concat([]byte{0x41, 0, 0x41, 7}, mib, []byte{0xfc, 0x0b, 0})
	// Each function except the last first runs 200 instructions, so that all have their own sites.
	heavy := doubling(60, func(next byte) []byte {
		return slices.Concat(slices.Repeat([]byte{0x3f, 0, 0x1a}, 200), direct(next))
	})
	grown := []byte{0x41, 0x20, 0x40, 0, 0x1a} // memory.grow 32: space for it
	ways := map[string][]byte{
		"a loop":                             run(0x03, 0x40, 0x0c, 0, 0x0b),
		"a loop by br_if":                    run(0x03, 0x40, 0x41, 1, 0x0d, 0, 0x0b),
		"a loop by br_table":                 run(0x03, 0x40, 0x02, 0x40, 0x41, 0, 0x0e, 1, 1, 0, 0x0b, 0x0b),
		"a loop from an if":                  run(0x03, 0x40, 0x41, 1, 0x04, 0x40, 0x0c, 1, 0x05, 0x0f, 0x0b, 0x0b),
		"two loops, each short":              run(0x03, 0x40, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b, 0x0c, 0, 0x0b),
		"recursion":                          tree(0x10, 0).bytes(),
		"recursion through a table":          tree(0x41, 0, 0x11, 1, 0).bytes(),
		"two functions that call each other": mutual.bytes(),
		"calls without loop or recursion":    (&assembly{funcs: doubling(60, direct)}).bytes(),
		"the same through a table":           (&assembly{table: upTo(61), funcs: doubling(60, indirect)}).bytes(),
		"the same with heavy functions":      (&assembly{funcs: heavy}).bytes(),
		"a storm of memory.fill": run(slices.Concat(grown, []byte{0x03, 0x40}, fill,
			[]byte{0x0c, 0, 0x0b})...),
		"memory.fill without loop": (&assembly{funcs: doubling(60, direct,
			slices.Concat(grown, fill)...)}).bytes(),
		"a storm of memory.grow":   run(0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b),
		"memory.grow without loop": (&assembly{funcs: doubling(60, direct, 0x41, 0, 0x40, 0, 0x1a)}).bytes(),
		"a start function": (&assembly{start: 1,
			funcs: []assembledFunction{{code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}, {name: "run"}}}).bytes(),
		"a start function that calls a chain": (&assembly{start: 1,
			funcs: append(doubling(60, direct)[:61], assembledFunction{})}).bytes(),
	}
	if path := filepath.Join(wazeroFolder(), "cmd", "wazero", "testdata", "infinite_loop.wasm"); wazeroFolder() != "" {
		if b, err := os.ReadFile(path); err == nil {
			ways["the loop of wazero's own test"] = b
		}
	}
	return ways
}

// TestEveryWayToGoOnForEverIsStopped uses one processor for Go's scheduler, and another goroutine that needs garbage
// collections. If the guest kept the processor, that goroutine would never return.
func TestEveryWayToGoOnForEverIsStopped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, original := range endless(t) {
		t.Run(name, func(t *testing.T) {
			metered, err := Rewrite(original)
			require.NoError(t, err)
			e := newEngine(t, wazero.NewRuntimeConfig().WithMemoryLimitPages(1024))
			collected := make(chan struct{})
			e.more = func() int64 {
				select {
				case <-collected:
					panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded))
				default:
					runtime.Gosched()
					return 1 << 17
				}
			}
			go func() {
				defer close(collected)
				for range 3 {
					runtime.GC()
				}
			}()
			ctx := context.Background()
			compiled, err := e.CompileModule(ctx, metered)
			require.NoError(t, err)
			m, err := e.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
			if err == nil {
				_, err = m.ExportedFunction("run").Call(ctx)
			}
			var exit *sys.ExitError
			require.True(t, errors.As(err, &exit), "%v", err)
			assert.Equal(t, sys.ExitCodeDeadlineExceeded, exit.ExitCode())
			assert.Less(t, e.looks, 1<<20)
		})
	}
}

// looksOf runs a module that ends, with units at each reading of the clock, and returns the number of readings.
func looksOf(t *testing.T, a *assembly, units int64, imports func()) int {
	t.Helper()
	metered, err := Rewrite(a.bytes())
	require.NoError(t, err)
	e := newEngine(t, wazero.NewRuntimeConfig())
	e.more = func() int64 { return units }
	ctx := context.Background()
	b := e.NewHostModuleBuilder("env")
	for _, name := range a.imports {
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {
			imports()
		}), nil, nil).Export(name)
	}
	_, err = b.Instantiate(ctx)
	require.NoError(t, err)
	m, err := e.InstantiateWithConfig(ctx, metered, wazero.NewModuleConfig())
	require.NoError(t, err)
	_, err = m.ExportedFunction("run").Call(ctx)
	require.NoError(t, err)
	return e.looks
}

func TestDeepStackIsSeenOnItsWayDownAndUp(t *testing.T) {
	// run(n): if n != 0 { run(n-1); 40 instructions }
	const depth = 10_000
	body := slices.Concat([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0},
		slices.Repeat([]byte{0x3f, 0, 0x1a}, 40), []byte{0x0b})
	a := &assembly{funcs: []assembledFunction{{kind: 1, code: body}, {name: "run", code: []byte{0x41, 0x90, 0xce, 0, 0x10, 0}}}}
	assert.GreaterOrEqual(t, looksOf(t, a, 0, nil), 2*depth, "a site on entry, a site before the return")
}

func TestTimeSpentInAnImportIsLookedAtBeforeTheNextCall(t *testing.T) {
	calls := 0
	slow := func() { calls++ }
	times := func(call ...byte) []byte { // 10 times
		loop := slices.Concat([]byte{0x03, 0x40}, call,
			[]byte{0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 10, 0x47, 0x0d, 0, 0x0b})
		return loop
	}
	for name, call := range map[string][]byte{"called directly": {0x10, 0},
		"called through a table": {0x41, 0, 0x11, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			calls = 0
			a := &assembly{imports: []string{"slow"}, table: []uint32{0},
				funcs: []assembledFunction{{name: "run", locals: []byte{1, 1, 0x7f}, code: times(call...)}}}
			looks := looksOf(t, a, 1<<40, slow)
			assert.Equal(t, 10, calls)
			assert.GreaterOrEqual(t, looks, 10, "although there are units enough for all")
		})
	}
}

func TestBulkOperationsAreChargedByTheirLength(t *testing.T) {
	// memory.fill of 32 KiB, 100 times: 4096 units each.
	fill := []byte{0x41, 0, 0x41, 7, 0x41, 0x80, 0x80, 0x02, 0xfc, 0x0b, 0}
	a := &assembly{funcs: []assembledFunction{{name: "run", code: slices.Repeat(fill, 100)}}}
	looks := looksOf(t, a, 8192, nil)
	assert.GreaterOrEqual(t, looks, 30)
	assert.LessOrEqual(t, looks, 60)
}

func TestSmallFunctionsWithoutLoopsHaveNoSites(t *testing.T) {
	leaf := assembledFunction{kind: 2, name: "add", code: []byte{0x20, 0, 0x20, 1, 0x6a}}
	caller := assembledFunction{kind: 2, name: "twice", code: []byte{0x20, 0, 0x20, 1, 0x10, 0, 0x20, 1, 0x10, 0}}
	original := (&assembly{funcs: []assembledFunction{leaf, caller}}).bytes()
	metered, err := Rewrite(original)
	require.NoError(t, err)
	e := newEngine(t, wazero.NewRuntimeConfig())
	m, err := e.InstantiateWithConfig(context.Background(), metered, wazero.NewModuleConfig())
	require.NoError(t, err)
	got, err := m.ExportedFunction("twice").Call(context.Background(), 40, 1)
	require.NoError(t, err)
	assert.Equal(t, []uint64{42}, got)
	assert.Zero(t, e.looks)
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	run := func(code ...byte) []byte {
		return (&assembly{funcs: []assembledFunction{{name: "run", code: code}}}).bytes()
	}
	for _, c := range []struct {
		name, want string
		wasm       []byte
	}{
		{"text", "not a WebAssembly core module", []byte("(module)")},
		{"a tail call", "instruction 0x12 is not one of WebAssembly 2.0", run(0x12, 0)},
		{"an atomic operation", "instruction 0xfe is not one of WebAssembly 2.0", run(0xfe, 0x03, 0)},
		{"an exception", "instruction 0x08 is not one of WebAssembly 2.0", run(0x08, 0)},
		{"relaxed SIMD", "instruction 0xfd 256 is not one of WebAssembly 2.0", run(0xfd, 0x80, 0x02)},
		{"a vector instruction that wazero reads as another", "longer than need be", run(0xfd, 0x80, 0x00)},
		{"a typed null", "type of a reference is 0x00", run(0xd0, 0x00, 0x1a)},
		{"another memory", "memory is 0x01", run(0x41, 0, 0x40, 1, 0x1a)},
		{"the global that is added", "global 0, but the module has 0", run(0x23, 0, 0x1a)},
		{"the import that is added", "function 1, but the module has 1", run(0x10, 1)},
		{"the same by reference", "function 1, but the module has 1", run(0xd2, 1, 0x1a)},
		{"the type that is added", "type 3, but the module has 3", run(0x41, 0, 0x11, 3, 0)},
		{"the local that is added", "local 0, but the module has 0",
			run(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0b, 0, 0x20, 0, 0x1a)},
		{"a label that is not there", "label 7, but there are 1", run(0x0c, 7)},
		{"else without if", "else without if", run(0x05)},
		{"more ends than blocks", "bytes behind the end of a body", run(0x0b, 0x0b)},
		{"a block that does not end", "a body that does not end", run(0x02, 0x40)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Rewrite(c.wasm)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// BenchmarkStop measures how long after its deadline, which is 5 ms after its start, a loop ends.
func BenchmarkStop(b *testing.B) {
	original := (&assembly{funcs: []assembledFunction{{name: "run", code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}}}).bytes()
	metered, err := Rewrite(original)
	require.NoError(b, err)
	e := newEngine(b, wazero.NewRuntimeConfig())
	const allowed = 5 * time.Millisecond
	var began time.Time
	e.more = func() int64 {
		if time.Since(began) > allowed {
			panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded))
		}
		return 1 << 17
	}
	compiled, err := e.CompileModule(context.Background(), metered)
	require.NoError(b, err)
	var late []time.Duration
	for b.Loop() {
		m, err := e.InstantiateModule(context.Background(), compiled, wazero.NewModuleConfig().WithName(""))
		require.NoError(b, err)
		began = time.Now()
		_, err = m.ExportedFunction("run").Call(context.Background())
		late = append(late, time.Since(began)-allowed)
		require.Error(b, err)
		require.NoError(b, m.Close(context.Background()))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "late-us-p50")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "late-us-p99")
	b.ReportMetric(0, "ns/op")
}
