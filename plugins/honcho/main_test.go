package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// compiled is the folder of compiled modules that the tests share.
func compiled(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "memhost-honcho-test")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
