package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"pgregory.net/rapid"
)

func TestEveryKeyHasAVariableAndBack(t *testing.T) {
	step := rapid.StringMatching(`[a-z][a-z0-9]{0,8}(_[a-z0-9]{1,8}){0,2}`)
	all := keys()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(all).Draw(t, "key")
		path := strings.Split(k.path, ".")
		switch {
		case k.kind == aMap && len(k.entry) == 0:
			path = append(path, rapid.SliceOfN(step, 2, 5).Draw(t, "block")...)
		case k.kind == aMap:
			path = append(path, step.Draw(t, "name"), rapid.SampledFrom(k.entry).Draw(t, "field"))
		}
		back, ok := envPath(envName(path))
		if !ok || joinPath(back) != joinPath(path) {
			t.Fatalf("%q -> %s -> %q", path, envName(path), back)
		}
		if where, _ := keyTree().locate(path); where != aKey && where != inABlock && where != anEntry {
			t.Fatalf("%q is at no key's place: %v", path, where)
		}
	})
}

func TestAVariableSetsItsKeyOrIsRefusedByName(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`MEMHOST_[A-Z_]{0,20}`),
		rapid.Custom(func(t *rapid.T) string {
			k := rapid.SampledFrom(keys()).Draw(t, "key")
			return envName(strings.Split(k.path, ".")) +
				rapid.SampledFrom([]string{"", "", "X", "__A", "__A__B", "__A__ENV"}).Draw(t, "more")
		}))
	value := rapid.OneOf(rapid.StringMatching(`[ -~]{0,12}`),
		rapid.SampledFrom([]string{"", "true", "12", "full_history", "info", "null", "[a, b]", "'x'"}))
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n, v := name.Draw(t, "name"), value.Draw(t, "value")
		c, err := Load(Options{Dir: dir, Environ: []string{n + "=" + v}})
		path, ours := envPath(n)
		if err != nil {
			if n == envFile {
				return
			}
			if e := abi.AsError(err); e.Code != abi.CodeInvalidArgument || ours && path[0] != "secrets" &&
				!strings.HasPrefix(e.Message, n+": ") {
				t.Fatalf("%s=%s: %v", n, v, err)
			}
			return
		}
		where, k := keyTree().locate(path)
		null := where == aKey && !k.textual() && scalarText(v) == nil // counts as unset
		if ours && v != "" && where == aKey && !null {
			if got := c.Source(strings.Join(path, ".")); got != (Origin{Kind: KindEnv, Name: n}) {
				t.Fatalf("%s=%s: comes from %v", n, v, got)
			}
		}
	})
}

// FuzzLoad feeds the loader arbitrary YAML and JSON: it never panics, and its errors are useful to people.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(raw), "\n-- ") {
			if _, text, ok := strings.Cut(part, " --\n"); ok && strings.Contains(text, ":") {
				f.Add([]byte(text), strings.HasPrefix(text, "{"))
			}
		}
	}
	f.Add([]byte("memory: {condition: c, conditions: {c: {<<: [&a {b: 1}, *a], d: {file: x}}}}"), false)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte, asJSON bool) {
		name := filepath.Join(dir, "fuzz.yaml")
		if asJSON {
			name = filepath.Join(dir, "fuzz.json")
		}
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{File: name, Dir: dir, Environ: []string{"XDG_DATA_HOME=/xdg"}})
		if err != nil {
			e := abi.AsError(err)
			if e.Code != abi.CodeInvalidArgument || e.Message == "" {
				t.Fatal(err)
			}
			return
		}
		_, _, block := c.Block()
		if !json.Valid(block) || !utf8.Valid(block) {
			t.Fatalf("the block is no JSON: %q", block)
		}
		for _, path := range c.Paths() {
			c.Source(path)
		}
		// What is printed can be loaded again and means the same, unless something was blanked or is read from files.
		text := c.YAML(true)
		if strings.Contains(string(text), "***") || strings.Contains(string(block), `{"file":`) {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "again.yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Load(Options{File: "again.yaml", Dir: dir, Environ: []string{"XDG_DATA_HOME=/xdg"}})
		if err != nil {
			t.Fatalf("what is printed is refused: %v\n%s", err, text)
		}
		if _, _, same := again.Block(); string(same) != string(block) {
			t.Fatalf("what is printed means something else:\n%s\n%s\n%s", block, same, text)
		}
	})
}
