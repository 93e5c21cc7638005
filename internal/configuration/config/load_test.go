package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the results of this run into testdata")

func known() []config.Provider {
	var list []config.Provider
	for _, name := range []string{"honcho", "mem0", "graphiti", "memos", "recall"} {
		list = append(list, config.Provider{Name: name, Kind: abi.KindArchitecture})
	}
	for _, name := range []string{"simple_rag", "no_memory", "full_history", "static_profile", "rolling_summary", "layered_memory"} {
		list = append(list, config.Provider{Name: name, Kind: abi.KindControl})
	}
	return list
}

// module stands in for the host, which inspects modules: pack.wasm serves two providers, solo.wasm one, the built-in
// mem0 two.
func module(plugin string, file bool) ([]config.Provider, error) {
	switch name := filepath.Base(plugin); {
	case file && name == "pack.wasm":
		return []config.Provider{{Name: "acme", Kind: abi.KindArchitecture},
			{Name: "acme_flat", Kind: abi.KindControl}}, nil
	case file && name == "solo.wasm":
		return []config.Provider{{Name: "solo", Kind: abi.KindControl}}, nil
	case !file && name == "mem0":
		return []config.Provider{{Name: "mem0", Kind: abi.KindArchitecture},
			{Name: "simple_rag", Kind: abi.KindControl}}, nil
	}
	return nil, abi.NewError(abi.CodeNotFound, "there is no such module")
}

// Each file of testdata/load holds configurations: the section memhost.yaml or memhost.json, other files, env
// (NAME=VALUE lines), flags (a JSON object) and config (the value of --config). The section want has the loaded
// configuration without defaults, and the warnings. A section "case: title" begins the next case.
func TestLoadsAsTheGoldenFilesSay(t *testing.T) {
	files, err := filepath.Glob("testdata/load/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := &txtar.Archive{Comment: archive.Comment}
			var inputs []txtar.File
			title := ""
			flush := func() {
				if inputs != nil {
					got.Files = append(got.Files, inputs...)
					want := ""
					t.Run(title, func(t *testing.T) { want = load(t, inputs) })
					got.Files = append(got.Files, txtar.File{Name: "want", Data: []byte(want)})
				}
				inputs = nil
			}
			for _, s := range archive.Files {
				switch {
				case strings.HasPrefix(s.Name, "case: "):
					flush()
					title = strings.TrimPrefix(s.Name, "case: ")
					inputs = []txtar.File{s}
				case s.Name != "want":
					inputs = append(inputs, s)
				}
			}
			flush()
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
				return
			}
			assert.Equal(t, string(txtar.Format(archive)), string(txtar.Format(got)))
		})
	}
}

// load runs one case and returns its result as text.
func load(t *testing.T, inputs []txtar.File) string {
	dir := t.TempDir()
	whole := false
	o := config.Options{Dir: dir, Environ: []string{"XDG_DATA_HOME=/xdg", "PATH=/bin"}, Known: known(), Module: module}
	for _, s := range inputs {
		switch {
		case strings.HasPrefix(s.Name, "case: "):
			whole = strings.HasSuffix(s.Name, "(whole)")
		case s.Name == "env":
			o.Environ = append(o.Environ, strings.Split(strings.TrimSpace(string(s.Data)), "\n")...)
		case s.Name == "flags":
			require.NoError(t, json.Unmarshal(s.Data, &o.Flags))
		case s.Name == "config":
			o.File = strings.TrimSpace(string(s.Data))
		default:
			path := filepath.Join(dir, s.Name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, s.Data, 0o600))
		}
	}
	c, err := config.Load(o)
	if err != nil {
		var e *abi.Error
		require.True(t, errors.As(err, &e))
		assert.Equal(t, abi.CodeInvalidArgument, e.Code)
		assert.NotContains(t, e.Message, "hunter2", "a credential")
		return strings.ReplaceAll(e.Message, dir, "$DIR") + "\n"
	}
	out := string(c.YAML(true))
	assert.NotContains(t, out, "hunter2", "a credential")
	name, word, block := c.Block()
	shown := out
	if !whole {
		shown = withoutDefaults(out)
	}
	text := fmt.Sprintf("%s# %s %s %s\n", shown, word, name, block)
	if path, ok := c.PluginFile(); ok {
		text += "# plugin file " + path + "\n"
	}
	for _, warning := range c.Warnings() {
		text += "# warning " + warning + "\n"
	}
	// What is shown means the same, unless something had to be blanked, or looks like what Load replaces.
	if !strings.Contains(text, "***") && !strings.Contains(string(block), `{"file":`) {
		again := filepath.Join(dir, "again.yaml")
		require.NoError(t, os.WriteFile(again, c.YAML(false), 0o600))
		second, err := config.Load(config.Options{File: again, Dir: dir, Environ: []string{"XDG_DATA_HOME=/xdg"},
			Known: known(), Module: module})
		require.NoError(t, err)
		assert.Equal(t, string(c.YAML(false)), string(second.YAML(false)))
		_, _, same := second.Block()
		assert.Equal(t, string(block), string(same))
	}
	return strings.ReplaceAll(text, dir, "$DIR")
}

// withoutDefaults removes from the YAML text what came from the defaults.
func withoutDefaults(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var kept []string
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		isGroup := strings.HasSuffix(line, ":")
		if strings.HasSuffix(line, "# default") || isGroup && (len(kept) == 0 || indent(kept[0]) <= indent(line)) {
			continue
		}
		kept = append([]string{line}, kept...)
	}
	return strings.Join(append(kept, ""), "\n")
}
