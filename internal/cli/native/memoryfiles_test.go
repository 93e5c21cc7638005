package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// A folder that looks like an export must be complete: half of a memory, imported elsewhere, would be taken for the
// whole.
func TestAnExportIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "below", "out")
	require.NoError(t, exportFolder(out, map[string]string{"MEMORY.md": "m", "sessions/a.jsonl": "{}"}, false))
	text, err := os.ReadFile(filepath.Join(out, "sessions", "a.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, "{}", string(text))

	failing := filepath.Join(dir, "failing")
	require.Error(t, exportFolder(failing, map[string]string{"a": "written", "b/../../c": "leaves the folder"}, false))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left of what could not be written")

	empty := t.TempDir()
	require.NoError(t, exportFolder(empty+"/", map[string]string{"a": "x"}, false),
		"an empty folder that is there is written into")
	require.FileExists(t, filepath.Join(empty, "a"))
	for _, taken := range []string{empty, filepath.Join(empty, "a")} {
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(exportFolder(taken, map[string]string{"a": "y"}, false)),
			taken)
	}
}
