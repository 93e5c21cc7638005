package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
)

// fillFolder puts keys, logs and records at random places, and deletes half of the spaces.
func fillFolder(t *testing.T, dir string, commits int) {
	s, err := Open(dir, Options{Durability: DurabilityProcess})
	require.NoError(t, err)
	for n := range commits {
		mustCommit(t, s, func(b *Batch) {
			sp := space(byte(n % 40))
			sum := sha256.Sum256(fmt.Append(nil, n))
			b.Put(sp, hex.EncodeToString(sum[:]), make([]byte, n%500), AnyVersion)
			b.Append(sp, "log", sum[:])
			b.PutRecord("ledger", sum[:], make([]byte, n%200))
		})
	}
	for n := range 20 {
		mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(byte(n)), "") })
	}
	require.NoError(t, s.Close())
}

// contentOf is a digest of all that a folder's store holds, with the version of each key.
func contentOf(t *testing.T, dir string) string {
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	digest := sha256.New()
	operations := 0
	require.NoError(t, Walk(ctx, s, func(Table) bool { return false }, func(op Op) error {
		operations++
		version := int64(0)
		if op.Kind == OpPut {
			v, err := s.Get(ctx, op.Space, op.Name)
			if err != nil {
				return err
			}
			version = v.Version
		}
		_, err := fmt.Fprintf(digest, "%v %q %q %x %q %d\n", op.Kind, op.Table, op.Name, op.Space, op.Value, version)
		return err
	}))
	require.NotZero(t, operations)
	return hex.EncodeToString(digest.Sum(nil))
}

func TestCompactKeepsTheContentAndMakesTheFileSmaller(t *testing.T) {
	dir := t.TempDir()
	fillFolder(t, dir, 6000)
	content := contentOf(t, dir)
	before, after, err := Compact(dir)
	require.NoError(t, err)
	require.Less(t, after, before/2+1)
	info, err := os.Stat(filepath.Join(dir, DataFile))
	require.NoError(t, err)
	require.Equal(t, after, info.Size())
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.True(t, closedCleanly(filepath.Join(dir, DataFile)))
	require.Equal(t, content, contentOf(t, dir))
	fillFolder(t, dir, 100) // it can be written
}

// TestCompactLeavesAFolderOfAnotherAlone: that of a slot that runs.
func TestCompactLeavesAFolderOfAnotherAlone(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	_, _, err := Compact(dir)
	require.ErrorIs(t, err, ErrOwned)
	mustCommit(t, s, func(b *Batch) { b.Put(space(1), "key", nil, AnyVersion) })
}

// TestNothingIsLostWhileAFolderIsCompacted: those who wait for the folder while its file is replaced get the new one.
func TestNothingIsLostWhileAFolderIsCompacted(t *testing.T) {
	dir := t.TempDir()
	fillFolder(t, dir, 200)
	const writers, each = 4, 20
	var all sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		all.Go(func() {
			for range each {
				s, err := Open(dir, Options{Durability: DurabilityProcess, LockTimeout: time.Minute})
				if !assert.NoError(t, err) {
					return
				}
				_, err = tryCommit(s, func(b *Batch) { b.Append(space(200), fmt.Sprint("writer ", w), nil) })
				assert.NoError(t, err)
				assert.NoError(t, s.Close())
			}
		})
	}
	go func() { defer close(done); all.Wait() }()
	compacted := 0
	for ended := false; !ended; {
		if _, _, err := Compact(dir); err == nil {
			compacted++
		} else {
			require.ErrorIs(t, err, ErrOwned)
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	require.NotZero(t, compacted)
	s := openTest(t, dir, Options{})
	for w := range writers {
		last, err := s.LastSeq(context.Background(), space(200), fmt.Sprint("writer ", w))
		require.NoError(t, err)
		require.EqualValues(t, each, last)
	}
	t.Logf("compacted %d times", compacted)
}

// TestACompactionThatIsKilled leaves the content as it was, and no other file.
func TestACompactionThatIsKilled(t *testing.T) {
	rounds := 30
	if brief.Tests() {
		rounds = 8
	}
	dir := t.TempDir()
	fillFolder(t, dir, 3000)
	content := contentOf(t, dir)
	for range rounds {
		cmd, out := helper(t, "compact "+dir)
		require.True(t, out.Scan()) // it has begun
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		_ = cmd.Process.Kill()
		require.Error(t, cmd.Wait(), "killed")
		require.Equal(t, content, contentOf(t, dir))
		left, err := filepath.Glob(filepath.Join(dir, "*.new"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// compactForEver compacts a folder again and again.
func compactForEver(dir string) {
	fmt.Println("begins")
	for {
		if _, _, err := Compact(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}
