package toolchain

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// extismTree is tree with two modules for Extism, one in Go and one in AssemblyScript.
func extismTree(t *testing.T) string {
	t.Helper()
	root := tree(t)
	for name, content := range map[string]string{
		"plugins/pdk/main.go": "package main\n\nimport _ \"github.com/memhost/memhost/sdk\"\n\nfunc " +
			"main() {}\n",
		"plugins/pdk/tagged.go":            "//go:build extism\n\npackage main\n",
		"plugins/pdk/manifest.json":        `{"name":"pdk","abi":"mh1-extism"}`,
		"plugins/script/manifest.json":     `{"name":"script","abi":"mh1-extism"}`,
		"plugins/script/package.json":      "{}",
		"plugins/script/package-lock.json": "{}",
		"plugins/script/asconfig.json":     "{}",
		"plugins/script/assembly/index.ts": "export function health(): i32 { return 0; }\n",
	} {
		write(t, root, name, content)
	}
	return root
}

func TestModulesForExtismAreFoundWithLanguageAndTags(t *testing.T) {
	root := extismTree(t)
	modules := modulesOf(t, root)
	require.Len(t, modules, 4)
	assert.Equal(t, Module{Name: "pdk", Dir: filepath.Join(root, "plugins", "pdk"), Language: Go,
		Tags: []string{"extism"}}, modules[2])
	assert.Equal(t, AssemblyScript, modules[3].Language)
}

func TestSourceHashFollowsWhatAModuleForExtismIsCompiledFrom(t *testing.T) {
	for _, c := range []struct {
		name, file string
		changes    []string
	}{
		{"file of the tag", "plugins/pdk/tagged.go", []string{"pdk"}},
		{"package of the repository", "sdk/sdk.go", []string{"mem0", "pdk"}},
		{"script", "plugins/script/assembly/index.ts", []string{"script"}},
		{"new script", "plugins/script/assembly/lib/more.ts", []string{"script"}},
		{"lock file of npm", "plugins/script/package-lock.json", []string{"script"}},
		{"options of the compiler", "plugins/script/asconfig.json", []string{"script"}},
		{"manifest", "plugins/script/manifest.json", []string{"script"}},
		{"for the editor", "plugins/script/tsconfig.json", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := extismTree(t)
			before, err := HashSources(t.Context(), root, modulesOf(t, root))
			require.NoError(t, err)
			old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
			}
			write(t, root, c.file, string(old)+"\n// changed\n")
			after, err := HashSources(t.Context(), root, modulesOf(t, root))
			require.NoError(t, err)
			var differ []string
			for _, m := range modulesOf(t, root) {
				if before[m.Name] != after[m.Name] {
					differ = append(differ, m.Name)
				}
			}
			assert.Equal(t, c.changes, differ)
		})
	}
}

func TestEachLanguageHasItsCompiler(t *testing.T) {
	root := extismTree(t)
	golang, script := &fakeCompiler{id: "go"}, &fakeCompiler{id: "script"}
	b := &Builder{Root: root, Compiler: golang, Script: script, Log: &bytes.Buffer{}}
	_, err := b.Build(t.Context(), modulesOf(t, root))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"mem0", "no_memory", "pdk"}, golang.names())
	assert.Equal(t, []string{"script"}, script.names())
	require.NoError(t, CheckLock(root))
	lock, err := ReadLock(root)
	require.NoError(t, err)
	e, ok := lock.Entry("script")
	require.True(t, ok)
	assert.Equal(t, "script", e.Toolchain)
}
