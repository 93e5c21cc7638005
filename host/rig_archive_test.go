package host

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state/segments"
	"github.com/stretchr/testify/require"
)

// Tend seals what the archive holds, and removes what it may no longer hold.
func Tend(t testing.TB, h *Host) {
	t.Helper()
	require.NoError(t, h.archive.Tend(context.Background()))
}

// AllArchived reads the archive page by page.
func AllArchived(t testing.TB, h *Host, limit int64) []abi.MemoryEvent {
	t.Helper()
	var all []abi.MemoryEvent
	for request := new(report.ArchiveRequest); ; {
		request.Limit = limit
		page, err := h.Archive().ArchivePage(context.Background(), request)
		require.NoError(t, err)
		all = append(all, page.Events...)
		request.After = page.Last
		if !page.More {
			return all
		}
	}
}

// SegmentFiles returns the archive's files.
func SegmentFiles(t testing.TB, h *Host) []string {
	t.Helper()
	files, err := segments.Strays(h.archive.Dir, nil)
	require.NoError(t, err)
	return files
}

// Fill adds events of about 5 KiB.
func Fill(t testing.TB, h *Host, from, to int) {
	t.Helper()
	const most = 200 // 1 MiB
	for from < to {
		batch := new(abi.EventBatch)
		for ; from < to && len(batch.Events) < most; from++ {
			text := fmt.Sprintf("%d %s", from, strings.Repeat("lorem ipsum ", 400))
			batch.Events = append(batch.Events, *Event(fmt.Sprint("e", from), text))
		}
		receipt, err := h.Archive().ArchiveAdd(context.Background(), batch)
		require.NoError(t, err)
		require.EqualValues(t, len(batch.Events), receipt.Added)
	}
}

// Sealed returns the archive's segments, the oldest first.
func Sealed(t testing.TB, h *Host) []segments.Info {
	t.Helper()
	list, err := h.archive.Segments(context.Background())
	require.NoError(t, err)
	return list
}
