package main

import (
	"context"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/tetratelabs/wazero"
)

// extismEchoes run the same echo, built with Extism's PDK: behind the host, as an operation of the contract, and with
// go-sdk alone.
func extismEchoes(ctx context.Context, e *env, row string, body []byte) ([]contestant, error) {
	wasm := testguest.EchoExtism()
	ours, err := e.echoed(ctx, host.Options{}, wasm, body)
	if err != nil {
		return nil, err
	}
	list := []contestant{by(row, byExtismModule, repeat(ours))}
	for who, interrupted := range map[string]bool{byExtism: true, byExtismBare: false} {
		plugin, err := extism.NewPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}},
			extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(interrupted)},
			nil)
		if err != nil {
			return nil, err
		}
		e.later(func() error { return plugin.Close(context.WithoutCancel(ctx)) })
		list = append(list, by(row, who, repeat(func() error {
			_, out, err := plugin.CallWithContext(ctx, abi.OpNativeQuery, body)
			if err == nil && len(out) < len(body) { // it is wrapped
				err = fmt.Errorf("the echo has %d bytes, want at least %d", len(out), len(body))
			}
			return err
		})))
	}
	return list, nil
}

// extismStart starts the echo with go-sdk, from a compiled module.
func extismStart(ctx context.Context, e *env, row string) (contestant, error) {
	compiled, err := extism.NewCompiledPlugin(ctx,
		extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: testguest.EchoExtism()}}},
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
