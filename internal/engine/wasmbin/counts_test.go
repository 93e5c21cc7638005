package wasmbin

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// field is a part of a section: a count with a name, or other bytes without one.
type field struct {
	count string
	bytes []byte
}

func count(name string, n byte) field { return field{name, []byte{n}} }

func plain(b ...byte) field { return field{"", b} }

// announcing has one of every vector in the binary format, each of them short, so that each count can be replaced.
var announcing = []struct {
	id     SectionID
	fields []field
}{
	{SectionType, []field{count("types", 2), plain(0x60), count("parameters", 1), plain(0x7f), count("results", 1),
		plain(0x7f, 0x60, 0, 0)}},
	{SectionImport, []field{count("imports", 1), count("length of a module's name", 1), plain('a'),
		count("length of an import's name", 1), plain('b', 0, 1)}},
	{SectionFunction, []field{count("functions", 1), plain(0)}},
	{SectionTable, []field{count("tables", 1), plain(0x70, 0, 2)}},
	{SectionMemory, []field{count("memories", 1), plain(0, 1)}},
	{SectionGlobal, []field{count("globals", 1), plain(0x7f, 0, 0x41, 0, 0x0b)}},
	{SectionExport, []field{count("exports", 1), count("length of an export's name", 1), plain('f', 0, 1)}},
	{SectionElement, []field{count("element segments", 2), plain(0, 0x41, 0, 0x0b), count("functions in a segment", 1),
		plain(0, 5, 0x70), count("expressions in a segment", 1), plain(0xd2, 0, 0x0b)}},
	{SectionDataCount, []field{count("data count", 1)}},
	// block i32.const 0 br_table 0 0 end i32.const 0 end
	{SectionCode, []field{count("bodies", 1), count("size of a body", 15), count("groups of locals", 1),
		count("locals", 2), plain(0x7f, 0x02, 0x40, 0x41, 0, 0x0e), count("labels", 1), plain(0, 0, 0x0b, 0x41, 0, 0x0b)}},
	{SectionData, []field{count("data segments", 1), plain(0, 0x41, 0, 0x0b), count("size of a data segment", 2),
		plain('h', 'i')}},
}

// announce builds the module with one count replaced.
func announce(name string, n uint32) []byte {
	var sections [][]byte
	for _, s := range announcing {
		var content []byte
		for _, f := range s.fields {
			if f.count != "" && f.count == name {
				content = AppendU32(content, n)
				continue
			}
			content = append(content, f.bytes...)
		}
		sections = append(sections, section(s.id, content...))
	}
	return module(sections...)
}

func TestNoCountAnnouncesMoreThanThereIs(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() { require.NoError(t, r.Close(ctx)) }()
	valid := announce("", 0)
	_, err := r.CompileModule(ctx, valid)
	require.NoError(t, err)
	require.NoError(t, Compilable(valid))
	for _, s := range announcing {
		for _, f := range s.fields {
			for _, n := range []uint32{0xffffffff, 0x7fffffff, 1 << 24, 1 << 16, 100} {
				if f.count == "" {
					continue
				}
				t.Run(fmt.Sprintf("%s %d", f.count, n), func(t *testing.T) {
					require.Error(t, Compilable(announce(f.count, n)))
				})
			}
		}
	}
}

func TestItemsLocalsAndSignaturesAreBounded(t *testing.T) {
	types := section(SectionType, 1, 0x60, 0, 0)
	many := func(n int, item ...byte) []byte { return append(AppendU32(nil, uint32(n)), bytes.Repeat(item, n)...) }
	function := section(SectionFunction, 1, 0)
	body := func(b []byte) []byte {
		return section(SectionCode, cat([]byte{1}, AppendU32(nil, uint32(len(b))), b)...)
	}
	for _, c := range []struct {
		says string
		wasm []byte
	}{
		{"1000001 types: with them the module has 1000001 items in all vectors, want at most 1000000",
			module(section(SectionType, many(1_000_001, 0x60, 0, 0)...))},
		{"600000 elements: with them the module has 1200002 items", module(section(SectionElement, cat([]byte{2},
			cat([]byte{1, 0}, many(600_000, 0)), cat([]byte{1, 0}, many(600_000, 0)))...))},
		{"1001 parameters of one function, want at most 1000",
			module(section(SectionType, cat([]byte{1, 0x60}, many(1001, 0x7f), []byte{0})...))},
		{"1001 results of one function, want at most 1000",
			module(section(SectionType, cat([]byte{1, 0x60, 0}, many(1001, 0x7f))...))},
		{"50001 locals in one function, want at most 50000",
			module(types, function, body(cat([]byte{1}, AppendU32(nil, 50_001), []byte{0x7f}, bytes.Repeat([]byte{1}, 60_000), []byte{0x0b})))},
		{"9 locals announced so far, but the section has only 8 bytes",
			module(types, function, body([]byte{1, 9, 0x7f, 1, 1, 1, 0x0b}))},
	} {
		t.Run(c.says, func(t *testing.T) {
			_, err := Parse(c.wasm)
			require.ErrorContains(t, err, c.says)
		})
	}
	t.Run("8 locals in as many bytes", func(t *testing.T) {
		_, err := Parse(module(types, function, body([]byte{1, 8, 0x7f, 1, 1, 1, 0x0b})))
		require.NoError(t, err)
	})
}

// A typed reference is a feature that the meter does not support but an engine may: Parse skips it and keeps checking
// counts.
func TestCountsBehindTypedReferencesAreRead(t *testing.T) {
	typed := func(elements byte) []byte {
		return module(section(SectionType, 1, 0x60, 0, 0),
			section(SectionGlobal, 1, refNull, 0x70, 0, byte(OpRefNull), 0, 0x0b),
			section(SectionElement, 1, 5, refNonNull, 0x70, elements, byte(OpRefNull), 0x80, 0x7f, 0x0b))
	}
	_, err := Parse(typed(1))
	require.NoError(t, err)
	_, err = Parse(typed(100))
	require.ErrorContains(t, err, "100 elements announced, but only 4 bytes follow")
}

func TestSignaturesCountAsWork(t *testing.T) {
	long := append(AppendU32(nil, 1000), bytes.Repeat([]byte{0x7f}, 1000)...)
	compiles := func(signature, code []byte, times int) error {
		body := slices.Concat([]byte{0}, bytes.Repeat(code, times), []byte{0, 0x0b})
		return Compilable(module(section(SectionType, cat([]byte{1, 0x60}, signature)...), section(SectionFunction, 1, 0),
			section(SectionCode, cat([]byte{1}, AppendU32(nil, uint32(len(body))), body)...)))
	}
	results := append([]byte{0}, long...)
	both := slices.Concat(long, long)
	for _, c := range []struct {
		name            string
		signature, code []byte
	}{
		{"calls", results, []byte{0x02, 0x40, 0x10, 0, 0x0c, 0, 0x0b}}, // block call 0 br 0 end: 1,000 took 257 MB
		{"loops", both, []byte{0x03, 0, 0x0b}},
		{"branches", results, []byte{0x02, 0, 0x0d, 0, 0x0b}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, compiles(c.signature, c.code, 10))
			require.ErrorIs(t, compiles(c.signature, c.code, 1000), ErrTooMuch)
		})
	}
	require.NoError(t, compiles([]byte{0, 1, 0x7f}, []byte{0x10, 0, 0x1a}, 10_000), "ordinary calls count nothing")
}
