package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

var ctx = context.Background()

func TestGetReturnsWhatWasPut(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	res := mustCommit(t, s, func(b *Batch) {
		require.Equal(t, 0, b.Put(space(1), "a", []byte("one"), AnyVersion))
		require.Equal(t, 1, b.Put(space(1), "empty", nil, 0))
	})
	require.Len(t, res.Versions, 2)
	require.Greater(t, res.Versions[1], res.Versions[0])

	v, err := s.Get(ctx, space(1), "a")
	require.NoError(t, err)
	require.Equal(t, Value{Data: []byte("one"), Version: res.Versions[0]}, v)
	v, err = s.Get(ctx, space(1), "empty")
	require.NoError(t, err)
	require.Equal(t, Value{Data: []byte{}, Version: res.Versions[1]}, v)
	v, err = s.Get(ctx, space(2), "a")
	require.NoError(t, err)
	require.Equal(t, Value{}, v, "another space is empty")
}

func TestVersionsAreNeverUsedAgain(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	put := func(b *Batch) { b.Put(space(1), "k", []byte("v"), 0) }
	first := mustCommit(t, s, put).Versions[0]
	mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(1), "") })
	second := mustCommit(t, s, put).Versions[0]
	require.Greater(t, second, first)
	mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(1), "") })
	require.NoError(t, s.Close())

	s = openTest(t, dir, Options{})
	require.Greater(t, mustCommit(t, s, put).Versions[0], second, "after a restart")
}

func TestExpectedVersionMustBeMet(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	v := mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", []byte("1"), 0) }).Versions[0]

	for name, c := range map[string]struct {
		key            string
		expected, have int64
		text           string
	}{
		"absent expected, there": {"k", 0, v, "expected that it is absent"},
		"version expected, other": {"k", v + 7, v,
			fmt.Sprintf("has version %d, expected that it has version %d", v, v+7)},
		"version expected, gone": {"other", v, 0, "is absent, expected that it has version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryCommit(s, func(b *Batch) {
				b.Put(space(1), "bystander", []byte("x"), AnyVersion)
				b.Put(space(1), c.key, []byte("2"), c.expected)
			})
			require.ErrorIs(t, err, ErrConflict)
			require.NotErrorIs(t, err, ErrUnavailable)
			require.ErrorContains(t, err, c.text)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, &Conflict{Space: space(1), Key: c.key, Expected: c.expected, Found: c.have}, e.Conflict)
		})
	}
	got, err := s.Get(ctx, space(1), "bystander")
	require.NoError(t, err)
	require.Zero(t, got, "nothing of a refused batch is applied")

	res := mustCommit(t, s, func(b *Batch) {
		b.Put(space(1), "k", []byte("2"), v)
		b.Put(space(1), "k", []byte("3"), AnyVersion) // the second put of a key in a batch must not name a version
	})
	got, err = s.Get(ctx, space(1), "k")
	require.NoError(t, err)
	require.Equal(t, Value{Data: []byte("3"), Version: res.Versions[1]}, got)
}

func TestLogsAreNumberedFromOneAndReadEitherWay(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	const n = 25
	res := mustCommit(t, s, func(b *Batch) {
		for i := 1; i <= n; i++ {
			b.Append(space(1), "log", fmt.Appendf(nil, "entry %02d", i))
			b.Append(space(1), "lo", []byte("other"))
		}
	})
	require.Equal(t, int64(1), res.Seqs[0])
	require.Equal(t, int64(n), res.Seqs[2*n-2])
	last, err := s.LastSeq(ctx, space(1), "log")
	require.NoError(t, err)
	require.Equal(t, int64(n), last)

	read := func(q LogQuery) (seqs []int64, more bool) {
		q.Log = "log"
		es, err := s.ReadLog(ctx, space(1), q)
		require.NoError(t, err)
		require.Equal(t, int64(n), es.Last)
		for _, e := range es.Items {
			require.Equal(t, fmt.Sprintf("entry %02d", e.Seq), string(e.Data))
			seqs = append(seqs, e.Seq)
		}
		return seqs, es.More
	}
	for _, c := range []struct {
		name string
		q    LogQuery
		want []int64
		more bool
	}{
		{"from the start", LogQuery{Limit: 2}, []int64{1, 2}, true},
		{"from the end", LogQuery{Limit: 2, Reverse: true}, []int64{25, 24}, true},
		{"from the middle", LogQuery{From: 24}, []int64{24, 25}, false},
		{"backwards from the middle", LogQuery{From: 2, Reverse: true}, []int64{2, 1}, false},
		{"behind the end", LogQuery{From: 26}, nil, false},
		{"backwards from behind the end", LogQuery{From: 99, Limit: 1, Reverse: true}, []int64{25}, true},
		{"one byte less than two entries", LogQuery{MaxBytes: 15}, []int64{1}, true},
		{"exactly two entries fit", LogQuery{MaxBytes: 16}, []int64{1, 2}, true},
		{"the first entry comes whatever its size", LogQuery{MaxBytes: 1, Reverse: true}, []int64{25}, true},
		{"the last page", LogQuery{From: 25, Limit: 1}, []int64{25}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seqs, more := read(c.q)
			require.Equal(t, c.want, seqs)
			require.Equal(t, c.more, more)
		})
	}
	es, err := s.ReadLog(ctx, space(1), LogQuery{Log: "l"})
	require.NoError(t, err)
	require.Equal(t, Entries{}, es, "a log that does not exist is empty")
}

func TestListPagesInByteOrder(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	keys := []string{"\x00", "a", "a\x00", "a/1", "a/2", "a\xff", "b", "\xff", "\xff\xff"}
	mustCommit(t, s, func(b *Batch) {
		for i := len(keys) - 1; i >= 0; i-- {
			b.Put(space(1), keys[i], []byte("value of "+keys[i]), 0)
		}
		b.Put(space(0), "a", []byte("before"), 0)
		b.Put(space(2), "a", []byte("behind"), 0)
	})
	for _, limit := range []int{1, 2, 3, 100} {
		for _, prefix := range []string{"", "a", "a/", "\xff", "nothing"} {
			var want, got []string
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			for after := ""; ; {
				page, err := s.List(ctx, space(1), ListQuery{Prefix: prefix, After: after, Limit: limit, Values: true})
				require.NoError(t, err)
				for _, item := range page.Items {
					got = append(got, item.Key)
					require.Equal(t, "value of "+item.Key, string(item.Data))
					require.Equal(t, len(item.Data), item.Size)
				}
				if !page.More {
					break
				}
				after = got[len(got)-1]
			}
			require.Equal(t, want, got, "prefix %q, pages of %d", prefix, limit)
		}
	}
	page, err := s.List(ctx, space(1), ListQuery{Prefix: "a", MaxBytes: 3})
	require.NoError(t, err)
	require.Len(t, page.Items, 2, "1 byte of key and 2 bytes of key")
	require.Nil(t, page.Items[0].Data)
	require.True(t, page.More)
	page, err = s.List(ctx, space(1), ListQuery{Prefix: "b", After: "a"})
	require.NoError(t, err)
	require.Len(t, page.Items, 1, "After before the prefix starts at the prefix")
}

func TestDeletePrefixRemovesKeysAndLogs(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	fill := func(b *Batch) {
		for _, sp := range []Space{space(1), space(2)} {
			for _, name := range []string{"a", "ab", "abc", "b"} {
				b.Put(sp, name, []byte("value"), AnyVersion)
				b.Append(sp, name, []byte("entry"))
				b.Append(sp, name, []byte("entry"))
			}
		}
	}
	mustCommit(t, s, fill)
	before, err := s.Usage(ctx, space(1))
	require.NoError(t, err)
	want := Counts{Keys: 2, Logs: 2, Entries: 4, Bytes: int64(2*(2+3) + 2*len("value") +
		4*(len("entry")+EntryOverhead))}
	count, err := s.Count(ctx, space(1), "ab")
	require.NoError(t, err)
	require.Equal(t, want, count)

	res := mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(1), "ab") })
	require.Equal(t, []Counts{want}, res.Deleted)
	after, err := s.Usage(ctx, space(1))
	require.NoError(t, err)
	require.Equal(t, want.Bytes, before-after)
	for name, there := range map[string]bool{"a": true, "ab": false, "abc": false, "b": true} {
		v, err := s.Get(ctx, space(1), name)
		require.NoError(t, err)
		require.Equal(t, there, v.Version != 0, name)
		last, err := s.LastSeq(ctx, space(1), name)
		require.NoError(t, err)
		require.Equal(t, there, last == 2, name)
	}
	other, err := s.Usage(ctx, space(2))
	require.NoError(t, err)
	require.Equal(t, before, other, "another space keeps its own")

	res = mustCommit(t, s, func(b *Batch) {
		b.Append(space(1), "ab", []byte("anew"))
		b.DeletePrefix(space(1), "a")
		b.Append(space(1), "ab", []byte("anew"))
	})
	require.Equal(t, []int64{1, 1}, res.Seqs, "a log that was deleted counts from 1 again")
	mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(1), "") })
	after, err = s.Usage(ctx, space(1))
	require.NoError(t, err)
	require.Zero(t, after)
}

func TestRecordsLiveInTables(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	got, err := s.Record(ctx, "ledger", []byte("a"))
	require.NoError(t, err)
	require.Nil(t, got, "absent")
	mustCommit(t, s, func(b *Batch) {
		b.ExpectRecord("ledger", []byte("a/1"), nil)
		b.PutRecord("ledger", []byte("a/1"), []byte("one"))
		b.PutRecord("ledger", []byte("a/2"), nil)
		b.PutRecord("ledger", []byte("b"), []byte("three"))
		b.PutRecord("modes", []byte("a/1"), []byte("another table"))
		b.DeleteRecord("nowhere", []byte("x"))
	})
	got, err = s.Record(ctx, "ledger", []byte("a/2"))
	require.NoError(t, err)
	require.Equal(t, []byte{}, got, "there, and empty")

	all, err := s.Records(ctx, "ledger", nil, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []KeyValue{{[]byte("a/1"), []byte("one")}, {[]byte("a/2"), []byte{}},
		{[]byte("b"), []byte("three")}}, all)
	some, err := s.Records(ctx, "ledger", []byte("a/"), []byte("a/1"), 5)
	require.NoError(t, err)
	require.Equal(t, all[1:2], some)
	some, err = s.Records(ctx, "ledger", nil, nil, 2)
	require.NoError(t, err)
	require.Equal(t, all[:2], some)

	for _, c := range []struct {
		key   string
		value []byte
		text  string
	}{
		{"a/1", nil, "expected that it is absent"},
		{"a/2", nil, "expected that it is absent"},
		{"a/1", []byte("other"), "not as expected"},
		{"c", []byte{}, "expected that it is there"},
	} {
		_, err := tryCommit(s, func(b *Batch) {
			b.DeleteRecord("ledger", []byte("b"))
			b.ExpectRecord("ledger", []byte(c.key), c.value)
		})
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorContains(t, err, c.text)
	}
	mustCommit(t, s, func(b *Batch) {
		b.ExpectRecord("ledger", []byte("a/1"), []byte("one"))
		b.ExpectRecord("ledger", []byte("a/2"), []byte{})
		b.DeleteRecord("ledger", []byte("a/1"))
		b.DeleteRecord("ledger", []byte("a/1"))
	})
	all, err = s.Records(ctx, "ledger", nil, nil, 0)
	require.NoError(t, err)
	require.Len(t, all, 2)
}

func TestQuotaRefusesGrowthOnly(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	put := func(n int, limit int64) error {
		_, err := tryCommit(s, func(b *Batch) {
			b.MaxSpaceBytes = limit
			b.Put(space(1), "k", make([]byte, n), AnyVersion)
		})
		return err
	}
	require.NoError(t, put(99, 100), "99 bytes and a key of 1 are 100")
	err := put(100, 100)
	require.ErrorIs(t, err, ErrQuota)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, &Quota{Space: space(1), Used: 100, Needed: 101, Limit: 100}, e.Quota)
	v, err := s.Get(ctx, space(1), "k")
	require.NoError(t, err)
	require.Len(t, v.Data, 99)
	require.NoError(t, put(50, 10), "a batch that shrinks the space passes below no limit")
	require.NoError(t, put(50, 10), "nor does one that leaves its size alone")
	_, err = tryCommit(s, func(b *Batch) {
		b.MaxSpaceBytes = 60
		b.Append(space(2), "log", nil)
		b.Append(space(1), "log", nil)
	})
	require.ErrorIs(t, err, ErrQuota, "51 + 3 of the name + 8 for the entry")
	n, err := s.Usage(ctx, space(2))
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestInvalidRequestsAreNamed(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	long := strings.Repeat("x", MaxName+1)
	for name, fill := range map[string]func(b *Batch){
		"key has 0 bytes":               func(b *Batch) { b.Put(space(1), "", nil, 0) },
		"key has 16385 bytes":           func(b *Batch) { b.Put(space(1), long, nil, 0) },
		"expected version of key":       func(b *Batch) { b.Put(space(1), "k", nil, -2) },
		"log name has 0 bytes":          func(b *Batch) { b.Append(space(1), "", nil) },
		"prefix has 16385 bytes":        func(b *Batch) { b.DeletePrefix(space(1), long) },
		"name of the table has 0 bytes": func(b *Batch) { b.PutRecord("", []byte("k"), nil) },
		"record key has 0 bytes":        func(b *Batch) { b.DeleteRecord("t", nil) },
		"operation 1: record key has 163": func(b *Batch) {
			b.ExpectRecord("t", []byte("k"), nil)
			b.ExpectRecord("t", []byte(long), nil)
		},
		"MaxSpaceBytes is -1": func(b *Batch) { b.MaxSpaceBytes = -1 },
	} {
		_, err := tryCommit(s, fill)
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
	_, err := s.List(ctx, space(1), ListQuery{Limit: -1})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = s.ReadLog(ctx, space(1), LogQuery{From: -1})
	require.ErrorIs(t, err, ErrInvalid)
	mustCommit(t, s, func(b *Batch) { // the largest possible names
		b.Put(space(1), long[1:], []byte("v"), 0)
		b.Append(space(1), long[1:], []byte("e"))
		b.PutRecord(Table(long[1:]), []byte(long[1:]), []byte("r"))
	})
	for _, name := range []string{"", long} { // impossible names are absent
		v, err := s.Get(ctx, space(1), name)
		require.NoError(t, err)
		require.Zero(t, v)
		last, err := s.LastSeq(ctx, space(1), name)
		require.NoError(t, err)
		require.Zero(t, last)
		r, err := s.Record(ctx, Table(name), []byte(name))
		require.NoError(t, err)
		require.Nil(t, r)
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice is harmless")
	_, err := s.Get(ctx, space(1), "k")
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = tryCommit(s, func(b *Batch) { b.PutRecord("t", []byte("k"), nil) })
	require.ErrorIs(t, err, ErrClosed)
}

func TestCancelledContextReadsAndCommitsNothing(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.Get(over, space(1), "k")
	require.ErrorIs(t, err, context.Canceled)
	var b Batch
	b.Put(space(1), "k", []byte("v"), 0)
	_, err = s.Commit(over, &b)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, ErrUnavailable))
	v, err := s.Get(ctx, space(1), "k")
	require.NoError(t, err)
	require.Zero(t, v)
}

// TestAnImportFillsItsPages: with bbolt's default every page of an import stays half empty.
func TestAnImportFillsItsPages(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Durability: DurabilityProcess})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	value := bytes.Repeat([]byte("x"), 250)
	for n := range 100 {
		var b Batch
		space := Space{byte(n * 37)}
		for i := range 2 * bulkOps {
			b.Put(space, fmt.Sprintf("key %04d", i), value, 0)
			b.PutRecord("t", fmt.Appendf(space[:], "key %04d", i), value)
		}
		_, err := s.Commit(t.Context(), &b)
		require.NoError(t, err)
	}
	require.NoError(t, s.view(t.Context(), "test", func(tx *bbolt.Tx) error {
		for _, b := range []*bbolt.Bucket{tx.Bucket([]byte(bucketKV)), tx.Bucket([]byte(bucketTables)).Bucket([]byte("t"))} {
			used := b.Stats()
			require.Greater(t, float64(used.LeafInuse)/float64(used.LeafAlloc), 0.75)
		}
		return nil
	}))
}
