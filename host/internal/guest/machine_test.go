package guest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// TestOneModuleIsCompiledByManyAtOnce: a module that is in the cache on disk is whole for each of several that load it
// at the same time.
func TestOneModuleIsCompiledByManyAtOnce(t *testing.T) {
	wasm, err := os.ReadFile(filepath.Join("..", "..", "..", "plugins", "conditions", "no_memory", "no_memory.wasm"))
	require.NoError(t, err)
	limits, folder := Limits{ModuleBytes: 1 << 20, MemoryBytes: 64 << 20}, t.TempDir()
	for range 20 {
		m, err := NewMachine(t.Context(), folder, limits, hclog.NewNullLogger())
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				module, err := Inspect(wasm, limits, nil)
				if !assert.NoError(t, err) {
					return
				}
				program, err := m.Compile(t.Context(), module, wasm)
				if !assert.NoError(t, err) {
					return
				}
				p := program.(*mh1Program)
				// Without its start function, which would call the host.
				instance, err := p.runtime.InstantiateModule(t.Context(), p.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
				if assert.NoError(t, err) {
					assert.NotNil(t, instance.ExportedFunction(abi.BufferExport))
					assert.NoError(t, instance.Close(t.Context()))
				}
				assert.NoError(t, m.Release(t.Context(), program))
			})
		}
		all.Wait()
		require.NoError(t, m.Close(context.Background()))
	}
}
