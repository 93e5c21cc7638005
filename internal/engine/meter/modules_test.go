package meter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

func TestModulesOfThisRepositoryAreMetered(t *testing.T) {
	e := newEngine(t, wazero.NewRuntimeConfigInterpreter())
	for _, path := range ourModules(t) {
		original := read(t, path)
		kept := bytes.Clone(original)
		metered, err := Rewrite(original)
		require.NoError(t, err, path)
		assert.Equal(t, kept, original, "%s: the input is left alone", path)
		_, err = e.CompileModule(context.Background(), metered)
		require.NoError(t, err, path)
		again, err := Rewrite(original)
		require.NoError(t, err)
		assert.Equal(t, metered, again, "%s: the same every time", path)
		_, err = Rewrite(metered)
		assert.ErrorContains(t, err, "that module is the host's own", path)
	}
}

// madeByVersion is Version, and the start of a hash of Rewrite's output for all valid modules.
const madeByVersion = "3 e14fe9aed5a67a51"

// TestEngineAcceptsWhatItAcceptedBefore tests every module in wazero's test data, valid or not, including the
// specification's: the engine must accept the metered module if and only if it accepts the original, because otherwise
// an invalid module could access what was added.
func TestEngineAcceptsWhatItAcceptedBefore(t *testing.T) {
	if brief.Tests() || wazeroFolder() == "" {
		t.Skip("8,000 modules")
	}
	e := newEngine(t, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	ctx := context.Background()
	var valid, refused int
	all := sha256.New()
	require.NoError(t, filepath.WalkDir(wazeroFolder(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".wasm" {
			return err
		}
		original := read(t, path)
		compiled, plainErr := e.CompileModule(ctx, original)
		if plainErr == nil {
			valid++
			require.NoError(t, compiled.Close(ctx))
		}
		metered, err := Rewrite(original)
		if err != nil {
			refused++
			// wazero accepts a few features of this proposal even when it is off.
			require.True(t, plainErr != nil || strings.Contains(path, "typed-function-references"),
				"%s is valid, but: %v", path, err)
			return nil
		}
		if plainErr == nil {
			all.Write(metered)
		}
		compiled, err = e.CompileModule(ctx, metered)
		if err == nil {
			require.NoError(t, compiled.Close(ctx))
		}
		require.Equal(t, plainErr == nil, err == nil, "%s: %v, metered: %v", path, plainErr, err)
		return nil
	}))
	t.Logf("%d valid modules, %d refused by both", valid, refused)
	assert.Greater(t, valid, 1000)
	assert.Equal(t, madeByVersion, fmt.Sprintf("%d %x", Version, all.Sum(nil)[:8]),
		"Rewrite makes something else of these modules than it did: raise Version, or what is kept of earlier "+
			"versions is taken for the same. (Another wazero has other modules: then only this line changes.)")
}

// TestCommandsSayTheSame runs the WASI commands in wazero's test data: TinyGo's, Rust's, Zig's and C's.
func TestCommandsSayTheSame(t *testing.T) {
	if brief.Tests() || wazeroFolder() == "" {
		t.Skip("runs programs")
	}
	folder, ran := os.DirFS(wazeroFolder()), 0
	for _, pattern := range []string{"imports/wasi_snapshot_preview1/testdata/*/wasi.wasm",
		"imports/wasi_snapshot_preview1/example/testdata/*/cat.wasm", "cmd/wazero/testdata/*.wasm",
		"examples/cli/testdata/cli.wasm"} {
		paths, err := fs.Glob(folder, pattern)
		require.NoError(t, err)
		for _, path := range paths {
			if strings.Contains(path, "infinite") {
				continue // see TestEveryWayToGoOnForEverIsStopped
			}
			original, err := fs.ReadFile(folder, path)
			require.NoError(t, err)
			metered, err := Rewrite(original)
			require.NoError(t, err, path)
			for _, args := range [][]string{{"a"}, {"wasi", "ls", "."}, {"wasi", "stat"}, {"wasi", "preopen"},
				{"cli", "1", "2"}, {"cat", "a.txt"}} {
				want, got := say(t, original, args), say(t, metered, args)
				require.Equal(t, want, got, "%s %q", path, args)
				ran++
			}
		}
	}
	assert.NotZero(t, ran)
}

// say runs a command in a folder with one file, and returns its output and how it ended.
func say(t *testing.T, wasm []byte, args []string) string {
	e := newEngine(t, wazero.NewRuntimeConfig())
	var out bytes.Buffer
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a file\n"), 0o600))
	config := wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out).WithName("").WithArgs(args...).WithFSConfig(
		wazero.NewFSConfig().WithReadOnlyDirMount(dir, "/"))
	_, err := e.InstantiateWithConfig(context.Background(), wasm, config)
	return out.String() + firstLine(err)
}

// guest is an instance of a module that uses the ABI.
type guest struct{ api.Module }

func startGuest(t testing.TB, e *engine, wasm []byte) guest {
	t.Helper()
	m, err := e.InstantiateWithConfig(context.Background(), wasm,
		wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.InitExport))
	require.NoError(t, err)
	return guest{m}
}

// ask enters an operation and returns a view of its answer.
func (g guest) ask(t testing.TB, op string, request []byte) []byte {
	ctx := context.Background()
	stack := []uint64{uint64(len(request))}
	require.NoError(t, g.ExportedFunction(abi.BufferExport).CallWithStack(ctx, stack))
	require.True(t, g.Memory().Write(uint32(stack[0]), request))
	stack[0] = uint64(len(request))
	require.NoError(t, g.ExportedFunction(op).CallWithStack(ctx, stack))
	ptr, n, isError := abi.Unpack(stack[0])
	require.False(t, isError)
	answer, ok := g.Memory().Read(ptr, n)
	require.True(t, ok)
	return answer
}

// TestStandardGoIsMetered builds a guest with the standard Go toolchain: 3 MB, with switches of thousands of labels.
func TestStandardGoIsMetered(t *testing.T) {
	if brief.Tests() {
		t.Skip("builds a module")
	}
	file := filepath.Join(t.TempDir(), "echo.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", file, "../../test/testguest/echo")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	original := read(t, file)
	metered, err := Rewrite(original)
	require.NoError(t, err)
	request := contractRequest()
	e := newEngine(t, wazero.NewRuntimeConfig())
	e.more = func() int64 { return 1000 }
	want := bytes.Clone(startGuest(t, e, original).ask(t, abi.OpRetrieve, request))
	require.Zero(t, e.looks)
	assert.Equal(t, want, startGuest(t, e, metered).ask(t, abi.OpRetrieve, request))
	assert.NotZero(t, e.looks)
}
