package compat_test

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// TestANewerFolderStaysAsItIs: a program that meets the data folder of a later release says so and changes nothing.
func TestANewerFolderStaysAsItIs(t *testing.T) {
	for _, r := range releases(t) {
		for name := range r.files(t, "lives", ".tar.gz") {
			t.Run(r.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				require.NotNil(t, r.life(t, name, dir))
				raiseSchema(t, filepath.Join(dir, state.DataFile))
				before := filesOf(t, dir)
				_, err := host.New(t.Context(), options(dir, newBackend(providerSetup{}, time.Now())))
				require.ErrorContains(t, err, "was made by a newer memhost")
				require.ErrorContains(t, err, dir)
				assert.Equal(t, before, filesOf(t, dir))
			})
		}
	}
}

// raiseSchema makes a data file one of the next schema.
func raiseSchema(t *testing.T, path string) {
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte(strconv.Itoa(state.Schema+1)))
	}))
	require.NoError(t, db.Close())
}

// file is what may not change in a file that is left as it is.
type file struct {
	sum      [sha256.Size]byte
	modified time.Time
}

func filesOf(t *testing.T, dir string) map[string]file {
	all := map[string]file{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		info, err := entry.Info()
		all[path] = file{sha256.Sum256(content), info.ModTime()}
		return err
	}))
	require.NotEmpty(t, all)
	return all
}

// TestWhatIsNewerIsRefusedWithItsVersion: manifests and run manifests of a later form are named as such.
func TestWhatIsNewerIsRefusedWithItsVersion(t *testing.T) {
	r := releases(t)[0]
	refused := func(err error, text string) {
		t.Helper()
		require.ErrorContains(t, err, text)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	}

	manifest, err := os.ReadFile(r.path("manifests", "full_history.json"))
	require.NoError(t, err)
	form := regexp.MustCompile(`"manifest": *\d+`)
	require.Regexp(t, form, string(manifest))
	_, _, err = host.ParseManifest(form.ReplaceAll(manifest, []byte(`"manifest": 9`)))
	refused(err, "9")
	_, _, err = host.ParseManifest(bytes.Replace(manifest, []byte(`"mh1"`), []byte(`"mh9"`), 1))
	refused(err, "mh9")

	told := r.life(t, "full_history", t.TempDir())
	_, err = report.ParseRunManifest(form.ReplaceAll(told.Manifest, []byte(`"manifest":9`)))
	refused(err, "is a run manifest of version 9")
}
