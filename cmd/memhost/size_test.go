package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxProgramBytes bounds the program as `go install` makes it for linux/amd64, with symbols and debug data. `make build`
// leaves these out, some 14 MB.
const maxProgramBytes = 52_000_000

// TestTheProgramIsSmall builds the program as `go install` does, but without the paths of this checkout, which would add
// some 0.1 % where they are long.
//
// Where code that is reached asks reflection for a method by a name that is known only when the program runs, as
// templates of text/template and html/template do, the linker keeps every exported method of every type: 4.8 MB. Pages
// are made with gomponents instead (docs/dependencies.md).
func TestTheProgramIsSmall(t *testing.T) {
	program := filepath.Join(t.TempDir(), "memhost")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-dumpdep", "-o", program, ".")
	var references strings.Builder // a line for each: "caller -> callee", with the linker's marks
	build.Stderr = &references
	require.NoError(t, build.Run())
	require.Contains(t, references.String(), "main.main ->")
	for line := range strings.Lines(references.String()) {
		require.NotContains(t, line, "<ReflectMethod>", "this keeps all methods in the program")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return
	}
	info, err := os.Stat(program)
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(maxProgramBytes))
	t.Logf("%d bytes", info.Size())
}
