package meter

import (
	"bytes"
	"context"
	"testing"

	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func TestCallOfAQuickImportIsChargedAndDoesNotLookAtTheClock(t *testing.T) {
	const calls = 100
	module := (&assembly{imports: []string{"quick", "slow"}, funcs: []assembledFunction{
		{kind: 0, name: "quickly", code: bytes.Repeat([]byte{byte(wasmbin.OpCall), 0}, calls)},
		{kind: 0, name: "slowly", code: bytes.Repeat([]byte{byte(wasmbin.OpCall), 1}, calls)},
	}}).bytes()
	rewritten, err := RewriteWith(module, func(module, name string) bool { return module == "env" && name == "quick" })
	require.NoError(t, err)
	looks := func(function string, units int64) int {
		ctx := context.Background()
		e := newEngine(t, wazero.NewRuntimeConfig())
		e.more = func() int64 { return units }
		_, err := e.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func() {}).Export(
			"quick").NewFunctionBuilder().WithFunc(func() {}).Export("slow").Instantiate(ctx)
		require.NoError(t, err)
		m, err := e.Instantiate(ctx, rewritten)
		require.NoError(t, err)
		_, err = m.ExportedFunction(function).Call(ctx)
		require.NoError(t, err)
		return e.looks
	}
	assert.Equal(t, 1, looks("quickly", 1<<20))
	assert.Greater(t, looks("slowly", 1<<20), calls/8)
	assert.Greater(t, looks("quickly", 1000), calls*importUnits/1000, "it is charged")
}
