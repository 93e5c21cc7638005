//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/move"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/pgserver"
)

func folder(t *testing.T, dir string) *state.Bolt {
	s, err := state.Open(dir, state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fill writes data that is hard to copy: names with NUL bytes and of 16 KiB, empty and large values, long logs.
func fill(t *testing.T, s state.Store) {
	var b state.Batch
	long := strings.Repeat("n", state.MaxName)
	for i := range 3 {
		space := state.Space{byte(i), 0xff}
		b.Put(space, "a\x00b", []byte{}, 0)
		b.Put(space, "a", []byte("value"), 0)
		b.Put(space, long, make([]byte, 3<<20), 0)
		for n := range 1500 {
			b.Append(space, "log\x00", fmt.Append(nil, n))
			b.Append(space, "log", nil)
		}
	}
	for n := range 2500 {
		b.PutRecord("ledger", fmt.Appendf(nil, "%08d", n), []byte("receipt"))
	}
	b.PutRecord("empty value", []byte{0}, []byte{})
	b.PutRecord("stays", []byte("k"), []byte("v"))
	_, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
}

func options(progress func(int64)) move.Options {
	return move.Options{Leave: func(t state.Table) bool { return t == "stays" }, Progress: progress}
}

func nothing(int64) {}

// TestAStoreIsMovedThereAndBack: what comes back is the same, and each store that was left rejects hosts.
func TestAStoreIsMovedThereAndBack(t *testing.T) {
	opts := postgres.Options{URL: pgserver.Start(t).URL, One: true}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	database, err := postgres.Open(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close()) })
	first, last := folder(t, t.TempDir()), folder(t, t.TempDir())
	fill(t, first)
	require.NoError(t, move.Check(t.Context(), first))
	there, err := move.Move(t.Context(), move.Side{Store: first, Name: "first"}, move.Side{Store: database, Name: "database"},
		options(nothing))
	require.NoError(t, err)
	require.NoError(t, move.Check(t.Context(), database))
	err = move.Check(t.Context(), first)
	require.ErrorIs(t, err, state.ErrMoved)
	require.ErrorContains(t, err, "was moved to database at ")
	require.Equal(t, "moved", abi.AsError(err).Reason)
	_, err = move.Move(t.Context(), move.Side{Store: first, Name: "first"}, move.Side{Store: last, Name: "last"},
		options(nothing))
	require.ErrorIs(t, err, state.ErrMoved, "it is somewhere else by now")

	back, err := move.Move(t.Context(), move.Side{Store: database, Name: "database"}, move.Side{Store: last, Name: "last"},
		options(nothing))
	require.NoError(t, err)
	require.Equal(t, there, back)
	require.EqualValues(t, 3*(3+3000)+2501, back.Operations)
	require.ErrorIs(t, move.Check(t.Context(), database), state.ErrMoved)
	require.NoError(t, move.Check(t.Context(), last))
	kept, err := last.Record(t.Context(), "stays", []byte("k"))
	require.NoError(t, err)
	require.Nil(t, kept)
	seq, err := last.LastSeq(t.Context(), state.Space{1, 0xff}, "log\x00")
	require.NoError(t, err)
	require.EqualValues(t, 1500, seq)
}

// failingStore is a store whose commits fail from a certain one on. Two stores may share the count.
type failingStore struct {
	*state.Bolt
	left *int
}

var errDied = errors.New("killed")

func (d failingStore) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if *d.left--; *d.left < 0 {
		return state.CommitResult{}, errDied
	}
	return d.Bolt.Commit(ctx, b)
}

// TestAnInterruptedMoveGoesOn: whichever commit it was interrupted before, the next attempt ends with the same digest,
// and at no time can hosts serve from both stores, or from an incomplete new one.
func TestAnInterruptedMoveGoesOn(t *testing.T) {
	full := t.TempDir()
	source := folder(t, full)
	fill(t, source)
	require.NoError(t, source.Close())
	text, err := os.ReadFile(filepath.Join(full, state.DataFile))
	require.NoError(t, err)
	sides := func(left *int) (from, to move.Side) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, state.DataFile), text, 0o600))
		return move.Side{Store: failingStore{folder(t, dir), left}, Name: "from"},
			move.Side{Store: failingStore{folder(t, t.TempDir()), left}, Name: "to"}
	}
	const many = 1 << 30
	left := many
	from, to := sides(&left)
	_, err = move.Move(t.Context(), from, to, options(nothing))
	require.NoError(t, err)
	all := many - left
	for _, commits := range []int{0, 1, 7, all - 3, all - 2, all - 1} {
		left = commits
		from, to := sides(&left)
		_, err := move.Move(t.Context(), from, to, options(nothing))
		require.ErrorIs(t, err, errDied)
		if commits > 0 {
			require.ErrorIs(t, move.Check(t.Context(), to.Store), state.ErrMoved)
		}
		left = many
		if move.Check(t.Context(), from.Store) != nil {
			other := move.Side{Store: folder(t, t.TempDir()), Name: "other"}
			_, err = move.Move(t.Context(), from, other, options(nothing))
			require.ErrorIs(t, err, state.ErrMoved, "it goes on to where it went")
			other.Name = to.Name
			_, err = move.Move(t.Context(), from, other, options(nothing))
			require.ErrorIs(t, err, state.ErrMoved, "a new store of that name does not have what has come since")
		}
		r, err := move.Move(t.Context(), from, to, options(nothing))
		require.NoError(t, err)
		require.Equal(t, commits > 0, r.Resumed)
		require.EqualValues(t, 3*(3+3000)+2501, r.Operations)
		require.NoError(t, move.Check(t.Context(), to.Store))
		require.ErrorIs(t, move.Check(t.Context(), from.Store), state.ErrMoved)
		_, err = move.Move(t.Context(), from, to, options(nothing))
		require.ErrorContains(t, err, "was moved to to at ")
	}
}

func TestAStoreThatChangedWhileItWasMovedIsRefused(t *testing.T) {
	from := folder(t, t.TempDir())
	fill(t, from)
	left := 3
	to := failingStore{folder(t, t.TempDir()), &left}
	_, err := move.Move(t.Context(), move.Side{Store: from}, move.Side{Store: to}, options(nothing))
	require.ErrorIs(t, err, errDied)
	var b state.Batch
	b.PutRecord("empty value", []byte{0}, []byte("no longer"))
	_, err = from.Commit(t.Context(), &b)
	require.NoError(t, err)
	left = 1 << 30
	_, err = move.Move(t.Context(), move.Side{Store: from, Name: "from"}, move.Side{Store: to, Name: "to"}, options(nothing))
	require.ErrorIs(t, err, state.ErrInvalid)
	require.ErrorContains(t, err, "from has changed since")
}
