package bench

import (
	"context"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/measure"
	"github.com/memhost/memhost/internal/testguest"
	"github.com/tetratelabs/wazero"
)

// extismEchoes are the same echo, built with Extism's PDK: behind the host, and by go-sdk alone. Where that guest was not built, or the host does not take it, they
// are missing.
func extismEchoes(ctx context.Context, e *env, row string, body []byte) ([]contestant, error) {
	wasm := testguest.EchoExtism()
	if wasm == nil {
		why := "internal/testguest/echo_extism has not been built"
		return []contestant{{cells: []cell{{row, byExtismModule}, {row, byExtism}, {row, byExtismBare}}, missing: why}}, nil
	}
	var list []contestant
	if p, err := e.inside(ctx, measure.Metered, host.Options{}, wasm); err != nil {
		list = append(list, contestant{cells: []cell{{row, byExtismModule}}, missing: "this host does not load it: " + err.Error()})
	} else {
		list = append(list, by(row, byExtismModule, repeat(func() error { return p.Enter(ctx, abi.OpNativeQuery, body) })))
	}
	for who, interrupted := range map[string]bool{byExtism: true, byExtismBare: false} {
		plugin, err := extism.NewPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}},
			extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(interrupted)}, nil)
		if err != nil {
			return nil, err
		}
		e.later(func() error { return plugin.Close(context.WithoutCancel(ctx)) })
		list = append(list, by(row, who, repeat(func() error {
			_, out, err := plugin.CallWithContext(ctx, abi.OpNativeQuery, body)
			if err == nil && len(out) != len(body) {
				err = fmt.Errorf("the echo has %d bytes, want %d", len(out), len(body))
			}
			return err
		})))
	}
	return list, nil
}

// extismStart starts the echo by go-sdk, from a module that is compiled.
func extismStart(ctx context.Context, e *env, row string) (contestant, error) {
	wasm := testguest.EchoExtism()
	if wasm == nil {
		return contestant{cells: []cell{{row, byExtism}}, missing: "internal/testguest/echo_extism has not been built"}, nil
	}
	compiled, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}},
		extism.PluginConfig{EnableWasi: true, RuntimeConfig: checked}, nil)
	if err != nil {
		return contestant{}, err
	}
	e.later(func() error { return compiled.Close(context.WithoutCancel(ctx)) })
	return by(row, byExtism, repeat(func() error {
		plugin, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
		if err != nil {
			return err
		}
		return plugin.Close(ctx)
	})), nil
}
