package newplugin_test

import (
	"encoding/json"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/authoring/newplugin"
)

func TestEveryLanguageGivesAWholeFolder(t *testing.T) {
	for _, language := range newplugin.Languages() {
		for _, name := range []string{"my_memory", "x", "a1_b2"} {
			t.Run(language+" "+name, func(t *testing.T) {
				files, err := newplugin.Render(newplugin.Options{Name: name, Language: language, Version: "v1.2.3"})
				require.NoError(t, err)
				texts := map[string]string{}
				for _, f := range files {
					texts[f.Name] = string(f.Text)
					assert.NotContains(t, f.Name, ".tmpl")
					assert.NotContains(t, string(f.Text), "«", f.Name)
					assert.True(t, strings.HasSuffix(string(f.Text), "\n") &&
						!strings.HasSuffix(string(f.Text), "\n\n"), "%s ends with one line end", f.Name)
					if strings.HasSuffix(f.Name, ".json") {
						assert.True(t, json.Valid(f.Text), f.Name)
					}
					if strings.HasSuffix(f.Name, ".go") {
						formatted, err := format.Source(f.Text)
						require.NoError(t, err, f.Name)
						assert.Equal(t, string(formatted), string(f.Text), "%s is formatted", f.Name)
					}
				}
				for _, name := range []string{"README.md", ".gitignore", "manifest.json", "memhost.yaml",
					".github/workflows/plugin.yml"} {
					assert.Contains(t, texts, name)
				}
				manifest, _, err := host.ParseManifest([]byte(texts["manifest.json"]))
				require.NoError(t, err)
				assert.Equal(t, name, manifest.Name)
				assert.Equal(t, name, manifest.Providers[0].Name)
				assert.Equal(t, map[string]string{newplugin.Go: abi.ABIMemhost, newplugin.GoExtism: abi.ABIExtism,
					newplugin.AssemblyScript: abi.ABIExtism, newplugin.C: abi.ABIMemhost}[language], manifest.ABI)
			})
		}
	}
}

func goMod(t *testing.T, o newplugin.Options) string {
	t.Helper()
	o.Name, o.Language = "mine", newplugin.Go
	files, err := newplugin.Render(o)
	require.NoError(t, err)
	for _, f := range files {
		if f.Name == "go.mod" {
			return string(f.Text)
		}
	}
	t.Fatal("no go.mod")
	return ""
}

func TestAGoModuleRequiresARelease(t *testing.T) {
	text := goMod(t, newplugin.Options{Version: "v1.2.3"})
	assert.Contains(t, text, "\nrequire github.com/memhost/memhost v1.2.3\n")
	assert.NotContains(t, text, "replace")
}

func TestOrIsBuiltWithACheckout(t *testing.T) {
	assert.Contains(t, goMod(t, newplugin.Options{Checkout: "/src/memhost"}),
		"\nreplace github.com/memhost/memhost => /src/memhost\n")
	assert.Contains(t, goMod(t, newplugin.Options{Checkout: "/my src/memhost"}),
		"\nreplace github.com/memhost/memhost => \"/my src/memhost\"\n")
}

func TestAGoModuleWantsTheGoThatMemhostWants(t *testing.T) {
	own, err := os.ReadFile(filepath.Join("..", "..", "..", "go.mod"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(own), "\ngo ")
	version, _, _ := strings.Cut(rest, "\n")
	assert.Contains(t, goMod(t, newplugin.Options{Version: "v1.2.3"}), "\ngo "+version+"\n")
}

// left lists the files in a folder, hidden ones too.
func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWhatIsWrongLeavesNothingBehind(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    newplugin.Options
		code abi.Code
		says string
	}{
		{"no name", newplugin.Options{Language: newplugin.Go}, abi.CodeInvalidArgument, "name: missing"},
		{"a capital", newplugin.Options{Name: "Mine", Language: newplugin.Go}, abi.CodeInvalidArgument,
			`name: "Mine" is no name`},
		{"a path", newplugin.Options{Name: "../mine", Language: newplugin.Go}, abi.CodeInvalidArgument, "is no name"},
		{"a dash", newplugin.Options{Name: "my-memory", Language: newplugin.Go}, abi.CodeInvalidArgument, "is no name"},
		{"65 letters", newplugin.Options{Name: strings.Repeat("a", 65), Language: newplugin.Go},
			abi.CodeInvalidArgument, "is no name"},
		{"an unknown language", newplugin.Options{Name: "mine", Language: "cobol"}, abi.CodeInvalidArgument,
			`lang: no plugin is written in "cobol"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := newplugin.Write(filepath.Join(dir, "mine"), tt.o)
			assert.Equal(t, tt.code, abi.CodeOf(err))
			assert.ErrorContains(t, err, tt.says)
			assert.Empty(t, left(t, dir))
		})
	}
	whole := newplugin.Options{Name: "mine", Language: newplugin.Go, Version: "v1.2.3"}
	t.Run("a folder that is there", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "mine"), 0o755))
		_, err := newplugin.Write(filepath.Join(dir, "mine"), whole)
		assert.Equal(t, abi.CodeConflict, abi.CodeOf(err))
		assert.Empty(t, left(t, filepath.Join(dir, "mine")))
		assert.Equal(t, []string{"mine"}, left(t, dir))
	})
	t.Run("a parent that is not there", func(t *testing.T) {
		dir := t.TempDir()
		_, err := newplugin.Write(filepath.Join(dir, "no", "mine"), whole)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		assert.Empty(t, left(t, dir))
	})
}

// AssemblyScript has no JSON library. The template's reader is one file, which the example contains too.
func TestTheExampleReadsJSONAsTheTemplateDoes(t *testing.T) {
	files, err := newplugin.Render(newplugin.Options{Name: "my_memory", Language: "assemblyscript", Version: "v1.2.3"})
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.FromSlash("../../../examples/plugins/notes_assemblyscript/assembly/json.ts"))
	require.NoError(t, err)
	for _, f := range files {
		if f.Name == "assembly/json.ts" {
			assert.Equal(t, string(f.Text), string(example))
			return
		}
	}
	assert.Fail(t, "no assembly/json.ts")
}
