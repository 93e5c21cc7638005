package host

import (
	"context"
	"fmt"
	"strings"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/testguest"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// plainExtism calls the echo with go-sdk and nothing else. interrupted lets wazero's own check stop it, as go-sdk's time-out does.
func plainExtism(b *testing.B, payload []byte, interrupted bool) {
	plugin, err := extism.NewPlugin(b.Context(), extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: testguest.EchoExtism()}}},
		extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(interrupted)}, nil)
	require.NoError(b, err)
	defer func() { _ = plugin.Close(context.Background()) }()
	b.ReportAllocs()
	for b.Loop() {
		_, out, err := plugin.CallWithContext(b.Context(), abi.OpNativeQuery, payload)
		if err != nil || len(out) != len(payload) {
			b.Fatal(len(out), err)
		}
	}
}

// BenchmarkExtismEcho is the echo of BenchmarkEcho behind Extism: by the host, which gives it the whole envelope and stops it at its deadline, and by go-sdk alone.
func BenchmarkExtismEcho(b *testing.B) {
	require.NotNil(b, testguest.EchoExtism(), "internal/testguest/echo_extism has not been built: make plugins")
	config := ProviderConfig{Name: "echo", Module: testguest.EchoExtism(), Source: "builtin"}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"50B", 50}, {"25KB", 25 << 10}} {
		body := abi.Raw(fmt.Sprintf("%q", strings.Repeat("x", size.bytes)))
		run := func(h *Host) func(b *testing.B) {
			return func(b *testing.B) {
				p := openSlot(b, h, config).current.Load().provider
				b.ReportAllocs()
				for b.Loop() {
					c := &call{op: abi.OpNativeQuery}
					if err := p.enter(context.Background(), c, &abi.Envelope{Op: c.op, Body: body}, new(abi.Empty)); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(size.name+"/by=host", func(b *testing.B) { run(open(b, Options{}))(b) })
		b.Run(size.name+"/by=host,context-check", func(b *testing.B) { run(openWith(b, contextCheck{}))(b) })
		b.Run(size.name+"/by=go-sdk", func(b *testing.B) { plainExtism(b, body, false) })
		b.Run(size.name+"/by=go-sdk,context-check", func(b *testing.B) { plainExtism(b, body, true) })
	}
}
