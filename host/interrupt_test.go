package host_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beyondTheMeter is a module that wazero accepts but the meter does not support: it has an element segment of a type
// that is not in WebAssembly 2.0.
func beyondTheMeter(t testing.TB, module []byte) []byte {
	t.Helper()
	sections, err := wasmbin.Sections(module)
	require.NoError(t, err)
	out := []byte("\x00asm\x01\x00\x00\x00")
	for i := range sections {
		s := &sections[i]
		if s.ID != wasmbin.SectionElement {
			out = append(out, s.Raw...)
			continue
		}
		r := s.Reader()
		n, err := r.U32("segments")
		require.NoError(t, err)
		content := append(uleb(int(n)+1), s.Data[r.Pos():]...)
		content = append(content, 5, 0x64, 0x70, 0)
		out = append(append(append(out, byte(s.ID)), uleb(len(content))...), content...)
	}
	return out
}

func TestGuestsAreMetered(t *testing.T) {
	m, err := host.ProbeSlot(t, `{}`).Manifest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "wazero, metered", m.Engine)
	assert.Empty(t, m.Health.Warnings)
	module, err := host.Inspect(host.ProbeModule, host.Limits{})
	require.NoError(t, err)
	engine, warnings := host.EngineOf(module, host.ProbeModule)
	assert.Equal(t, m.Engine, engine)
	assert.Empty(t, warnings)
	assert.Equal(t, m.Module.SHA256, module.SHA256, "the hash is of the module as it was given")
}

func TestModuleThatCannotBeMeteredFallsBackAndSaysSo(t *testing.T) {
	wasm := beyondTheMeter(t, host.ProbeModule)
	h := host.Impatient(host.Open(t, host.Options{}))
	s := host.OpenSlot(t, h, host.ProviderConfig{Name: "probe", Module: wasm, Source: "builtin", Block: abi.Raw(`{}`)})
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "wazero, context check", m.Engine)
	require.Len(t, m.Health.Warnings, 1)
	assert.Contains(t, m.Health.Warnings[0], "not_metered: ")
	module, err := host.Inspect(wasm, host.Limits{})
	require.NoError(t, err)
	engine, warnings := host.EngineOf(module, wasm)
	assert.Equal(t, m.Engine, engine)
	assert.Equal(t, m.Health.Warnings, warnings)

	_, err = s.Retrieve(context.Background(), host.Ask("spin"))
	e := host.RequireCode(t, err, abi.CodeTimeout, "stopped in")
	assert.Contains(t, e.Hint, "it loops, or its deadline is too short")
	host.RequireUsable(t, s, "after the spin")
	_, err = s.Swap(context.Background(), host.ProbeConfig(`{}`))
	require.NoError(t, err, "both ways live side by side")
	host.RequireUsable(t, s, "after the swap")
}

func TestStartThatDoesNotReturnIsStopped(t *testing.T) {
	loop := []byte{0x03, 0x40, 0x0c, 0, 0x0b}
	initialize := goodModule()
	initialize.code = map[string][]byte{abi.InitExport: loop}
	start := goodModule()
	start.code, start.start = map[string][]byte{abi.InitExport: {}, abi.Marker: loop}, abi.Marker
	for name, module := range map[string]*craftedModule{"_initialize": initialize, "the start function": start} {
		t.Run(name, func(t *testing.T) {
			h := host.Open(t, host.Options{Limits: host.Limits{StartDeadline: 50 * time.Millisecond}})
			_, err := h.Open(context.Background(), host.ProviderConfig{Name: "hand", Module: module.bytes(t)})
			host.RequireCode(t, err, abi.CodeTimeout, "stopped in")
		})
	}
}

// TestSpinningGuestsLeaveOneProcessorToOthers: Go's scheduler and garbage collector need one processor all the time. If
// the guests kept it, neither could run before the guests return.
func TestSpinningGuestsLeaveOneProcessorToOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := host.ProbeSlot(t, `{}`)
	ctx, stop := context.WithCancel(context.Background())
	var spinning sync.WaitGroup
	for range 3 {
		spinning.Go(func() {
			_, err := s.Retrieve(ctx, host.Ask("spin"))
			assert.Equal(t, abi.CodeTimeout, abi.CodeOf(err))
		})
	}
	for range 5 {
		runtime.GC()
		assert.Equal(t, []string{"fine"}, host.Retrieved(t, s, "echo fine"))
	}
	stop()
	spinning.Wait()
	host.RequireUsable(t, s, "after all")
}
