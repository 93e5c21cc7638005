package segments

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASegmentIsReadAsItWasWrittenAndDamageIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	text := bytes.Repeat([]byte(`{"seq":1,"event":{"event_id":"e"}}`+"\n"), 1000)
	info, err := Write(dir, Info{First: 1, Last: 1000}, text)
	require.NoError(t, err)
	require.EqualValues(t, 1000, info.Entries)
	require.EqualValues(t, len(text), info.TextBytes)
	require.Less(t, info.FileBytes, info.TextBytes/10)
	again, err := Read(dir, info)
	require.NoError(t, err)
	require.Equal(t, text, again)

	path := filepath.Join(dir, info.Name())
	packed, err := os.ReadFile(path)
	require.NoError(t, err)
	damage := func(content []byte, want string) {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := Read(dir, info)
		require.ErrorContains(t, err, want)
	}
	damage(packed[:len(packed)-1], "were sealed")
	edited := bytes.Clone(packed)
	edited[len(edited)/2] ^= 1
	damage(edited, "was changed after it was sealed")
	require.NoError(t, os.Remove(path))
	_, err = Read(dir, info)
	require.ErrorContains(t, err, "is gone")
	require.NoError(t, Remove(dir, info))
}

func TestAFileThatUnpacksToMoreThanWasSealedIsRefused(t *testing.T) {
	dir := t.TempDir()
	info, err := Write(dir, Info{First: 1}, bytes.Repeat([]byte("x"), 64<<20))
	require.NoError(t, err)
	info.TextBytes = 100
	_, err = Read(dir, info)
	require.ErrorContains(t, err, "does not unpack to the 100 bytes")
}

func TestStraysAreFilesThatNoSegmentHas(t *testing.T) {
	dir := t.TempDir()
	known, err := Write(dir, Info{First: 1}, []byte("a\n"))
	require.NoError(t, err)
	stray, err := Write(dir, Info{First: 2}, []byte("b\n"))
	require.NoError(t, err)
	strays, err := Strays(dir, []Info{known})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, stray.Name())}, strays)
	none, err := Strays(filepath.Join(dir, "absent"), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}
