package guest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRewrittenModulesAreKeptByContent(t *testing.T) {
	cache := t.TempDir()
	made := 0
	find := func(t *testing.T, k *rewrittenModules, sha256 string) {
		t.Helper()
		wasm, err := k.find(sha256, func() ([]byte, error) { made++; return []byte("metered " + sha256), nil })
		require.NoError(t, err)
		assert.Equal(t, "metered "+sha256, string(wasm))
	}
	first := keepRewritten(cache)
	t.Run("the first time it is made", func(t *testing.T) {
		find(t, first, "aa")
		assert.Equal(t, 1, made)
	})
	t.Run("then it is held, and another process reads it", func(t *testing.T) {
		find(t, first, "aa")
		find(t, keepRewritten(cache), "aa")
		assert.Equal(t, 1, made)
	})
	t.Run("other content is made", func(t *testing.T) {
		find(t, first, "bb")
		assert.Equal(t, 2, made)
	})
	path := filepath.Join(first.folder, "aa")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, damaged := range map[string][]byte{"cut": whole[:len(whole)-1], "empty": nil,
		"altered": append([]byte("X"), whole[1:]...)} {
		t.Run("a file that is "+name+" is made again", func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			before := made
			find(t, keepRewritten(cache), "aa")
			assert.Equal(t, before+1, made)
			again, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, whole, again)
		})
	}
	t.Run("what cannot be rewritten is not kept", func(t *testing.T) {
		_, err := first.find("cc", func() ([]byte, error) { return nil, errors.New("not understood") })
		require.ErrorContains(t, err, "not understood")
		find(t, first, "cc")
	})
	t.Run("a folder that cannot be written costs nothing else", func(t *testing.T) {
		file := filepath.Join(cache, "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		find(t, keepRewritten(file), "aa")
		find(t, keepRewritten(""), "aa")
	})
	t.Run("nothing is left beside", func(t *testing.T) {
		files, err := os.ReadDir(first.folder)
		require.NoError(t, err)
		assert.Len(t, files, 3)
	})
}
