package state

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// operation is what recording an event commits: an entry, a key and a ledger record.
func operation(sp Space, i int, value []byte) *Batch {
	b := &Batch{MaxSpaceBytes: 1 << 40}
	b.Append(sp, "turns", value)
	b.Put(sp, "cursor", value[:16], AnyVersion)
	b.PutRecord("ledger", fmt.Appendf(nil, "%s/%09d", sp, i), value[:200])
	return b
}

// BenchmarkCommit has one caller. The baseline is a bbolt transaction with one put and its two syncs.
func BenchmarkCommit(b *testing.B) {
	value := make([]byte, 1000)
	b.Run("baseline=bbolt", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, nil)
		require.NoError(b, err)
		defer func() { require.NoError(b, db.Close()) }()
		i := 0
		for b.Loop() {
			i++
			require.NoError(b, db.Update(func(tx *bbolt.Tx) error {
				t, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				return t.Put(fmt.Appendf(nil, "%09d", i), value)
			}))
		}
	})
	for _, durability := range []Durability{DurabilityPower, DurabilityProcess} {
		b.Run("durability="+string(durability), func(b *testing.B) {
			s := openTest(b, b.TempDir(), Options{Durability: durability})
			i := 0
			for b.Loop() {
				i++
				_, err := s.Commit(ctx, operation(space(1), i, value))
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkCommitTogether has many callers that share syncs, so ns/op falls with their number.
func BenchmarkCommitTogether(b *testing.B) {
	value := make([]byte, 1000)
	for _, durability := range []Durability{DurabilityPower, DurabilityProcess} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("durability=%s/callers=%d", durability, callers), func(b *testing.B) {
				var groups atomic.Int64
				s := openTest(b, b.TempDir(), Options{Durability: durability, beforeWrite: func(int) { groups.Add(1) }})
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for c := range callers {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							if _, err := s.Commit(ctx, operation(space(byte(c)), int(i), value)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/float64(max(1, groups.Load())), "batches/sync")
			})
		}
	}
}

func fillLog(tb testing.TB, s *Bolt, n int) {
	value := make([]byte, 500)
	for done := 0; done < n; {
		mustCommit(tb, s, func(b *Batch) {
			for range min(10000, n-done) {
				b.Append(space(1), "turns", value)
				done++
			}
		})
	}
}

// BenchmarkAppend shows that the cost of an append does not grow with the log.
func BenchmarkAppend(b *testing.B) {
	for _, entries := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			s := openTest(b, b.TempDir(), Options{})
			fillLog(b, s, entries)
			value := make([]byte, 500)
			for b.Loop() {
				var batch Batch
				batch.Append(space(1), "turns", value)
				_, err := s.Commit(ctx, &batch)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkReadNewest reads the newest 50 entries, whose cost does not grow with the log.
func BenchmarkReadNewest(b *testing.B) {
	for _, entries := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			s := openTest(b, b.TempDir(), Options{})
			fillLog(b, s, entries)
			for b.Loop() {
				es, err := s.ReadLog(ctx, space(1), LogQuery{Log: "turns", Reverse: true, Limit: 50})
				require.NoError(b, err)
				require.Len(b, es.Items, 50)
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := openTest(b, b.TempDir(), Options{})
	mustCommit(b, s, func(b *Batch) {
		for i := range 10_000 {
			b.Put(space(1), fmt.Sprint(i), make([]byte, 200), AnyVersion)
		}
	})
	i := 0
	for b.Loop() {
		i++
		_, err := s.Get(ctx, space(1), fmt.Sprint(i%10_000))
		require.NoError(b, err)
	}
}

// BenchmarkDeletePrefix removes a log of 100,000 entries of 500 bytes in one transaction.
func BenchmarkDeletePrefix(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := openTest(b, b.TempDir(), Options{Durability: DurabilityPower})
		fillLog(b, s, 100_000)
		b.StartTimer()
		res := mustCommit(b, s, func(b *Batch) { b.DeletePrefix(space(1), "") })
		require.Equal(b, int64(100_000), res.Deleted[0].Entries)
		b.StopTimer()
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}

// BenchmarkOpen opens a file with 100,000 entries of 500 bytes, including the check of its structure.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := openTest(b, dir, Options{})
	fillLog(b, s, 100_000)
	require.NoError(b, s.Close())
	info, err := os.Stat(s.path)
	require.NoError(b, err)
	b.SetBytes(info.Size())
	for b.Loop() {
		s, err := Open(dir, Options{})
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}
