package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestALockFilePinsTags(t *testing.T) {
	path := filepath.Join(t.TempDir(), LockFile)
	l, err := ReadLock(path)
	require.NoError(t, err, "a missing one pins nothing")
	a, b := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	const tag = "oci://ghcr.io/team/mem:1"
	r, err := l.Pin(parsed(t, tag))
	require.NoError(t, err)
	assert.Empty(t, r.Digest)

	l.Set(parsed(t, tag+a))
	require.NoError(t, l.Write(path))
	l, err = ReadLock(path)
	require.NoError(t, err)
	for _, name := range []string{tag, tag + a} {
		r, err = l.Pin(parsed(t, name))
		require.NoError(t, err)
		assert.Equal(t, tag+a, r.String())
	}
	_, err = l.Pin(parsed(t, tag+b))
	require.ErrorContains(t, err, "memhost.lock pins sha256:aaaa")
	assert.Equal(t, abi.CodeConflict, abi.AsError(err).Code)
	r, err = l.Pin(parsed(t, "oci://ghcr.io/team/mem"+b))
	require.NoError(t, err, "a digest alone says it all")
	assert.Equal(t, b, "@"+r.Digest)
}

func TestADamagedLockFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), LockFile)
	for _, text := range []string{"", "[]", "{}", `{"version":2}`, `{"version":1,"more":1}`, `{"version":1} {}`,
		`{"version":1,"modules":{"mem":"sha256:` + strings.Repeat("a", 64) + `"}}`,
		`{"version":1,"modules":{"oci://ghcr.io/mem:1":"sha256:aa"}}`,
		`{"version":1,"modules":{"oci://ghcr.io/mem":"sha256:` + strings.Repeat("a", 64) + `"}}`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadLock(path)
		require.ErrorContains(t, err, path, text)
		assert.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code)
	}
}

func TestALockFileKeepsEveryPin(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the last one to write wins here")
	}
	path := filepath.Join(t.TempDir(), LockFile)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			assert.NoError(t, UpdateLock(path, parsed(t, fmt.Sprintf("oci://ghcr.io/team/mem:%d@sha256:%064x", i, i))))
		})
	}
	all.Wait()
	l, err := ReadLock(path)
	require.NoError(t, err)
	assert.Len(t, l.Modules, 20)
}
