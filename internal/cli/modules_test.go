package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
)

// Every built-in module can be loaded under its own name, and no two serve the same provider.
func TestBuiltinModules(t *testing.T) {
	modules := BuiltinModules()
	require.NotEmpty(t, modules)
	servedBy := map[string]string{}
	for _, m := range modules {
		info, err := host.Inspect(m.Wasm, host.Limits{})
		require.NoError(t, err, m.Name)
		require.Equal(t, m.Name, info.Manifest.Name)
		for _, p := range info.Manifest.Providers {
			require.Empty(t, servedBy[p.Name], "%s is served by %s and %s", p.Name, servedBy[p.Name], m.Name)
			servedBy[p.Name] = m.Name
		}
	}
	require.NotEmpty(t, servedBy[config.DefaultProvider], "the default needs no module file")
}
