// Package statetest has tests that every state.Store must pass.
package statetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/state"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model implements what the store guarantees with maps.
type model struct {
	kv      map[state.Space]map[string]state.Value
	logs    map[state.Space]map[string][][]byte
	records map[state.Table]map[string][]byte
	version int64
}

func newModel() *model {
	return &model{kv: map[state.Space]map[string]state.Value{}, logs: map[state.Space]map[string][][]byte{},
		records: map[state.Table]map[string][]byte{}}
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

func (m *model) counts(s state.Space, prefix string) state.Counts {
	var n state.Counts
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
			n.Bytes += int64(len(name) + state.EntryOverhead*len(entries))
			for _, e := range entries {
				n.Bytes += int64(len(e))
			}
		}
	}
	return n
}

// commit applies b to a copy, which it returns with the expected sequence numbers, deletions and kind of error. The
// store chooses the versions.
func (m *model) commit(b *state.Batch, versions []int64) (after *model, seqs []int64, deleted []state.Counts,
	err error) {
	for _, o := range b.Ops() {
		switch {
		case o.Kind == state.OpPut && o.Expected != state.AnyVersion && m.kv[o.Space][o.Name].Version != o.Expected,
			o.Kind == state.OpExpectRecord && !sameRecord(m.records[o.Table][o.Name], o.Value):
			return m, nil, nil, state.ErrConflict
		}
	}
	after, seqs, deleted = m.clone(), []int64{}, []state.Counts{}
	puts := 0
	for _, o := range b.Ops() {
		if after.kv[o.Space] == nil {
			after.kv[o.Space] = map[string]state.Value{}
			after.logs[o.Space] = map[string][][]byte{}
		}
		if after.records[o.Table] == nil {
			after.records[o.Table] = map[string][]byte{}
		}
		value := append([]byte{}, o.Value...)
		switch o.Kind {
		case state.OpPut:
			v := state.Value{Data: value}
			if puts < len(versions) {
				v.Version = versions[puts]
			}
			after.kv[o.Space][o.Name] = v
			puts++
		case state.OpAppend:
			after.logs[o.Space][o.Name] = append(after.logs[o.Space][o.Name], value)
			seqs = append(seqs, int64(len(after.logs[o.Space][o.Name])))
		case state.OpDeletePrefix:
			deleted = append(deleted, after.counts(o.Space, o.Name))
			begins := func(name string) bool { return strings.HasPrefix(name, o.Name) }
			maps.DeleteFunc(after.kv[o.Space], func(k string, _ state.Value) bool { return begins(k) })
			maps.DeleteFunc(after.logs[o.Space], func(k string, _ [][]byte) bool { return begins(k) })
		case state.OpPutRecord:
			after.records[o.Table][o.Name] = value
		case state.OpDeleteRecord:
			delete(after.records[o.Table], o.Name)
		}
	}
	for s := range after.kv {
		was, now := m.counts(s, "").Bytes, after.counts(s, "").Bytes
		if b.MaxSpaceBytes > 0 && now > b.MaxSpaceBytes && now > was {
			return m, nil, nil, state.ErrQuota
		}
	}
	return after, seqs, deleted, nil
}

// Few names, many of them prefixes of each other, with the bytes that sort first and last.
var (
	names = []string{"a", "aa", "ab", "a\x00", "a\xff", "b", "\x00", "\xff", "\xff\xff", "\x00\x01",
		strings.Repeat("long", 200)}
	spaces   = []state.Space{{}, {15: 1}, {0: 'a', 1: 'a'}, {0: 0xff, 15: 0xff}}
	tables   = []state.Table{"ledger", "ledge", "modes"}
	prefixes = append([]string{"", "l"}, names...)
)

func drawBatch(t *rapid.T, m *model) *state.Batch {
	b := &state.Batch{MaxSpaceBytes: rapid.SampledFrom([]int64{0, 0, 0, 3000, 100}).Draw(t, "max")}
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
			expected := int64(state.AnyVersion)
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

// AgreesWithModel runs random histories of batches against stores that open returns, with restarts in between, and
// compares the final content of each store with the model's. reopen is called after the store was closed. Each history
// starts with what open returns, which must be empty.
func AgreesWithModel(t *testing.T, open func() (store state.Store, reopen func() (state.Store, error), err error)) {
	rapid.Check(t, func(rt *rapid.T) {
		s, reopen, err := open()
		require.NoError(rt, err)
		defer func() { require.NoError(rt, s.Close()) }()
		m := newModel()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			if rapid.IntRange(0, 19).Draw(rt, "restart") == 0 {
				require.NoError(rt, s.Close())
				s, err = reopen()
				require.NoError(rt, err)
			}
			b := drawBatch(rt, m)
			res, err := s.Commit(rt.Context(), b)
			after, seqs, deleted, wantErr := m.commit(b, res.Versions)
			if wantErr != nil {
				require.ErrorIs(rt, err, wantErr)
				require.Equal(rt, state.CommitResult{}, res)
				continue
			}
			require.NoError(rt, err)
			require.Equal(rt, seqs, res.Seqs)
			require.Equal(rt, deleted, res.Deleted)
			require.Len(rt, res.Versions, puts(b))
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

func puts(b *state.Batch) (n int) {
	for _, o := range b.Ops() {
		if o.Kind == state.OpPut {
			n++
		}
	}
	return n
}

// sameRecord compares a record (nil when absent) with an expected one.
func sameRecord(have, want []byte) bool {
	return (have == nil) == (want == nil) && bytes.Equal(have, want)
}

// compare reads everything, in pages of random sizes, and recomputes the usage.
func compare(t *rapid.T, s state.Store, m *model) {
	for _, sp := range spaces {
		items := map[string]state.Value{}
		q := state.ListQuery{Values: true, Limit: rapid.IntRange(1, 12).Draw(t, "limit"),
			MaxBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "bytes")}
		for more := true; more; {
			page, err := s.List(t.Context(), sp, q)
			require.NoError(t, err)
			for _, i := range page.Items {
				require.Greater(t, i.Key, q.After)
				q.After = i.Key
				items[i.Key] = state.Value{Data: i.Data, Version: i.Version}
			}
			more = page.More
		}
		want := m.kv[sp]
		if want == nil {
			want = map[string]state.Value{}
		}
		require.Equal(t, want, items)
		for _, name := range names {
			v, err := s.Get(t.Context(), sp, name)
			require.NoError(t, err)
			require.Equal(t, m.kv[sp][name], v)
			compareLog(t, s, sp, name, m.logs[sp][name])
		}
		for _, prefix := range prefixes {
			n, err := s.Count(t.Context(), sp, prefix)
			require.NoError(t, err)
			require.Equal(t, m.counts(sp, prefix), n)
		}
		used, err := s.Usage(t.Context(), sp)
		require.NoError(t, err)
		require.Equal(t, m.counts(sp, "").Bytes, used, "usage is exact")
	}
	for _, table := range tables {
		records, err := s.Records(t.Context(), table, nil, nil, 0)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(m.records[table])), recordKeys(records))
		for _, r := range records {
			require.Equal(t, m.records[table][string(r.Key)], r.Value)
			one, err := s.Record(t.Context(), table, r.Key)
			require.NoError(t, err)
			require.Equal(t, r.Value, one)
		}
	}
}

func compareLog(t *rapid.T, s state.Store, sp state.Space, name string, want [][]byte) {
	reverse := rapid.Bool().Draw(t, "reverse")
	q := state.LogQuery{Log: name, Reverse: reverse, Limit: rapid.IntRange(1, 5).Draw(t, "limit"),
		MaxBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "bytes")}
	var got [][]byte
	for more := true; more; {
		es, err := s.ReadLog(t.Context(), sp, q)
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
	last, err := s.LastSeq(t.Context(), sp, name)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), last)
}

func recordKeys(kvs []state.KeyValue) (keys []string) {
	for _, kv := range kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}
