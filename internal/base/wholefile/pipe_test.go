//go:build unix

package wholefile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/base/wholefile"
)

// A device such as /dev/null must never be replaced, which a root process could do. Here a pipe stands in for it.
func TestWhatIsNoFileIsWrittenToAndStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	reader, err := os.OpenFile(path, os.O_RDWR, 0) // so that no open blocks
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, wholefile.Write(path, []byte("text"), 0o600))
	found := make([]byte, 4)
	_, err = reader.Read(found)
	require.NoError(t, err)
	assert.Equal(t, "text", string(found))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
}
