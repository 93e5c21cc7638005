package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheLinkerLeavesOutMethodsThatNothingCalls: where code that is reached asks reflection for a method by a name that
// is known only when the program runs, as templates of text/template and html/template do, the linker keeps every
// exported method of every type: 4.8 MB. Pages are made with gomponents instead (docs/dependencies.md).
func TestTheLinkerLeavesOutMethodsThatNothingCalls(t *testing.T) {
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-dumpdep", "-o",
		filepath.Join(t.TempDir(), "memhost"), ".")
	var references strings.Builder // a line for each: "caller -> callee", with the linker's marks
	build.Stderr = &references
	require.NoError(t, build.Run())
	require.Contains(t, references.String(), "main.main ->")
	for line := range strings.Lines(references.String()) {
		require.NotContains(t, line, "<ReflectMethod>", "this keeps all methods in the program")
	}
}
