package host_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/logs"
)

// Modules that try to use more resources than allowed.

// growsItsTable grows its table by a million entries at a time until that fails: loop (ref.null func) (i32.const
// 1000000) table.grow 0, (i32.const -1) i32.ne, br_if 0 end.
func growsItsTable() *craftedModule {
	m := goodModule()
	m.table = []byte{0, 1}
	m.code = map[string][]byte{abi.InitExport: {0x03, 0x40, 0xd0, 0x70, 0x41, 0xc0, 0x84, 0x3d, 0xfc, 0x0f, 0,
		0x41, 0x7f, 0x47, 0x0d, 0, 0x0b}}
	return m
}

func TestHostileModuleThatGrowsItsTableForever(t *testing.T) {
	for name, wasm := range map[string][]byte{"metered": growsItsTable().bytes(t),
		"not metered": withTypedElements(t)} {
		t.Run(name, func(t *testing.T) {
			h := host.Open(t, host.Options{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := h.Open(t.Context(), host.ProviderConfig{Name: "hand", Module: wasm, Source: "test"})
			runtime.ReadMemStats(&after)
			host.RequireCode(t, err, abi.CodeInternal, "unreachable")
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(160<<20), "bytes allocated")
		})
	}
}

// withTypedElements is growsItsTable in a form that the meter does not support.
func withTypedElements(t *testing.T) []byte {
	sections, err := wasmbin.Sections(growsItsTable().bytes(t))
	require.NoError(t, err)
	out := []byte("\x00asm\x01\x00\x00\x00")
	for i := range sections {
		if sections[i].ID == wasmbin.SectionCode {
			out = append(out, section(byte(wasmbin.SectionElement))...)
		}
		out = append(out, sections[i].Raw...)
	}
	return beyondTheMeter(t, out)
}

func TestHostileModuleThatDeclaresALargeTable(t *testing.T) {
	m := goodModule()
	for what, c := range map[string]struct {
		limits []byte
		says   string
	}{
		"at its start": {append([]byte{0}, uleb(134_000_000)...),
			"demands 1022 MiB of memory and tables at its start, the limit is 128 MiB"},
		"shared": {[]byte{3, 0, 1}, "shared"},
	} {
		t.Run(what, func(t *testing.T) {
			m.table = c.limits
			_, err := host.Inspect(m.bytes(t), host.Limits{})
			host.RequireCode(t, err, abi.CodeInvalidArgument, c.says)
		})
	}
}

// Without the limit each of them takes minutes to compile, and cannot be interrupted.
func TestHostileModuleThatNeverFinishesCompiling(t *testing.T) {
	many := func(code string) []byte { return bytes.Repeat([]byte(code), 40_000) }
	for what, code := range map[string][]byte{
		"loops":       many("\x03\x40\x0b"),
		"conditions":  many("\x41\x00\x04\x40\x0b"),
		"a deep nest": append(many("\x02\x40"), many("\x0b")...),
		"a br_table":  slices.Concat([]byte{0x02, 0x40, 0x41, 0, 0x0e}, uleb(39_999), many("\x00"), []byte{0x0b}),
		"calls":       bytes.Repeat(many("\x10\x00"), 20),
	} {
		t.Run(what, func(t *testing.T) {
			m := goodModule()
			m.code = map[string][]byte{abi.InitExport: code}
			_, err := host.Open(t, host.Options{}).Load(t.Context(), m.bytes(t))
			host.RequireCode(t, err, abi.CodeInvalidArgument, "too long to compile", "split that function")
		})
	}
}

// An engine allocates memory for as many items as a module announces, and the Go runtime ends the process if there is
// not enough memory.
func TestHostileModuleThatAnnouncesMoreThanItHas(t *testing.T) {
	h := host.Open(t, host.Options{})
	for _, id := range []wasmbin.SectionID{wasmbin.SectionElement, wasmbin.SectionCode, wasmbin.SectionData} {
		t.Run(id.String(), func(t *testing.T) {
			sections, err := wasmbin.Sections(goodModule().bytes(t))
			require.NoError(t, err)
			announces := append([]byte{byte(id), 5}, uleb(0xffffffff)...)
			out := []byte("\x00asm\x01\x00\x00\x00")
			for i := range sections {
				code := sections[i].ID == wasmbin.SectionCode
				if code && id == wasmbin.SectionElement {
					out = append(out, announces...)
				}
				if !code || id != wasmbin.SectionCode {
					out = append(out, sections[i].Raw...)
				}
				if code && id != wasmbin.SectionElement {
					out = append(out, announces...)
				}
			}
			_, err = h.Load(t.Context(), out)
			host.RequireCode(t, err, abi.CodeInvalidArgument, "4294967295", "announced, but only 0 bytes follow")
		})
	}
}

// Names are compared with each other.
func TestHostileModuleWithALargeManifest(t *testing.T) {
	var list strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&list, `{"name":"p%d","kind":"control"},`, i)
	}
	began := time.Now()
	_, err := host.Inspect(goodModule().replaceText(`"providers":[`, `"providers":[`+list.String()).bytes(t), host.Limits{})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "has a manifest of", "the limit is 524288")
	assert.Less(t, time.Since(began), 5*time.Second)
}

// A compiler reloads each of them in every function and after every call: 65,535 took 6 GB.
func TestHostileModuleWithManyGlobals(t *testing.T) {
	m := goodModule()
	m.globals = 100
	_, err := host.Open(t, host.Options{}).Load(t.Context(), m.bytes(t))
	require.NoError(t, err)
	m.globals = 65_535
	_, err = host.Open(t, host.Options{}).Load(t.Context(), m.bytes(t))
	host.RequireCode(t, err, abi.CodeInvalidArgument, "too long to compile", "65535 globals", "fewer globals")
}

func TestHostileModuleThatForgesLogLines(t *testing.T) {
	var out logs.Buffer
	logger := hclog.New(&hclog.LoggerOptions{Output: &out})
	s := host.OpenSlot(t, host.Open(t, host.Options{Logger: logger}), host.ProbeConfig(`{}`))
	before := strings.Count(out.String(), "\n")
	host.RunCommands(t, s, "1", "log fine\n2026-11-22T00:00:00Z [ERROR] host: forged\r\x1b[2J\u009b\u2028x")
	assert.Contains(t, out.String(), `fine\n2026-11-22T00:00:00Z [ERROR] host: forged\r\x1b[2J\u009b\u2028x`)
	assert.Equal(t, before+1, strings.Count(out.String(), "\n"), out.String())
	assert.NotContains(t, out.String(), "\x1b")
}
