package host_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/backup"
	"github.com/memhost/memhost/internal/test/testcache"
)

// unpack does the same as tar -xzf.
func unpack(t *testing.T, packed []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err == io.EOF {
			return dir
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, os.FileMode(header.Mode)))
	}
}

// Backups are made while events are recorded and the archive is sealed and merged. Each is a data folder with
// everything that was acknowledged before the backup started.
func TestABackupIsADataFolderOfOneMoment(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h := host.Open(t, host.Options{DataDir: dir, Archive: true})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "defaults.json"), []byte("{}"), 0o600))
	const batches, each = 8, 150
	backups, acknowledged := make([]bytes.Buffer, batches), make([]int, batches)
	for i := range batches {
		_, err := s.RecordEvent(ctx, host.Event(fmt.Sprint("recorded-", i), "echo x"))
		require.NoError(t, err)
		made := make(chan error, 1)
		acknowledged[i] = i*(each+1) + 1
		go func() { made <- h.Backup(ctx, &backups[i], "defaults.json", "absent.json") }()
		host.Fill(t, h, i*each, (i+1)*each)
		host.Tend(t, h)
		require.NoError(t, <-made)
	}
	for i := range batches {
		contents, err := backup.Check(bytes.NewReader(backups[i].Bytes()))
		require.NoError(t, err)
		require.Equal(t, state.DataFile, contents.Files[0].Name)
		copied := unpack(t, backups[i].Bytes())
		require.FileExists(t, filepath.Join(copied, "defaults.json"))
		again, err := host.New(ctx, host.Options{DataDir: copied, CacheDir: testcache.Dir(), Archive: true})
		require.NoError(t, err)
		check, err := again.Archive().ArchiveCheck(ctx)
		require.NoError(t, err)
		require.Empty(t, check.Problems)
		require.GreaterOrEqual(t, int(check.Events), acknowledged[i])
		require.NoError(t, again.Close(ctx))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAReceiptOfABackupIsADuplicate(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	_, err := s.RecordEvent(ctx, host.Event("e1", "echo x"))
	require.NoError(t, err)
	var packed bytes.Buffer
	require.NoError(t, h.Backup(ctx, &packed))
	again := host.OpenSlot(t, host.Open(t, host.Options{DataDir: unpack(t, packed.Bytes())}), host.ProbeConfig(`{}`))
	receipt, err := again.RecordEvent(ctx, host.Event("e1", "echo x"))
	require.NoError(t, err)
	require.True(t, receipt.Duplicate)
}

// fullDisk is a disk that accepts a limited number of bytes.
type fullDisk struct{ left int }

var errFull = errors.New("no space left")

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	h := host.Open(t, host.Options{DataDir: dir, Archive: true})
	host.Fill(t, h, 0, 100)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, fails := range map[string]func() error{
		"the disk is full":    func() error { return h.Backup(t.Context(), &fullDisk{left: 1000}) },
		"the caller has left": func() error { return h.Backup(ended, io.Discard) },
	} {
		t.Run(name, func(t *testing.T) {
			err := fails()
			require.True(t, errors.Is(err, errFull) || errors.Is(err, context.Canceled), "%v", err)
			left, err := filepath.Glob(filepath.Join(dir, "*.new"))
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoError(t, h.Backup(t.Context(), io.Discard), "it can be made again")
		})
	}
}

// A snapshot left by a killed process is a second copy of what people said, so the next start removes it.
func TestTheSnapshotOfAKilledProcessGoesWithTheNextStart(t *testing.T) {
	dir := t.TempDir()
	store, err := state.Open(dir, state.Options{})
	require.NoError(t, err)
	snapshot, err := store.Snapshot(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(snapshot, state.DataFile))
	require.NoError(t, store.Close())
	host.Open(t, host.Options{DataDir: dir})
	require.NoDirExists(t, snapshot)
}

func TestAStoreWithoutSnapshotsSaysWhatToUse(t *testing.T) {
	h := host.Open(t, host.Options{OpenStore: func(_ context.Context, dir string) (state.Store, error) {
		store, err := state.Open(dir, state.Options{})
		return struct{ state.Store }{store}, err
	}})
	err := h.Backup(t.Context(), io.Discard)
	require.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
	require.Contains(t, abi.AsError(err).Hint, "pg_dump")
}
