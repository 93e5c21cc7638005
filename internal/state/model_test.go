package state

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is what the store promises, in maps.
type model struct {
	kv      map[Space]map[string]Value
	logs    map[Space]map[string][][]byte
	records map[Table]map[string][]byte
	version int64
}

func newModel() *model {
	return &model{kv: map[Space]map[string]Value{}, logs: map[Space]map[string][][]byte{},
		records: map[Table]map[string][]byte{}}
}

func (m *model) clone() *model {
	c := newModel()
	c.version = m.version
	for s, kv := range m.kv {
		c.kv[s] = maps.Clone(kv)
	}
	for s, logs := range m.logs {
		c.logs[s] = map[string][][]byte{}
		for name, entries := range logs {
			c.logs[s][name] = slices.Clone(entries)
		}
	}
	for t, records := range m.records {
		c.records[t] = maps.Clone(records)
	}
	return c
}

func (m *model) counts(s Space, prefix string) Counts {
	var n Counts
	for key, v := range m.kv[s] {
		if strings.HasPrefix(key, prefix) {
			n.Keys++
			n.Bytes += int64(len(key) + len(v.Data))
		}
	}
	for name, entries := range m.logs[s] {
		if strings.HasPrefix(name, prefix) {
			n.Logs++
			n.Entries += int64(len(entries))
			n.Bytes += int64(len(name) + EntryOverhead*len(entries))
			for _, e := range entries {
				n.Bytes += int64(len(e))
			}
		}
	}
	return n
}

// commit applies b to a copy, which it returns with the sequence numbers, deletions and kind of error expected.
// Versions are the store's to choose.
func (m *model) commit(b *Batch, versions []int64) (after *model, seqs []int64, deleted []Counts, err error) {
	for _, o := range b.ops {
		switch {
		case o.kind == opPut && o.expected != AnyVersion && m.kv[o.space][o.name].Version != o.expected,
			o.kind == opExpectRecord && !sameRecord(m.records[o.table][o.name], o.value):
			return m, nil, nil, ErrConflict
		}
	}
	after, seqs, deleted = m.clone(), []int64{}, []Counts{}
	puts := 0
	for _, o := range b.ops {
		if after.kv[o.space] == nil {
			after.kv[o.space] = map[string]Value{}
			after.logs[o.space] = map[string][][]byte{}
		}
		if after.records[o.table] == nil {
			after.records[o.table] = map[string][]byte{}
		}
		value := append([]byte{}, o.value...)
		switch o.kind {
		case opPut:
			v := Value{Data: value}
			if puts < len(versions) {
				v.Version = versions[puts]
			}
			after.kv[o.space][o.name] = v
			puts++
		case opAppend:
			after.logs[o.space][o.name] = append(after.logs[o.space][o.name], value)
			seqs = append(seqs, int64(len(after.logs[o.space][o.name])))
		case opDeletePrefix:
			deleted = append(deleted, after.counts(o.space, o.name))
			begins := func(name string) bool { return strings.HasPrefix(name, o.name) }
			maps.DeleteFunc(after.kv[o.space], func(k string, _ Value) bool { return begins(k) })
			maps.DeleteFunc(after.logs[o.space], func(k string, _ [][]byte) bool { return begins(k) })
		case opPutRecord:
			after.records[o.table][o.name] = value
		case opDeleteRecord:
			delete(after.records[o.table], o.name)
		}
	}
	for s := range after.kv {
		was, now := m.counts(s, "").Bytes, after.counts(s, "").Bytes
		if b.MaxSpaceBytes > 0 && now > b.MaxSpaceBytes && now > was {
			return m, nil, nil, ErrQuota
		}
	}
	return after, seqs, deleted, nil
}

// Few names, many of them prefixes of each other, with the bytes that sort first and last.
var (
	names = []string{"a", "aa", "ab", "a\x00", "a\xff", "b", "\x00", "\xff", "\xff\xff", "\x00\x01",
		strings.Repeat("long", 200)}
	spaces   = []Space{{}, {15: 1}, {0: 'a', 1: 'a'}, {0: 0xff, 15: 0xff}}
	tables   = []Table{"ledger", "ledge", "modes"}
	prefixes = append([]string{"", "l"}, names...)
)

func drawBatch(t *rapid.T, m *model) *Batch {
	b := &Batch{MaxSpaceBytes: rapid.SampledFrom([]int64{0, 0, 0, 3000, 100}).Draw(t, "max")}
	value := func() []byte {
		return bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")},
			rapid.SampledFrom([]int{0, 1, 10, 300, 9000}).Draw(t, "size"))
	}
	touched := map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "ops") {
		s, name := rapid.SampledFrom(spaces).Draw(t, "space"), rapid.SampledFrom(names).Draw(t, "name")
		table := rapid.SampledFrom(tables).Draw(t, "table")
		switch rapid.IntRange(0, 9).Draw(t, "op") {
		case 0, 1, 2:
			expected := int64(AnyVersion)
			switch k := s.String() + name; {
			case touched[k]:
			case rapid.IntRange(0, 3).Draw(t, "how") > 0:
				expected = m.kv[s][name].Version
			case rapid.Bool().Draw(t, "wrong"):
				expected = rapid.Int64Range(0, m.version+1).Draw(t, "expected")
			}
			touched[s.String()+name] = true
			b.Put(s, name, value(), expected)
		case 3, 4, 5:
			b.Append(s, name, value())
		case 6:
			b.DeletePrefix(s, rapid.SampledFrom(prefixes).Draw(t, "prefix"))
		case 7:
			b.PutRecord(table, []byte(name), value())
		case 8:
			b.DeleteRecord(table, []byte(name))
		case 9:
			want := m.records[table][name]
			if rapid.IntRange(0, 9).Draw(t, "how") == 0 {
				want = rapid.SampledFrom([][]byte{nil, {}, []byte("x")}).Draw(t, "want")
			}
			b.ExpectRecord(table, []byte(name), want)
		}
	}
	return b
}

// TestStoreAgreesWithModel: random histories of batches, with restarts, end in what the model holds.
func TestStoreAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		s, err := Open(dir, Options{Durability: DurabilityProcess})
		require.NoError(rt, err)
		defer func() { require.NoError(rt, s.Close()) }()
		m := newModel()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			if rapid.IntRange(0, 19).Draw(rt, "restart") == 0 {
				require.NoError(rt, s.Close())
				s, err = Open(dir, Options{Durability: DurabilityProcess})
				require.NoError(rt, err)
			}
			b := drawBatch(rt, m)
			res, err := s.Commit(ctx, b)
			after, seqs, deleted, wantErr := m.commit(b, res.Versions)
			if wantErr != nil {
				require.ErrorIs(rt, err, wantErr)
				require.Equal(rt, CommitResult{}, res)
				continue
			}
			require.NoError(rt, err)
			require.Equal(rt, seqs, res.Seqs)
			require.Equal(rt, deleted, res.Deleted)
			require.Len(rt, res.Versions, b.puts)
			for _, v := range res.Versions {
				require.Greater(rt, v, m.version, "versions only grow")
				after.version = max(after.version, v)
				m.version = v
			}
			m = after
		}
		compare(rt, s, m)
	})
}

// compare reads everything, in pages of random shape, and counts usage anew.
func compare(t *rapid.T, s Store, m *model) {
	for _, sp := range spaces {
		items := map[string]Value{}
		q := ListQuery{Values: true, Limit: rapid.IntRange(1, 12).Draw(t, "limit"),
			MaxBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "bytes")}
		for more := true; more; {
			page, err := s.List(ctx, sp, q)
			require.NoError(t, err)
			for _, i := range page.Items {
				require.Greater(t, i.Key, q.After)
				q.After = i.Key
				items[i.Key] = Value{Data: i.Data, Version: i.Version}
			}
			more = page.More
		}
		want := m.kv[sp]
		if want == nil {
			want = map[string]Value{}
		}
		require.Equal(t, want, items)
		for _, name := range names {
			v, err := s.Get(ctx, sp, name)
			require.NoError(t, err)
			require.Equal(t, m.kv[sp][name], v)
			compareLog(t, s, sp, name, m.logs[sp][name])
		}
		for _, prefix := range prefixes {
			n, err := s.Count(ctx, sp, prefix)
			require.NoError(t, err)
			require.Equal(t, m.counts(sp, prefix), n)
		}
		used, err := s.Usage(ctx, sp)
		require.NoError(t, err)
		require.Equal(t, m.counts(sp, "").Bytes, used, "usage is exact")
	}
	for _, table := range tables {
		records, err := s.Records(ctx, table, nil, nil, 0)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(m.records[table])), recordKeys(records))
		for _, r := range records {
			require.Equal(t, m.records[table][string(r.Key)], r.Value)
			one, err := s.Record(ctx, table, r.Key)
			require.NoError(t, err)
			require.Equal(t, r.Value, one)
		}
	}
}

func compareLog(t *rapid.T, s Store, sp Space, name string, want [][]byte) {
	reverse := rapid.Bool().Draw(t, "reverse")
	q := LogQuery{Log: name, Reverse: reverse, Limit: rapid.IntRange(1, 5).Draw(t, "limit"),
		MaxBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "bytes")}
	var got [][]byte
	for more := true; more; {
		es, err := s.ReadLog(ctx, sp, q)
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), es.Last)
		for _, e := range es.Items {
			got = append(got, e.Data)
			if reverse {
				require.Equal(t, int64(len(want)-len(got)+1), e.Seq)
				q.From = e.Seq - 1
			} else {
				require.Equal(t, int64(len(got)), e.Seq)
				q.From = e.Seq + 1
			}
		}
		more = es.More
	}
	if reverse {
		slices.Reverse(got)
	}
	require.Equal(t, want, got)
	last, err := s.LastSeq(ctx, sp, name)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), last)
}

func recordKeys(kvs []KeyValue) (keys []string) {
	for _, kv := range kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// FuzzSpacesAndLogsDoNotMix: whatever bytes names and spaces are made of, what is written under one is never seen under
// another.
func FuzzSpacesAndLogsDoNotMix(f *testing.F) {
	f.Add([]byte{}, []byte{3}, "a", "ab", "a")
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"), "\xff", "\xff\xff", "\xff")
	f.Add([]byte("0123456789abcdef"), []byte("0123456789abcdee"), "f", "\x00\x00\x00\x00\x00\x00\x00\x01", "")
	f.Add([]byte{1}, []byte{2}, "\x00", "\x00\x00\x01", "\x00")
	s, err := Open(f.TempDir(), Options{Durability: DurabilityProcess})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close()) })
	f.Fuzz(func(t *testing.T, spaceA, spaceB []byte, nameA, nameB, prefix string) {
		var a, b Space
		copy(a[:], spaceA)
		copy(b[:], spaceB)
		if a == b || nameA == nameB || nameA == "" || nameB == "" || len(nameA)+len(nameB)+len(prefix) > MaxName {
			return // nothing to tell apart
		}
		mustCommit(t, s, func(w *Batch) {
			w.DeletePrefix(a, "")
			w.DeletePrefix(b, "")
			for _, sp := range []Space{a, b} {
				for _, name := range []string{nameA, nameB} {
					w.Put(sp, name, []byte(sp.String()+name), AnyVersion)
					w.Append(sp, name, []byte(sp.String()+name))
				}
			}
		})
		check := func(sp Space, name string, there bool) {
			v, err := s.Get(ctx, sp, name)
			require.NoError(t, err)
			es, err := s.ReadLog(ctx, sp, LogQuery{Log: name})
			require.NoError(t, err)
			if !there {
				require.Zero(t, v)
				require.Zero(t, es)
				return
			}
			require.Equal(t, sp.String()+name, string(v.Data))
			require.Equal(t, Entries{Items: []Entry{{Seq: 1, Data: v.Data}}, Last: 1}, es)
		}
		keys := func(sp Space) (keys []string) {
			page, err := s.List(ctx, sp, ListQuery{})
			require.NoError(t, err)
			for _, i := range page.Items {
				keys = append(keys, i.Key)
			}
			return keys
		}
		both := []string{min(nameA, nameB), max(nameA, nameB)}
		require.Equal(t, both, keys(a))
		mustCommit(t, s, func(w *Batch) { w.DeletePrefix(a, prefix) })
		for _, name := range both {
			check(a, name, !strings.HasPrefix(name, prefix))
			check(b, name, true)
		}
		require.Equal(t, both, keys(b))
	})
}
