package backup

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// made is a backup of three files.
func made(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "archive"), 0o700))
	names := []string{"state.db", filepath.Join("archive", "1.zst"), "defaults.json"}
	for i, name := range names {
		content := bytes.Repeat([]byte{byte(i), 'x'}, 5_000*i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	var packed bytes.Buffer
	require.NoError(t, Write(&packed, dir, names, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)))
	return packed.Bytes()
}

func TestABackupListsItsFiles(t *testing.T) {
	contents, err := Check(bytes.NewReader(made(t)))
	require.NoError(t, err)
	require.Equal(t, "2026-03-01T09:00:00Z", contents.At)
	require.EqualValues(t, 30_000, contents.Bytes())
	var names []string
	for _, f := range contents.Files {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"state.db", "archive/1.zst", "defaults.json"}, names)
}

// Check rejects every part of a backup, and a backup with any changed bit, except for the few bits that gzip ignores,
// which do not change the content.
func TestWhatIsNotWholeIsRefused(t *testing.T) {
	whole := made(t)
	unpacked := func(packed []byte) []byte {
		z, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		all, err := io.ReadAll(z)
		require.NoError(t, err)
		return all
	}
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		_, err := Check(bytes.NewReader(whole[:cut]))
		require.Error(t, err)
		at, bit := rapid.IntRange(0, len(whole)-1).Draw(t, "at"), rapid.IntRange(0, 7).Draw(t, "bit")
		changed := bytes.Clone(whole)
		changed[at] ^= 1 << bit
		if _, err = Check(bytes.NewReader(changed)); err == nil {
			require.Equal(t, unpacked(whole), unpacked(changed))
		} else {
			refused++
		}
	})
	require.Greater(t, refused, 50, "of 100")
}

func TestAnotherFileIsNoBackup(t *testing.T) {
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("hello"), "zip": []byte("PK\x03\x04")} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(bytes.NewReader(content))
			require.Error(t, err)
		})
	}
}
