//go:build unix

package guest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var loaderLimits = Limits{ModuleBytes: 16 << 20, MemoryBytes: 128 << 20}

// load does with a module what a swap does before its first call. Whatever the bytes are, it allocates at most 300 MB,
// uses at most five times the processor time of a large intact module, and rejects with a proper error.
func load(t *testing.T, m *Machine, wasm []byte) (loaded bool) {
	t.Helper()
	most := 5 * intactTime(t, m)
	bytes, took, err := tryLoad(t, m, wasm)
	require.Less(t, bytes, uint64(300_000_000), "bytes allocated")
	require.Less(t, took, most, "processor time")
	if err != nil {
		require.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code, "%v", err)
		require.Equal(t, "bad_module", abi.AsError(err).Reason, "%v", err)
	}
	return err == nil
}

// tryLoad inspects and compiles a module, and returns the allocated bytes and the processor time.
func tryLoad(t *testing.T, m *Machine, wasm []byte) (bytes uint64, took time.Duration, err error) {
	t.Helper()
	bytesBefore, timeBefore := spent(t)
	module, err := Inspect(wasm, loaderLimits, nil)
	if err == nil {
		var p Program
		if p, err = m.Compile(t.Context(), module, wasm); err == nil {
			require.NoError(t, m.Release(t.Context(), p))
		}
	}
	bytesAfter, timeAfter := spent(t)
	return bytesAfter - bytesBefore, timeAfter - timeBefore, err
}

// slowestIntact caches the first result of intactTime. The tests in this file do not run in parallel.
var slowestIntact time.Duration

// intactTime is the processor time for loading the largest control condition.
func intactTime(t *testing.T, m *Machine) time.Duration {
	t.Helper()
	if slowestIntact == 0 {
		largest := slices.MaxFunc(firstParty(t, "conditions/*/*.wasm"), func(a, b []byte) int { return len(a) - len(b) })
		_, took, err := tryLoad(t, m, largest)
		require.NoError(t, err)
		slowestIntact = took
	}
	return slowestIntact
}

// spent returns what this process has allocated, and its processor time.
func spent(t *testing.T) (uint64, time.Duration) {
	t.Helper()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return stats.TotalAlloc, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func openMachine(t *testing.T) *Machine {
	t.Helper()
	m, err := NewMachine(t.Context(), t.TempDir(), loaderLimits, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	return m
}

// firstParty returns modules of this repository, sorted by name.
func firstParty(t testing.TB, pattern string) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "plugins", filepath.FromSlash(pattern)))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var modules [][]byte
	for _, path := range paths {
		wasm, err := os.ReadFile(path)
		require.NoError(t, err)
		modules = append(modules, wasm)
	}
	return modules
}

// TestMutatedModulesLoadOrAreRefused changes modules of this repository in ways that leave most of each readable:
// counts, sizes, single bytes, whole sections. It goes on until one of them loads.
func TestMutatedModulesLoadOrAreRefused(t *testing.T) {
	many, modules := 150, firstParty(t, "conditions/*/*.wasm")
	switch {
	case brief.Race:
		many = 20
	case !brief.Tests():
		many, modules = 2000, append(modules, firstParty(t, "*/*.wasm")...)
	}
	m := openMachine(t)
	loaded := 0
	for seed := uint64(0); seed < uint64(many) || loaded == 0 && seed < uint64(10*many); seed++ {
		r := rand.New(rand.NewPCG(seed, 39))
		wasm := mutate(t, r, modules[r.IntN(len(modules))])
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if load(t, m, wasm) {
				loaded++
			}
		}) {
			t.Fatalf("the module of seed %d", seed)
		}
	}
	t.Logf("%d of %d loaded", loaded, many)
	assert.Positive(t, loaded)
	assert.Less(t, loaded, many)
}

// mutate makes one to three changes to a module.
func mutate(t *testing.T, r *rand.Rand, wasm []byte) []byte {
	sections, err := wasmbin.Sections(wasm)
	require.NoError(t, err)
	type content struct {
		id   wasmbin.SectionID
		data []byte
	}
	var all []content
	for i := range sections {
		s := &sections[i]
		whole := &wasmbin.Section{Data: s.Raw}
		head := whole.Reader()
		_, err := head.Byte("id")
		require.NoError(t, err)
		_, err = head.U32("size")
		require.NoError(t, err)
		all = append(all, content{s.ID, bytes.Clone(s.Raw[head.Pos():])})
	}
	numbers := []uint32{0, 1, 100, 1 << 16, 1 << 20, 1 << 28, 0x7fffffff, 0xffffffff}
	for range 1 + r.IntN(3) {
		i := r.IntN(len(all))
		c := &all[i]
		if len(c.data) == 0 {
			continue
		}
		// Most fields are near the start of a section.
		at := r.IntN(len(c.data))
		if r.IntN(2) == 0 {
			at = r.IntN(min(len(c.data), 40))
		}
		number := wasmbin.AppendU32(nil, numbers[r.IntN(len(numbers))])
		switch r.IntN(8) {
		case 0: // the count at the start
			old := (&wasmbin.Section{Data: c.data}).Reader()
			if _, err := old.U32("count"); err == nil {
				c.data = slices.Concat(number, c.data[old.Pos():])
			}
		case 1: // a number instead of a byte
			c.data = slices.Concat(c.data[:at], number, c.data[at+1:])
		case 2: // a number instead of as many bytes
			copy(c.data[at:], number)
		case 3, 4:
			c.data[at] ^= 1 << r.IntN(8)
		case 5:
			c.data = c.data[:at]
		case 6:
			c.data = slices.Concat(c.data[:at], c.data[at/2:])
		case 7:
			all = slices.Delete(all, i, i+1)
		}
		if len(all) == 0 {
			break
		}
	}
	out := bytes.Clone(wasm[:8])
	for _, c := range all {
		out = append(wasmbin.AppendU32(append(out, byte(c.id)), uint32(len(c.data))), c.data...)
	}
	if r.IntN(20) == 0 {
		out = out[:r.IntN(len(out))]
	}
	return out
}

// The names of functions and locals are in a custom section that is not validated. Without the meter, a module's names
// must not reach the engine.
func TestAnnouncedNamesReachNoEngine(t *testing.T) {
	m := openMachine(t)
	names := func(subsection ...byte) []byte {
		wasm, err := wasmbin.SetCustom(firstParty(t, "conditions/no_memory/*.wasm")[0], "name", subsection)
		require.NoError(t, err)
		return wasm
	}
	for what, wasm := range map[string][]byte{
		"functions": names(1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"locals":    names(2, 5, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"a size":    names(1, 0xff, 0xff, 0xff, 0xff, 0x0f),
	} {
		t.Run(what, func(t *testing.T) {
			assert.True(t, load(t, m, wasm))
			assert.True(t, load(t, m, withTypedReference(t, wasm)))
		})
	}
}

// withTypedReference adds an element segment of a type that WebAssembly 2.0 does not have: the meter rejects the
// module, but wazero accepts it.
func withTypedReference(t testing.TB, wasm []byte) []byte {
	t.Helper()
	sections, err := wasmbin.Sections(wasm)
	require.NoError(t, err)
	out := bytes.Clone(wasm[:8])
	for i := range sections {
		s := &sections[i]
		if s.ID != wasmbin.SectionElement {
			out = append(out, s.Raw...)
			continue
		}
		r := s.Reader()
		n, err := r.U32("segments")
		require.NoError(t, err)
		content := append(wasmbin.AppendU32(nil, n+1), s.Data[r.Pos():]...)
		content = append(content, 5, 0x63, 0x70, 0) // passive, (ref null func), empty
		out = append(wasmbin.AppendU32(append(out, byte(s.ID)), uint32(len(content))), content...)
	}
	return out
}

func FuzzLoader(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		f.Add(seed, uint32(r.Uint64()), r.Uint32N(1000), byte(seed))
	}
	small := firstParty(f, "conditions/no_memory/*.wasm")[0]
	f.Fuzz(func(t *testing.T, seed uint64, number, at uint32, section byte) {
		m := openMachine(t)
		r := rand.New(rand.NewPCG(seed, 2))
		sections, err := wasmbin.Sections(small)
		require.NoError(t, err)
		s := sections[int(section)%len(sections)]
		place := s.Offset + int(at)%len(s.Raw)
		wasm := slices.Concat(small[:place], wasmbin.AppendU32(nil, number), small[min(place+1+r.IntN(5), len(small)):])
		load(t, m, wasm)
	})
}
