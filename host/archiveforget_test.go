package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

func TestTheArchiveForgetsSealedAndOpenEvents(t *testing.T) {
	const events = 200 // about 1 MiB: four segments, and unsealed entries
	ctx := context.Background()
	dir := t.TempDir()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	Fill(t, h, 0, events)
	Tend(t, h)
	before, err := h.Archive().ArchiveStats(ctx)
	require.NoError(t, err)
	require.Positive(t, before.Segments)
	require.Positive(t, before.OpenEvents)
	require.Len(t, AllArchived(t, h, 0), events) // now the last segment is unpacked in memory

	out := map[string]bool{"e0": true, "e1": true, "e60": true, fmt.Sprint("e", events-1): true}
	matches := func(e *abi.MemoryEvent) bool { return out[e.EventID] }
	gone, err := h.archive.Forget(ctx, TestScope.PersonaID, matches, nil)
	require.NoError(t, err)
	require.Len(t, gone, len(out))
	again, err := h.archive.Forget(ctx, TestScope.PersonaID, matches, nil)
	require.NoError(t, err)
	require.Empty(t, again)

	check := func() {
		for _, limit := range []int64{0, 1, 17} {
			left := AllArchived(t, h, limit)
			require.Len(t, left, events-len(out), "limit %d", limit)
			for i := range left {
				require.False(t, out[left[i].EventID])
			}
		}
		stats, err := h.Archive().ArchiveStats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, events-len(out), stats.Events)
		found, err := h.Archive().ArchiveCheck(ctx)
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		require.EqualValues(t, events-len(out), found.Events)
		require.Len(t, SegmentFiles(t, h), int(stats.Segments), "the old files are gone")
		list, err := h.archive.Segments(ctx)
		require.NoError(t, err)
		for _, info := range list {
			text, err := segments.Read(h.archive.Dir, info)
			require.NoError(t, err)
			for id := range out {
				require.NotContains(t, string(text), fmt.Sprintf("%q", id))
			}
		}
	}
	check()
	require.NoError(t, h.Close(ctx))
	h = Open(t, Options{DataDir: dir, Archive: true})
	check()
}

func TestAnOpenArchiveOfForgottenEventsOnly(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{Archive: true})
	Fill(t, h, 0, 5)
	_, err := h.archive.Forget(ctx, TestScope.PersonaID, func(e *abi.MemoryEvent) bool { return e.EventID != "e4" }, nil)
	require.NoError(t, err)
	require.Len(t, AllArchived(t, h, 2), 1, "the event behind a page of forgotten ones is found")
	_, err = h.archive.Forget(ctx, TestScope.PersonaID, func(*abi.MemoryEvent) bool { return true }, nil)
	require.NoError(t, err)
	require.Empty(t, AllArchived(t, h, 2))
}

func TestADamagedSegmentIsNotTakenForForgotten(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{Archive: true})
	Fill(t, h, 0, 160)
	Tend(t, h)
	files := SegmentFiles(t, h)
	require.NotEmpty(t, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(files[0], text, 0o600))
	gone, err := h.archive.Forget(ctx, TestScope.PersonaID, func(e *abi.MemoryEvent) bool { return e.EventID == "e0" || e.EventID == "e159" },
		nil)
	require.False(t, RequireCode(t, err, abi.CodeUnavailable, "was changed after it was sealed").Retryable)
	require.Len(t, gone, 1, "what is not damaged forgets")
	called, leave := context.WithCancel(ctx)
	_, err = h.archive.Forget(called, TestScope.PersonaID, func(*abi.MemoryEvent) bool {
		leave()
		return false
	}, nil)
	RequireCode(t, err, abi.CodeTimeout, "the call ended first") // not the damage, which did not stop the rest

	s := OpenSlot(t, h, History(t, ""))
	RunCommands(t, s, "said", "My cat is called Zorvex.")
	r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: TestScope, EventIDs: []string{"said"}})
	require.NoError(t, err)
	require.Equal(t, abi.ForgetPartial, r.Status)
	require.Equal(t, []string{"said"}, r.Removed[NativeArchived])
	require.Contains(t, strings.Join(r.DerivedMayRemain, "\n"), "was changed after it was sealed")
	known := LedgerEntry(t, s, "said")
	require.Nil(t, known, "the ledger forgets it, too")

	give(t, s, true, "ann", 0, 3)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: PersonScope("ann"), EventIDs: TurnIDs("ann", 1, 2)})
	require.NoError(t, err)
	stats, err := h.given.ArchiveStats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Events, "what waits to be filled in forgets it, too")
}

// TestForgettingReadsTheSegmentsOfThePersonOnly: an archive of millions of events is not unpacked to forget one person.
func TestForgettingReadsTheSegmentsOfThePersonOnly(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{Archive: true})
	fill := func(who string, from, to int) {
		batch := new(abi.EventBatch)
		for i := from; i < to; i++ {
			e := Event(fmt.Sprint(who, i), strings.Repeat("lorem ipsum ", 400))
			e.UserID = who
			batch.Events = append(batch.Events, *e)
		}
		_, err := h.Archive().ArchiveAdd(ctx, batch)
		require.NoError(t, err)
		Tend(t, h)
	}
	fill("ann", 0, 160)
	fill("ben", 0, 160)
	var files []string // of ann alone
	for _, info := range Sealed(t, h) {
		if info.Last <= 160 {
			files = append(files, filepath.Join(h.archive.Dir, info.Name()))
		}
	}
	require.NotEmpty(t, files)
	hide := func(from, to string) {
		for _, file := range files {
			require.NoError(t, os.Rename(file+from, file+to))
		}
	}
	forget := func(who string) (gone []*abi.MemoryEvent, err error) {
		return h.archive.Forget(ctx, who, func(e *abi.MemoryEvent) bool { return e.UserID == who }, nil)
	}
	forgotten := 0
	unreadable := func(who string) {
		hide("", ".away")
		defer hide(".away", "")
		gone, err := forget(who)
		RequireCode(t, err, abi.CodeUnavailable, "is gone")
		forgotten += len(gone) // in other segments
	}
	unread := func(who string) {
		hide("", ".away")
		defer hide(".away", "")
		gone, err := forget(who)
		require.NoError(t, err)
		require.Empty(t, gone)
	}
	unread("nobody")
	unreadable("ann")
	unread("nobody")

	var b state.Batch // as in a folder of an older memhost
	for _, info := range Sealed(t, h) {
		b.DeleteRecord("segment_people", binary.BigEndian.AppendUint64(nil, uint64(info.First)))
	}
	_, err := h.store.Commit(ctx, &b)
	require.NoError(t, err)
	unreadable("nobody")
	_, err = forget("nobody")
	require.NoError(t, err)
	unread("nobody") // the last request has stored whose events the segments have

	for _, who := range []string{"ann", "ben"} {
		gone, err := forget(who)
		require.NoError(t, err)
		forgotten += len(gone)
	}
	require.Equal(t, 2*160, forgotten)
}
