//go:build unix

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/brief"
)

// TestOnlyRunAndUpgradeUpgradeAFolder: all other commands leave a folder of an older format unchanged.
func TestOnlyRunAndUpgradeUpgradeAFolder(t *testing.T) {
	brief.Leave(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	_, code := m.run("setup")
	require.Zero(t, code)
	path := filepath.Join(m.dir, "data", state.DataFile)
	schema := func(text string) (was string) {
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			was = string(meta.Get([]byte("schema")))
			if text == "" {
				return nil
			}
			return meta.Put([]byte("schema"), []byte(text))
		}))
		require.NoError(t, db.Close())
		return was
	}
	schema("1")
	for _, args := range [][]string{{"health"}, {"manifest"}, {"mode"}, {"setup"}, {"run", "--dry-run"}} {
		_, code := m.run(args...)
		require.NotZero(t, code, args)
		require.Equal(t, "1", schema(""), args)
	}
	out, code := m.run("upgrade")
	require.Zero(t, code)
	require.Contains(t, out, "upgraded from schema 1 to 3")
	require.FileExists(t, path+".schema1")
	out, code = m.run("upgrade")
	require.Zero(t, code)
	require.Contains(t, out, "up to date")
	_, code = m.run("health")
	require.Zero(t, code)
	require.FileExists(t, path+".schema1", "no slot has stopped yet")
	_, code = memhost{t, t.TempDir(), m.cache, ""}.run("upgrade")
	require.NotZero(t, code, "there is no folder")
}
