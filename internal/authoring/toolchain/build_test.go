package toolchain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// fakeCompiler makes a module with nothing in it but a padding section and what a
// real compiler leaves for debuggers.
type fakeCompiler struct {
	id      string
	padding int
	hook    func(dir string) error

	mu       sync.Mutex
	compiled []string
}

func (c *fakeCompiler) ID() string { return c.id }

func (c *fakeCompiler) Compile(_ context.Context, m Module, out string) error {
	c.mu.Lock()
	c.compiled = append(c.compiled, filepath.Base(m.Dir))
	c.mu.Unlock()
	if c.hook != nil {
		if err := c.hook(m.Dir); err != nil {
			return err
		}
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	for name, payload := range map[string][]byte{"name": []byte("n"), "producers": []byte("p")} {
		var err error
		if b, err = wasmbin.SetCustom(b, name, payload); err != nil {
			return err
		}
	}
	b, err := wasmbin.SetCustom(b, "padding", make([]byte, c.padding))
	if err != nil {
		return err
	}
	return os.WriteFile(out, b, 0o644)
}

func (c *fakeCompiler) names() []string {
	defer func() { c.compiled = nil }()
	return c.compiled
}

func builderFor(root string, c Compiler) *Builder {
	return &Builder{Root: root, Compiler: c, Log: &bytes.Buffer{}}
}

func mustBuild(t *testing.T, root string, c Compiler) []Result {
	t.Helper()
	results, err := builderFor(root, c).Build(t.Context(), modulesOf(t, root))
	require.NoError(t, err)
	return results
}

func TestBuildAttachesTheManifestAndWritesTheLock(t *testing.T) {
	root := tree(t)
	results := mustBuild(t, root, &fakeCompiler{id: "tc", padding: 10})

	mem0 := modulesOf(t, root)[1]
	b, err := os.ReadFile(mem0.Wasm())
	require.NoError(t, err)
	manifest, ok, err := wasmbin.Custom(b, ManifestSection)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, `{"name":"mem0"}`, string(manifest))
	for _, name := range strippedSections() {
		_, ok, err := wasmbin.Custom(b, name)
		require.NoError(t, err)
		assert.False(t, ok, name)
	}

	require.NoError(t, CheckLock(root))
	lock, err := ReadLock(root)
	require.NoError(t, err)
	require.Len(t, lock.Modules, 2)
	entry := lock.Modules[1]
	assert.Equal(t, "mem0", entry.Name)
	assert.Equal(t, "tc", entry.Toolchain)
	assert.Equal(t, hashOf(b), entry.SHA256)
	assert.Equal(t, len(b), entry.Size)
	assert.Equal(t, results[1].SHA256, entry.SHA256)
}

func TestBuildCompilesOnlyWhatChanged(t *testing.T) {
	root := tree(t)
	c := &fakeCompiler{id: "tc"}
	mustBuild(t, root, c)
	assert.ElementsMatch(t, []string{"mem0", "no_memory"}, c.names())

	results := mustBuild(t, root, c)
	assert.Empty(t, c.names())
	assert.True(t, results[0].UpToDate)

	write(t, root, "sdk/sdk.go", "package sdk\n\n// changed\n")
	mustBuild(t, root, c)
	assert.Equal(t, []string{"mem0"}, c.names())

	require.NoError(t, os.Remove(modulesOf(t, root)[0].Wasm()))
	mustBuild(t, root, c)
	assert.Equal(t, []string{"no_memory"}, c.names())

	mustBuild(t, root, &fakeCompiler{id: "tc"})
	other := &fakeCompiler{id: "newer"}
	mustBuild(t, root, other)
	assert.Len(t, other.names(), 2)

	forced := builderFor(root, c)
	forced.Force = true
	_, err := forced.Build(t.Context(), modulesOf(t, root))
	require.NoError(t, err)
	assert.Len(t, c.names(), 2)
}

func TestBuildOfOneModuleKeepsTheOthersEntries(t *testing.T) {
	root := tree(t)
	mustBuild(t, root, &fakeCompiler{id: "tc"})
	modules, err := Select(modulesOf(t, root), []string{"mem0"})
	require.NoError(t, err)
	_, err = builderFor(root, &fakeCompiler{id: "newer"}).Build(t.Context(), modules)
	require.NoError(t, err)

	lock, err := ReadLock(root)
	require.NoError(t, err)
	require.Len(t, lock.Modules, 2)
	assert.Equal(t, "tc", lock.Modules[0].Toolchain)
	assert.Equal(t, "newer", lock.Modules[1].Toolchain)

	require.NoError(t, os.RemoveAll(filepath.Join(root, "plugins", "conditions")))
	assert.ErrorContains(t, CheckLock(root), "conditions/no_memory: in the lock, but there is no such module")
	mustBuild(t, root, &fakeCompiler{id: "newer"})
	require.NoError(t, CheckLock(root))
}

func TestAModuleOverTheLimitIsAnErrorAndChangesNothing(t *testing.T) {
	root := tree(t)
	mustBuild(t, root, &fakeCompiler{id: "tc"})
	write(t, root, "plugins/mem0/main.go", "package main\n\nfunc main() {}\n")

	results, err := builderFor(root, &fakeCompiler{id: "tc", padding: SizeLimit}).Build(t.Context(), modulesOf(t, root))
	assert.ErrorContains(t, err, "toolchain: module mem0 has 524342 bytes, want at most 524288 (512 KB)")
	assert.ErrorContains(t, CheckLock(root), "mem0: sources changed")

	var table bytes.Buffer
	require.NoError(t, PrintTable(&table, results))
	assert.Contains(t, table.String(), "ok, up to date")
	assert.Contains(t, table.String(), "TOO LARGE by 54 bytes")
}

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	root := tree(t)
	results, err := builderFor(root, &fakeCompiler{id: "tc", hook: func(dir string) error {
		if filepath.Base(dir) == "mem0" {
			return errors.New("does not compile")
		}
		return nil
	}}).Build(t.Context(), modulesOf(t, root))
	assert.EqualError(t, err, "module mem0: does not compile")
	assert.FileExists(t, results[0].Module.Wasm())
	assert.NoFileExists(t, results[1].Module.Wasm())
}

func TestSourcesThatChangeWhileTheyAreBuiltAreNotLocked(t *testing.T) {
	root := tree(t)
	_, err := builderFor(root, &fakeCompiler{id: "tc", hook: func(string) error {
		return os.WriteFile(filepath.Join(root, "sdk", "sdk.go"), []byte("package sdk\n\n// new\n"), 0o644)
	}}).Build(t.Context(), modulesOf(t, root))
	assert.EqualError(t, err, "toolchain: module mem0: its sources changed while it was built: build again")
	lock, err := ReadLock(root)
	require.NoError(t, err)
	assert.Len(t, lock.Modules, 1)
}

func TestBuildIntoAFolderLeavesTheCommittedModulesAlone(t *testing.T) {
	root := tree(t)
	b := builderFor(root, &fakeCompiler{id: "tc"})
	b.Out = t.TempDir()
	_, err := b.Build(t.Context(), modulesOf(t, root))
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(b.Out, "conditions", "no_memory.wasm"))
	assert.NoFileExists(t, modulesOf(t, root)[0].Wasm())
	assert.NoFileExists(t, lockPath(root))
}

func TestAManifestThatIsNoJSONIsAnError(t *testing.T) {
	root := tree(t)
	write(t, root, "plugins/mem0/manifest.json", "{\"name\": }")
	_, err := builderFor(root, &fakeCompiler{id: "tc"}).Build(t.Context(), modulesOf(t, root))
	assert.ErrorContains(t, err, "module mem0")
	assert.ErrorContains(t, err, "manifest.json: invalid character '}'")
}

func TestCheckNamesModulesThatDiffer(t *testing.T) {
	root := tree(t)
	c := &fakeCompiler{id: "tc"}
	mustBuild(t, root, c)
	require.NoError(t, builderFor(root, c).Check(t.Context(), modulesOf(t, root)))

	other := &fakeCompiler{id: "other", padding: 1}
	err := builderFor(root, other).Check(t.Context(), modulesOf(t, root)[1:])
	lock, readErr := ReadLock(root)
	require.NoError(t, readErr)
	assert.ErrorContains(t, err, "module mem0: the committed module is "+lock.Modules[1].SHA256+", a rebuild gives ")
	assert.ErrorContains(t, err, "(the lock says built with tc, this is other)")

	require.NoError(t, os.Remove(modulesOf(t, root)[0].Wasm()))
	assert.ErrorContains(t, builderFor(root, c).Check(t.Context(), modulesOf(t, root)),
		"module conditions/no_memory: no committed module")
}

func TestLockCheckSaysWhatDiffers(t *testing.T) {
	entry := Entry{Name: "m", Sources: "s", Recipe: "r", Toolchain: "tc", SHA256: "w", Size: 1}
	now := state{recipe: "r", sources: map[string]string{"m": "s"}, wasm: map[string]string{"m": "w"}}
	with := func(change func(*Entry)) Lock {
		e := entry
		change(&e)
		return Lock{Version: lockVersion, Modules: []Entry{e}}
	}
	cases := []struct {
		name string
		lock Lock
		want []string
	}{
		{"same", with(func(*Entry) {}), nil},
		{"no entry", Lock{}, []string{"m: not in the lock"}},
		{"sources", with(func(e *Entry) {
			e.Sources = "0123456789abcdef"
		}), []string{"m: sources changed: the module was built from 0123456789ab, " +
			"they are s now"}},
		{"recipe", with(func(e *Entry) {
			e.Recipe = "x"
		}), []string{"m: the way modules are built changed (TinyGo's version, its target, its " +
			"flags)"}},
		{"module", with(func(e *Entry) { e.SHA256 = "x" }), []string{"m: the built module is w, the lock says x"}},
		{"development", with(func(e *Entry) {
			e.Toolchain = "development:tinygo 1"
		}),
			[]string{"m: built with development:tinygo 1: unset TINYGO for a module that is committed"}},
		{"other name", with(func(e *Entry) {
			e.Name = "n"
		}), []string{"m: not in the lock", "n: in the lock, but there is no such module"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, c.lock.compare([]Module{{Name: "m"}}, now))
		})
	}
	missing := state{recipe: "r", sources: now.sources}
	assert.Equal(t, []string{"m: the lock names a built module, but there is none"},
		with(func(*Entry) {}).compare([]Module{{Name: "m"}}, missing))
}

func TestLockCheckTellsWhatToDo(t *testing.T) {
	root := tree(t)
	mustBuild(t, root, &fakeCompiler{id: "tc"})
	write(t, root, "plugins/mem0/main.go", "package main\n\nfunc main() {}\n")
	err := CheckLock(root)
	assert.ErrorContains(t, err, "run `make plugins`")
	assert.ErrorContains(t, err, "mem0: sources changed")
	assert.NotContains(t, err.Error(), "no_memory")

	write(t, root, "plugins/modules.lock", "{")
	assert.ErrorContains(t, CheckLock(root), "restore it from version control")
	write(t, root, "plugins/modules.lock", `{"lock": 2}`)
	assert.ErrorContains(t, CheckLock(root), "has version 2, want 1")
}
