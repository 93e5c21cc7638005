package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree is a checkout in small: a plugin "mem0", a plugin "conditions/no_memory", a
// package sdk that only mem0 needs, a package host that none needs.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":            "module github.com/memhost/memhost\n\ngo 1.26.0\n",
		"sdk/sdk.go":        "package sdk\n",
		"sdk/sdk_tinygo.go": "//go:build tinygo\n\npackage sdk\n",
		"sdk/sdk_native.go": "//go:build !tinygo\n\npackage sdk\n",
		"sdk/sdk_test.go":   "package sdk\n",
		"host/host.go":      "package host\n",
		"plugins/mem0/main.go": "package main\n\nimport _ " +
			"\"github.com/memhost/memhost/sdk\"\n\nfunc main() {}\n",
		"plugins/mem0/manifest.json":                 "{\n  \"name\": \"mem0\"\n}\n",
		"plugins/conditions/no_memory/main.go":       "package main\n\nfunc main() {}\n",
		"plugins/conditions/no_memory/main.txt":      "not a source\n",
		"plugins/conditions/no_memory/manifest.json": "{}",
		"plugins/mem0/testdata/x/main.go":            "package main\n",
		"plugins/mem0/testdata/x/manifest.json":      "{}",
		"plugins/shared/shared.go":                   "package shared\n",
	} {
		write(t, root, name, content)
	}
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func modulesOf(t *testing.T, root string) []Module {
	t.Helper()
	modules, err := FindModules(root)
	require.NoError(t, err)
	return modules
}

func TestModulesAreFoldersWithManifestAndMain(t *testing.T) {
	root := tree(t)
	modules := modulesOf(t, root)
	assert.Equal(t, []Module{
		{Name: "conditions/no_memory", Dir: filepath.Join(root, "plugins", "conditions", "no_memory"), Language: Go},
		{Name: "mem0", Dir: filepath.Join(root, "plugins", "mem0"), Language: Go},
	}, modules)
	assert.Equal(t, filepath.Join(root, "plugins", "conditions", "no_memory", "no_memory.wasm"), modules[0].Wasm())

	found, err := FindRoot(modules[0].Dir)
	require.NoError(t, err)
	assert.Equal(t, root, found)
	_, err = FindRoot(t.TempDir())
	assert.ErrorContains(t, err, "run this inside the checkout")
}

func TestSelectTakesNamesAndPaths(t *testing.T) {
	modules := []Module{{Name: "a/one"}, {Name: "b/one"}, {Name: "two"}, {Name: "c/three"}}
	cases := []struct {
		names []string
		want  []string
		err   string
	}{
		{nil, []string{"a/one", "b/one", "two", "c/three"}, ""},
		{[]string{"three", "./plugins/two/"}, []string{"two", "c/three"}, ""},
		{[]string{"a/one", "plugins/a/one"}, []string{"a/one"}, ""},
		{[]string{"one"}, nil, `toolchain: module "one" could be a/one or b/one: give the whole name`},
		{[]string{"four"}, nil, `toolchain: no module "four", have a/one, b/one, two, c/three`},
	}
	for _, c := range cases {
		got, err := Select(modules, c.names)
		if c.err != "" {
			assert.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		var names []string
		for _, m := range got {
			names = append(names, m.Name)
		}
		assert.Equal(t, c.want, names)
	}
}

func TestSourceHashFollowsWhatTinyGoWouldCompile(t *testing.T) {
	cases := []struct {
		name, file string
		changes    []string
	}{
		{"own file", "plugins/mem0/main.go", []string{"mem0"}},
		{"own manifest", "plugins/mem0/manifest.json", []string{"mem0"}},
		{"new file", "plugins/mem0/more.go", []string{"mem0"}},
		{"new native file", "plugins/mem0/stub_linux.go", nil},
		{"new test", "plugins/mem0/main_test.go", nil},
		{"package of the repository", "sdk/sdk.go", []string{"mem0"}},
		{"file for TinyGo", "sdk/sdk_tinygo.go", []string{"mem0"}},
		{"file for native Go", "sdk/sdk_native.go", nil},
		{"test of a package", "sdk/sdk_test.go", nil},
		{"package that no module needs", "host/host.go", nil},
		{"other file", "plugins/mem0/README.md", nil},
		{"language version", "go.mod", []string{"conditions/no_memory", "mem0"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := tree(t)
			before, err := HashSources(t.Context(), root, modulesOf(t, root))
			require.NoError(t, err)
			require.Len(t, before, 2)

			old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				old = []byte("package " + strings.TrimSuffix(filepath.Base(filepath.Dir(c.file)), "mem0") + "main\n")
			}
			changed := string(old) + "\n// changed\n"
			if c.file == "go.mod" {
				changed = strings.Replace(changed, "1.26.0", "1.25.0", 1)
			}
			write(t, root, c.file, changed)
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

func TestSourceHashIsTheSameInAnotherFolder(t *testing.T) {
	one, other := tree(t), tree(t)
	first, err := HashSources(t.Context(), one, modulesOf(t, one))
	require.NoError(t, err)
	second, err := HashSources(t.Context(), other, modulesOf(t, other))
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestForeignModulesCountByVersionAndChecksum(t *testing.T) {
	assert.Equal(t, "module a.example/b v1.2.3 h1:x=",
		moduleLine(&goModule{Path: "a.example/b", Version: "v1.2.3", Sum: "h1:x="}))
	fork := &goModule{Path: "c.example/fork", Version: "v1.0.0", Sum: "h1:y="}
	assert.Equal(t, "module c.example/fork v1.0.0 h1:y=",
		moduleLine(&goModule{Path: "a.example/b", Version: "v1.2.3", Replace: fork}))
	foreign := goPackage{Module: &goModule{Replace: fork}}
	assert.False(t, foreign.local())
	folder := goPackage{Module: &goModule{Replace: &goModule{Path: "../fork"}}}
	assert.True(t, folder.local())
}

func TestMissingPackageIsAnErrorWithItsName(t *testing.T) {
	root := tree(t)
	write(t, root, "plugins/mem0/main.go", "package main\n\nimport _ \"github.com/memhost/memhost/nowhere\"\n")
	_, err := HashSources(t.Context(), root, modulesOf(t, root))
	assert.ErrorContains(t, err, "github.com/memhost/memhost/nowhere")
}

func TestRecipeFollowsThePin(t *testing.T) {
	pin := func(version string) []byte {
		return []byte("module x\n\nrequire (\n\ta.example/b v1.0.0 // indirect\n\tgithub.com/tinygo-org/tinygo v" +
			version + " // indirect\n)\n")
	}
	before, err := recipeOf(pin("0.41.1"))
	require.NoError(t, err)
	after, err := recipeOf(pin("0.41.2"))
	require.NoError(t, err)
	assert.NotEqual(t, before, after)

	version, err := pinnedTinyGo(pin("0.41.2"))
	require.NoError(t, err)
	assert.Equal(t, "0.41.2", version)
	_, err = pinnedTinyGo([]byte("module x\n\ntool github.com/tinygo-org/tinygo\n"))
	assert.ErrorContains(t, err, "requires no version of github.com/tinygo-org/tinygo")

	version, err = pinnedTinyGo(pinMod)
	require.NoError(t, err)
	assert.Contains(t, string(pinSum), "github.com/tinygo-org/tinygo v"+version+" h1:",
		"what is pinned has its checksum")
}

func TestAPluginIsFoundInAFolderAnywhere(t *testing.T) {
	for _, tt := range []struct {
		name, manifest, source string
		want                   Module
		says                   string
	}{
		{"Go", `{"abi": "mh1"}`, "main.go", Module{Language: Go}, ""},
		{"Go for Extism", `{"abi": "mh1-extism"}`, "main.go", Module{Language: Go, Tags: []string{"extism"}}, ""},
		{"AssemblyScript", `{"abi": "mh1-extism"}`, "assembly/index.ts",
			Module{Language: AssemblyScript, Tags: []string{"extism"}}, ""},
		{"no source", `{}`, "lib.rs", Module{}, "holds no plugin"},
		{"no manifest", "", "main.go", Module{}, "holds no plugin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "mine")
			write(t, dir, tt.source, "")
			if tt.manifest != "" {
				write(t, dir, "manifest.json", tt.manifest)
			}
			m, err := PluginIn(dir)
			if tt.says != "" {
				assert.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			tt.want.Name, tt.want.Dir = "mine", dir
			assert.Equal(t, tt.want, m)
		})
	}
}

func TestOnlyAGoThatTinyGoAcceptsIsUsed(t *testing.T) {
	cases := []struct{ version, err string }{
		{"go1.26.8", ""},
		{"go1.25", ""},
		{"go1.26-custom X:y", ""},
		{"go1.27rc1", "toolchain: this is go1.27rc1, TinyGo 0.41.1 accepts Go up to 1.26: set GOTOOLCHAIN to a " +
			"go1.26 release"},
		{"devel go1.28-abc Mon", "toolchain: this is devel go1.28-abc Mon, TinyGo 0.41.1 accepts Go up to 1.26: set " +
			"GOTOOLCHAIN to a go1.26 release"},
		{"devel +abc", `toolchain: cannot tell the version of Go from "devel +abc", want go1.26 or older for TinyGo 0.41.1`},
	}
	for _, c := range cases {
		err := checkGo(c.version, "0.41.1")
		if c.err == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.err)
		}
	}
}

func TestOnlyDebian12HasARecipe(t *testing.T) {
	amd64 := goInstallation{OS: "linux", Arch: "amd64"}
	assert.NoError(t, checkPlatform(amd64,
		"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n"))
	for _, c := range []struct {
		golang    goInstallation
		osRelease string
		system    string
	}{
		{amd64, "ID=debian\nVERSION_ID=\"13\"\n", "debian 13 on linux/amd64"},
		{amd64, "ID=ubuntu\nVERSION_ID='24.04'\n", "ubuntu 24.04 on linux/amd64"},
		{goInstallation{OS: "linux", Arch: "arm64"}, "ID=debian\nVERSION_ID=12\n", "debian 12 on linux/arm64"},
		{goInstallation{OS: "darwin", Arch: "arm64"}, "", "an unknown system on darwin/arm64"},
	} {
		err := checkPlatform(c.golang, c.osRelease)
		assert.ErrorContains(t, err, "this is "+c.system)
		assert.ErrorContains(t, err, "set TINYGO")
	}
}

func TestPackagesAreMissingUnlessInstalled(t *testing.T) {
	have := parsePackages(
		"g++\t4:12.2.0-3\tinstalled\nbinaryen\t\tnot-installed\nlld-19\t1:19.1.7-3~deb12u1\tconfig-files\n")
	assert.Equal(t, map[string]string{"g++": "4:12.2.0-3"}, have)
	missing := missingPackages(have)
	assert.NotContains(t, missing, "g++")
	assert.Subset(t, missing, []string{"binaryen", "lld-19", "wasi-libc"})
}

func TestToolchainIsNamedByUpstreamVersions(t *testing.T) {
	assert.Equal(t, "tinygo-0.41.1+go-1.26.8+llvm-19.1.7+binaryen-108+wasi-libc-0.0~git20220510.9886d3d",
		toolchainID("0.41.1", "go1.26.8", map[string]string{
			llvmPackage: "1:19.1.7-3~deb12u1", binaryenPackage: "108-1", wasiLibcPackage: "0.0~git20220510.9886d3d-2",
		}))
	assert.Equal(t, "7", upstream("7"))
}

func TestToolchainsAreKeptOutsideTheTree(t *testing.T) {
	home := func() (string, error) { return filepath.Join("home", "cache"), nil }
	got, err := cacheFolder("", home)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join("home", "cache", "memhost", "toolchain"), got)

	set := t.TempDir()
	got, err = cacheFolder(set, home)
	require.NoError(t, err)
	assert.Equal(t, set, got)

	_, err = cacheFolder("", func() (string, error) { return "", errors.New("$HOME is not defined") })
	assert.EqualError(t, err, "toolchain: no cache folder ($HOME is not defined): set MEMHOST_TOOLCHAIN to a folder "+
		"for toolchains")
}

func TestAnUnfinishedToolchainIsNotWhole(t *testing.T) {
	m := maker{dir: t.TempDir(), stamp: stamp{ID: "id", Recipe: "recipe"}}
	assert.False(t, m.whole())
	write(t, m.dir, "bin/tinygo", "")
	assert.False(t, m.whole())
	write(t, m.dir, stampFile, `{"id":"id","recipe":"older"}`)
	assert.False(t, m.whole())
	write(t, m.dir, stampFile, `{"id":"id","recipe":"recipe"}`)
	assert.True(t, m.whole())
}

func TestOnlyOldLeftoversAreRemoved(t *testing.T) {
	base := t.TempDir()
	write(t, base, tempPrefix+"1/bin/tinygo", "")
	write(t, base, "tinygo-0.41.1/bin/tinygo", "")
	require.NoError(t, removeAbandoned(base, time.Now()))
	assert.DirExists(t, filepath.Join(base, tempPrefix+"1"))
	require.NoError(t, removeAbandoned(base, time.Now().Add(2*tempAge)))
	assert.NoDirExists(t, filepath.Join(base, tempPrefix+"1"))
	assert.DirExists(t, filepath.Join(base, "tinygo-0.41.1"))
}

func TestTheShellCannotChangeWhatIsCompiled(t *testing.T) {
	got := cleanEnv([]string{
		"PATH=/bin", "HOME=/h", "GOPROXY=p", "GOTOOLCHAIN=local",
		"GOFLAGS=-tags=x", "GOOS=plan9", "GOEXPERIMENT=e", "CGO_CFLAGS=-O0", "TINYGOROOT=/t", "TINYGO=/t/bin/tinygo",
		"WASMOPT=/w",
	}, "GOOS=wasip1")
	assert.Equal(t, []string{
		"PATH=/bin", "HOME=/h", "GOPROXY=p", "GOTOOLCHAIN=local",
		"GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "GOOS=wasip1",
	}, got)
}

func TestLongOutputIsCutAtTheFront(t *testing.T) {
	assert.Equal(t, "...\nb\nc", lastLines("a\nb\nc\n", 2))
	assert.Equal(t, "a", lastLines("a\n", 2))
}

func TestPatchInsertsWhereTheTextIsOnce(t *testing.T) {
	change := []insertion{{file: "transform/gc.go", before: "here\n", text: "new\n"}}
	for _, c := range []struct{ name, source, want, err string }{
		{"once", "a\nhere\nb\n", "a\nnew\nhere\nb\n", ""},
		{"not there", "a\nb\n", "a\nb\n", "0 times, want once"},
		{"twice", "here\nhere\n", "here\nhere\n", "2 times, want once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "transform/gc.go", c.source)
			err := patch(root, change)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			got, err := os.ReadFile(filepath.Join(root, "transform", "gc.go"))
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
	assert.ErrorIs(t, patch(t.TempDir(), change), os.ErrNotExist)
}

func TestModulesWithTheSDKHaveItsHeap(t *testing.T) {
	root, err := FindRoot(".")
	require.NoError(t, err)
	for _, c := range []struct {
		folder, gc string
		between    bool
	}{
		{"examples/plugins/notes", sdkCollector, true},
		{"internal/test/testguest/probe_extism", sdkCollector, true},
		{"plugins/conditions/ledger_memory", sdkCollector, false}, // imports sdk/gc
		{"internal/test/testguest/echo_extism", tinygoCollector, false},
	} {
		t.Run(c.folder, func(t *testing.T) {
			m, err := PluginIn(filepath.Join(root, filepath.FromSlash(c.folder)))
			require.NoError(t, err)
			gc, between, err := collector(t.Context(), m)
			require.NoError(t, err)
			assert.Equal(t, c.gc, gc)
			assert.Equal(t, c.between, between)
		})
	}
}
