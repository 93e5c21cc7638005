package plugins

import (
	"os"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/declared"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each backend's page lists its native queries and mutations as its manifest does.
func TestPagesListNativeQueriesAndMutations(t *testing.T) {
	for folder, file := range map[string]string{
		"mem0": "../docs/backends/mem0.md", "memos": "../docs/backends/memos.md", "honcho": "../docs/backends/honcho.md",
		"graphiti": "../docs/backends/graphiti.md",
	} {
		text, err := os.ReadFile(folder + "/manifest.json")
		require.NoError(t, err)
		var m abi.ModuleManifest
		require.NoError(t, abi.Unmarshal(text, &m))
		require.Nil(t, m.Validate())
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		for kind, list := range map[string][]abi.NativeDecl{"query": m.NativeQueries, "mutation": m.NativeMutations} {
			for _, n := range list {
				params := "none"
				if list := declared.ParamList(&n); list != "" {
					params = "`" + list + "`"
				}
				line := "| " + kind + " | `" + n.Name + "` | " + params + " | " + n.About
				assert.True(t, strings.Contains(string(page), line), "%s lacks %s", file, line)
			}
		}
	}
}
