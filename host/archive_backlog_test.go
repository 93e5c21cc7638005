package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"
)

const backlogEvents = 2_000 // about 40 segments

// withBacklog is a host whose archive has much to seal, as after an import.
func withBacklog(t *testing.T, dir string) *Host {
	h, err := New(t.Context(), Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	blocked := filepath.Join(dir, "archive")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600)) // at the path of the segments' folder: nothing can be sealed
	Fill(t, h, 0, backlogEvents)
	require.NoError(t, os.Remove(blocked))
	return h
}

// TestWhoForgetsDoesNotWaitUntilABacklogIsSealed, but for one segment.
func TestWhoForgetsDoesNotWaitUntilABacklogIsSealed(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	h := withBacklog(t, dir)
	sealed := make(chan error, 1)
	go func() { sealed <- h.archive.Tend(context.Background()) }()
	require.Eventually(t, func() bool {
		files, _ := os.ReadDir(filepath.Join(dir, "archive"))
		return len(files) > 0
	}, 30*time.Second, time.Millisecond)
	erased, err := h.archive.Forget(ctx, "persona", func(e *abi.MemoryEvent) bool { return e.EventID == "e1999" }, nil)
	require.NoError(t, err)
	require.Len(t, erased, 1)
	stats, err := h.Archive().ArchiveStats(ctx)
	require.NoError(t, err)
	require.Greater(t, stats.OpenBytes, int64(10*archive.SealBytes), "much is still to be sealed")
	require.NoError(t, <-sealed)
	stats, err = h.Archive().ArchiveStats(ctx)
	require.NoError(t, err)
	require.Less(t, stats.OpenBytes, int64(archive.SealBytes))
	require.NoError(t, h.Close(ctx))
}

// TestAHostEndsBeforeABacklogIsSealed: a supervisor that waits some seconds would kill it.
func TestAHostEndsBeforeABacklogIsSealed(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	require.NoError(t, withBacklog(t, dir).Close(ctx))
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	require.NoError(t, h.Close(ctx)) // it has begun to seal
	store, err := state.Open(dir, state.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	list, err := archive.SegmentsOf(ctx, store, false)
	require.NoError(t, err)
	var entries int64
	for _, info := range list {
		entries += info.Entries
	}
	require.Less(t, entries, int64(backlogEvents/2), "the rest is sealed later")
}
