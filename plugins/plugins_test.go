package plugins_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/authoring/toolchain"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuiltModulesBelongToTheirSources(t *testing.T) {
	require.NoError(t, toolchain.CheckLock(".."))
}

func TestEachModuleIsWhatItsFolderSays(t *testing.T) {
	modules := plugins.Builtin()
	require.NotEmpty(t, modules)
	for _, m := range modules {
		t.Run(m.Name, func(t *testing.T) {
			assert.LessOrEqual(t, len(m.Wasm), toolchain.SizeLimit)
			inspected, err := host.Inspect(m.Wasm, host.Limits{})
			require.NoError(t, err)
			assert.Equal(t, m.Name, inspected.Manifest.Name)
			text, err := os.ReadFile(filepath.Join(filepath.Dir(m.Path), "manifest.json"))
			require.NoError(t, err)
			var compact bytes.Buffer
			require.NoError(t, json.Compact(&compact, text))
			attached, found, err := wasmbin.Custom(m.Wasm, abi.ManifestSection)
			require.NoError(t, err)
			require.True(t, found)
			assert.Equal(t, compact.String(), string(attached),
				"the manifest beside the sources is the one that is attached")
		})
	}
}
