package testcache

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCacheIsSharedAndGoesWithItsCompiler(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())         // where macOS and
	t.Setenv("LocalAppData", t.TempDir()) // Windows have it
	remove, err := Open()
	require.NoError(t, err)
	first := Dir()
	old, kept := filepath.Join(first, "old"), filepath.Join(first, "kept")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-maxAge-time.Hour)))
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	remove()

	_, err = Open()
	require.NoError(t, err)
	assert.Equal(t, first, Dir())
	assert.NoFileExists(t, old)
	assert.FileExists(t, kept)

	digest, err := makersDigest()
	require.NoError(t, err)
	assert.Contains(t, first, digest)
	all := makers
	t.Cleanup(func() { makers = all })
	makers = makers[1:] // as if go.sum were another
	_, err = Open()
	require.NoError(t, err)
	assert.NotEqual(t, first, Dir())
}

func TestWithoutACacheFolderTheTestsHaveOneOfTheirOwn(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "not/absolute")
	t.Setenv("HOME", "")
	t.Setenv("LocalAppData", "")
	remove, err := Open()
	require.NoError(t, err)
	assert.DirExists(t, Dir())
	remove()
	assert.NoDirExists(t, Dir())
}
