package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/brief"
)

// smallDisk is a folder on a file system of 8 MiB. full uses up all of its space, and frees it when called again.
func smallDisk(t *testing.T) (dir string, full func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("memhost", dir, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Skip("no small file system: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	ballast := filepath.Join(dir, "ballast")
	return dir, func() {
		if os.Remove(ballast) == nil {
			return
		}
		f, err := os.Create(ballast)
		require.NoError(t, err)
		for size := 1 << 20; size > 0; {
			if _, err := f.Write(make([]byte, size)); err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				size /= 2
			}
		}
		_ = f.Close()
	}
}

// long is turn with some KiB of incompressible text.
func long(person string, n int) *abi.MemoryEvent {
	e := Turn(person, n)
	text := ""
	for len(text) < 4<<10 {
		text += fmt.Sprintf("%016x ", rand.Uint64())
	}
	e.Messages[0].Content = &text
	return e
}

// A backfill whose data folder is full waits, says why, and continues once there is space. The serving memory keeps
// answering, and loses nothing.
func TestABackfillWaitsForRoomOnTheDisk(t *testing.T) {
	brief.Leave(t)
	t.Parallel() // it waits more than it computes
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprint("given=", given), func(t *testing.T) {
			ctx := context.Background()
			dir, full := smallDisk(t)
			h := Open(t, Options{DataDir: dir, Archive: !given})
			s := OpenSlot(t, h, History(t, ""))
			if given {
				give(t, s, true, "bob", 0, 2)
			}
			for n := range 150 {
				var err error
				if given {
					_, err = s.BackfillEvents(ctx, &report.BackfillEvents{Events: []abi.MemoryEvent{*long("ann", n)}})
				} else {
					_, err = s.RecordEvent(ctx, long("ann", n))
				}
				require.NoError(t, err)
			}
			Record(t, s, "cy", 0, 3)
			full()
			if given {
				much := new(report.BackfillEvents)
				for n := range 400 {
					much.Events = append(much.Events, *long("dan", n))
				}
				_, err := s.BackfillEvents(ctx, much)
				RequireCode(t, err, abi.CodeUnavailable, "no space left", "make room")
			}
			full()

			_, err := s.Backfill(ctx, History(t, "next"), BackfillOptions{Rate: 100, Given: given})
			require.NoError(t, err)
			full()
			b := UntilState(t, s, report.FollowerWaiting)
			require.Contains(t, b.Progress.Error.Message, "no space left")
			require.Contains(t, b.Progress.Error.Hint, "make room")
			require.Equal(t, TurnIDs("cy", 0, 3), Remembered(t, s, "cy"))
			m, err := s.Manifest(ctx)
			require.NoError(t, err)
			require.Empty(t, m.Namespace, "the old memory serves on")

			full()
			Record(t, s, "cy", 3, 5)
			Serves(t, s, "next")
			require.Equal(t, TurnIDs("ann", 0, 150), Remembered(t, s, "ann"), "each once")
			if given {
				require.Equal(t, TurnIDs("cy", 3, 5), Remembered(t, s, "cy"))
			} else {
				require.Equal(t, TurnIDs("cy", 0, 5), Remembered(t, s, "cy"))
			}
		})
	}
}

// If the archive cannot be sealed for lack of space, events stay in the store; nothing is lost.
func TestAnArchiveIsSealedOnceThereIsRoom(t *testing.T) {
	ctx := context.Background()
	dir, full := smallDisk(t)
	h := Open(t, Options{DataDir: dir, Archive: true})
	h.archive.Close() // maintenance is run by the test
	Fill(t, h, 0, 200)
	s := OpenSlot(t, h, History(t, ""))
	Record(t, s, "ann", 0, 5)
	Fill(t, h, 200, 500)
	full()
	require.ErrorIs(t, h.archive.Tend(ctx), syscall.ENOSPC)
	require.Len(t, AllArchived(t, h, 0), 505)
	files, err := filepath.Glob(filepath.Join(dir, "archive", "*"))
	require.NoError(t, err)
	require.Empty(t, files, "nothing half is left behind")
	full()
	Tend(t, h)
	require.NotEmpty(t, SegmentFiles(t, h))
	require.Len(t, AllArchived(t, h, 0), 505)
	check, err := h.Archive().ArchiveCheck(ctx)
	require.NoError(t, err)
	require.Empty(t, check.Problems)
}

// While the disk is full and writes fail, health says so; once there is space it is ok after the next write.
func TestHealthNamesAFullDisk(t *testing.T) {
	ctx := context.Background()
	dir, full := smallDisk(t)
	s := OpenSlot(t, Open(t, Options{DataDir: dir}), History(t, ""))
	health := func() *abi.BackendHealth {
		h, err := s.Health(ctx)
		require.NoError(t, err)
		return h
	}
	require.Equal(t, abi.HealthOK, health().Status)
	full()
	refused := error(nil)
	for n := 0; refused == nil; n++ {
		require.Less(t, n, 1000)
		_, refused = s.RecordEvent(ctx, long("ann", n))
	}
	RequireCode(t, refused, abi.CodeUnavailable, "no space left")
	require.Equal(t, abi.HealthDegraded, health().Status)
	require.Contains(t, health().Warnings[len(health().Warnings)-1], "store_failing: the last write could not be kept: ")
	require.Contains(t, health().Warnings[len(health().Warnings)-1], "make room")
	full()
	Record(t, s, "bob", 0, 1)
	require.Equal(t, abi.HealthOK, health().Status)
}

// refusingStore rejects commits, like a store on a full disk.
type refusingStore struct{ state.Store }

func (refusingStore) Commit(context.Context, *state.Batch) (state.CommitResult, error) {
	return state.CommitResult{}, &state.Error{Kind: state.ErrUnavailable, Message: "no space left"}
}

// A segment whose record could not be committed is not damage: its file is removed.
func TestASegmentThatWasNotCommittedLeavesNoFile(t *testing.T) {
	ctx := context.Background()
	h := Open(t, Options{Archive: true})
	h.archive.Close() // maintenance is run by the test
	Fill(t, h, 0, 120)
	store := h.archive.Store
	h.archive.Store = refusingStore{store}
	require.ErrorIs(t, h.archive.Tend(ctx), state.ErrUnavailable)
	require.Empty(t, SegmentFiles(t, h))
	h.archive.Store = store
	check, err := h.Archive().ArchiveCheck(ctx)
	require.NoError(t, err)
	require.Empty(t, check.Problems)
	Tend(t, h)
	require.NotEmpty(t, SegmentFiles(t, h))
}
