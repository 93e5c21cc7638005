package meter

import (
	"context"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// wazeroFolder is the folder of wazero's sources, whose test data is read in place.
var wazeroFolder = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// ourModules returns the repository's own modules, by path.
func ourModules(t testing.TB) []string {
	t.Helper()
	var found []string
	root := filepath.Join("..", "..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".wasm" {
			found = append(found, path)
		}
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// engine is a runtime with the host's side of metering.
type engine struct {
	wazero.Runtime
	looks int
	// more returns the units at each reading of the clock; nil means none, so that every site asks.
	more func() int64
}

func newEngine(t testing.TB, config wazero.RuntimeConfig) *engine {
	t.Helper()
	ctx := context.Background()
	e := &engine{Runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	t.Cleanup(func() { require.NoError(t, e.Close(ctx)) })
	_, err := e.NewHostModuleBuilder(Module).NewFunctionBuilder().WithGoFunction(
		api.GoFunc(func(_ context.Context, stack []uint64) {
			e.looks++
			stack[0] = 0
			if e.more != nil {
				stack[0] = uint64(e.more())
			}
		}), nil, []api.ValueType{api.ValueTypeI64}).Export(Function).Instantiate(ctx)
	require.NoError(t, err)
	wasi_snapshot_preview1.MustInstantiate(ctx, e)
	return e
}

// sameValues compares results bit by bit. References are addresses, which differ between runs, so only null is
// compared.
func sameValues(types []api.ValueType, a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	at := 0
	for _, t := range types {
		switch t {
		case 0x70, api.ValueTypeExternref:
			if (a[at] == 0) != (b[at] == 0) {
				return false
			}
		case 0x7b: // two words
			if a[at] != b[at] || a[at+1] != b[at+1] {
				return false
			}
			at++
		case api.ValueTypeI32, api.ValueTypeF32:
			if uint32(a[at]&math.MaxUint32) != uint32(b[at]&math.MaxUint32) {
				return false
			}
		default:
			if a[at] != b[at] {
				return false
			}
		}
		at++
	}
	return true
}

// firstLine returns the first line of an error, which says what happened. The others say where, with function indices
// that differ.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
