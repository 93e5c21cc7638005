package wholefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/base/wholefile"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, write := range []func(string, []byte, fs.FileMode) error{wholefile.Write, wholefile.WriteDurable} {
		for _, content := range []string{"first", "", "second and longer"} {
			require.NoError(t, write(path, []byte(content), 0o640))
			found, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, content, string(found))
		}
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, fs.FileMode(0o640), info.Mode())
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")
}

func TestAFailureLeavesTheFileBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, wholefile.Write(path, []byte("before"), 0o600))
	broken := errors.New("broken")
	assert.ErrorIs(t, wholefile.Stream(path, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, broken)
	}), broken)
	found, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "before", string(found))
	assert.ErrorIs(t, wholefile.Write(filepath.Join(dir, "no", "a"), nil, 0o600), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	assert.Error(t, wholefile.Write(filepath.Join(dir, "folder"), nil, 0o600))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "no temporary file is left")
}

func TestALinkStaysAndItsFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no links here: ", err)
	}
	require.NoError(t, wholefile.Write(link, []byte("after"), 0o600))
	found, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "after", string(found))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSymlink, info.Mode().Type())
}
