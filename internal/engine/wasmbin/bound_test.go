package wasmbin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// tableModule has one page of memory, tables with the given limits, and a function "grow" (i32) -> i32, which grows
// table 0 if grows is set, and otherwise returns its argument.
func tableModule(grows bool, tables ...[]byte) []byte {
	body := []byte{0, 0x20, 0, 0x0b}
	if grows {
		body = []byte{0, 0xd0, 0x70, 0x20, 0, 0xfc, 0x0f, 0, 0x0b}
	}
	section := func(id byte, content ...byte) []byte {
		return append([]byte{id, byte(len(content))}, content...)
	}
	content := []byte{byte(len(tables))}
	for _, t := range tables {
		content = append(append(content, 0x70), t...)
	}
	out := append([]byte(nil), coreHeader...)
	out = append(out, section(1, 1, 0x60, 1, 0x7f, 1, 0x7f)...)
	out = append(out, section(3, 1, 0)...)
	out = append(out, section(4, content...)...)
	out = append(out, section(5, 1, 0, 1)...)
	out = append(out, section(7, 1, 4, 'g', 'r', 'o', 'w', 0, 0)...)
	return append(out, section(10, append([]byte{1, byte(len(body))}, body...)...)...)
}

func TestTablesAndMemoryTogetherStayWithinTheLimit(t *testing.T) {
	const limit = 128 << 20
	for _, c := range []struct {
		name   string
		wasm   []byte
		tables []Limits
		memory Limits
	}{
		{"a table of a fixed size", tableModule(true, []byte{1, 5, 5}), []Limits{{Min: 5, HasMax: true, Max: 5}},
			Limits{Min: 1}},
		{"without an instruction that grows it", tableModule(false, []byte{0, 5}),
			[]Limits{{Min: 5, HasMax: true, Max: 5}}, Limits{Min: 1}},
		{"one that can grow", tableModule(true, []byte{0, 5}), []Limits{{Min: 5, HasMax: true, Max: 5 + 2<<20}},
			Limits{Min: 1, HasMax: true, Max: 1791}},
		{"one with a small maximum", tableModule(true, []byte{1, 5, 100}), []Limits{{Min: 5, HasMax: true, Max: 100}},
			Limits{Min: 1}},
		{"one with a large maximum", tableModule(true, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}),
			[]Limits{{HasMax: true, Max: 2 << 20}}, Limits{Min: 1, HasMax: true, Max: 1792}},
		{"two share", tableModule(true, []byte{0, 0}, []byte{0, 1}),
			[]Limits{{HasMax: true, Max: 1 << 20}, {Min: 1, HasMax: true, Max: 1 + 1<<20}},
			Limits{Min: 1, HasMax: true, Max: 1791}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bounded, err := Bound(c.wasm, limit)
			require.NoError(t, err)
			m, err := Parse(bounded)
			require.NoError(t, err)
			require.Equal(t, c.tables, m.Tables)
			require.Equal(t, []Limits{c.memory}, m.Memories)
			again, err := Bound(bounded, limit)
			require.NoError(t, err)
			require.Equal(t, bounded, again)
			held := int64(m.Memories[0].Max) * PageBytes
			for _, l := range m.Tables {
				held += int64(l.Max) * EntryBytes
			}
			require.LessOrEqual(t, held, int64(limit))
		})
	}
	_, err := Bound(tableModule(true, []byte{0, 0x80, 0x80, 0x80, 0x40}), limit)
	require.ErrorContains(t, err, "memory and tables of 1073807360 bytes at the start, want at most 134217728")
}

func TestAnEngineKeepsToTheMaximumOfATable(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	bounded, err := Bound(tableModule(true, []byte{0, 5}), 1<<20)
	require.NoError(t, err)
	m, err := r.Instantiate(t.Context(), bounded)
	require.NoError(t, err)
	grow := m.ExportedFunction("grow")
	for _, c := range []struct{ by, want uint64 }{{1 << 20, 0xffffffff}, {16384, 5}, {1, 0xffffffff}} {
		got, err := grow.Call(t.Context(), c.by)
		require.NoError(t, err)
		require.Equal(t, c.want, got[0], "by %d", c.by)
	}
}

func TestAModuleHasAtMostAHundredTables(t *testing.T) {
	many := make([][]byte, 101)
	for i := range many {
		many[i] = []byte{0, 0}
	}
	content := []byte{101}
	for range many {
		content = append(content, 0x70, 0, 0)
	}
	wasm := append(append([]byte(nil), coreHeader...), 4)
	wasm = append(AppendU32(wasm, uint32(len(content))), content...)
	_, err := Parse(wasm)
	require.ErrorContains(t, err, "101 tables, want at most 100")
}
