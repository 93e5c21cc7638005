//go:build unix

package postgres_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

var space = state.Space{15: 1}

func TestNamesOfAnySizeAndBytesKeepTheirOrder(t *testing.T) {
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL})
	long := strings.Repeat("\x00", 511)
	longest := strings.Repeat("long. \x00", state.MaxName)[:state.MaxName]
	names := []string{ // in the order of their bytes
		"\x00", long, long + "\x00", long + "\x00\x00", long + "\x00\x00\x00", long + "\x00\x01", long + "\x00\xff",
		long + "\x01", "a b", "a.b", longest[:512], longest[:513], longest[:state.MaxName-1], longest,
		"\xff", "\xff\xff",
	}
	var b state.Batch
	for _, name := range names {
		b.Put(space, name, []byte(name), 0)
		b.Append(space, name, []byte(name))
		b.PutRecord(state.Table(name), []byte(name), []byte(name))
		b.PutRecord("all", []byte(name), nil)
	}
	_, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)

	for i, name := range names {
		v, err := s.Get(t.Context(), space, name)
		require.NoError(t, err)
		require.Equal(t, name, string(v.Data))
		page, err := s.List(t.Context(), space, state.ListQuery{After: name})
		require.NoError(t, err)
		var behind []string
		for _, item := range page.Items {
			behind = append(behind, item.Key)
		}
		require.Equal(t, names[i+1:], append([]string{}, behind...))
		records, err := s.Records(t.Context(), "all", nil, []byte(name), 0)
		require.NoError(t, err)
		require.Len(t, records, len(names)-i-1)
		one, err := s.Records(t.Context(), state.Table(name), nil, nil, 0)
		require.NoError(t, err)
		require.Equal(t, []state.KeyValue{{Key: []byte(name), Value: []byte(name)}}, one)

		for _, n := range []int{1, 511, 512, 513, len(name)} {
			prefix := name[:min(n, len(name))]
			want := state.Counts{}
			for _, other := range names {
				if strings.HasPrefix(other, prefix) {
					want.Keys, want.Logs, want.Entries = want.Keys+1, want.Logs+1, want.Entries+1
					want.Bytes += int64(4*len(other) + state.EntryOverhead)
				}
			}
			got, err := s.Count(t.Context(), space, prefix)
			require.NoError(t, err)
			require.Equal(t, want, got, "prefix of %d bytes", len(prefix))
		}
	}
}

func TestLargeValue(t *testing.T) {
	brief.Leave(t)
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL})
	large := bytes.Repeat([]byte("0123456789abcdef"), 4<<20) // 64 MiB
	var b state.Batch
	b.Put(space, "a", large, 0)
	b.Put(space, "b", []byte("small"), 0)
	b.Append(space, "log", large)
	_, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
	v, err := s.Get(t.Context(), space, "a")
	require.NoError(t, err)
	require.True(t, bytes.Equal(large, v.Data))
	page, err := s.List(t.Context(), space, state.ListQuery{Values: true, MaxBytes: 1 << 20})
	require.NoError(t, err)
	require.Len(t, page.Items, 1, "the first comes whatever its size")
	require.True(t, page.More)

	var tooLarge state.Batch
	tooLarge.Put(space, "c", make([]byte, postgres.MaxValue+1), 0)
	_, err = s.Commit(t.Context(), &tooLarge)
	require.ErrorIs(t, err, state.ErrInvalid)
	require.ErrorContains(t, err, "the database takes at most 536870912")
}

func TestTheSizeIsThatOfTheTables(t *testing.T) {
	brief.Leave(t)
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL})
	empty, err := s.Size(t.Context())
	require.NoError(t, err)
	require.Positive(t, empty, "tables and indexes")
	random := make([]byte, 1<<20) // PostgreSQL compresses what can be compressed
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	var b state.Batch
	b.Put(space, "a", random, 0)
	_, err = s.Commit(t.Context(), &b)
	require.NoError(t, err)
	full, err := s.Size(t.Context())
	require.NoError(t, err)
	require.Greater(t, full, empty+int64(len(random)))
}

func TestResetOfManyKeys(t *testing.T) {
	brief.Leave(t)
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL})
	var b state.Batch
	for i := range 5000 {
		b.Put(space, fmt.Sprint("key ", i), []byte("value"), 0)
	}
	_, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
	var reset state.Batch
	reset.DeletePrefix(space, "")
	res, err := s.Commit(t.Context(), &reset)
	require.NoError(t, err)
	require.EqualValues(t, 5000, res.Deleted[0].Keys)
	used, err := s.Usage(t.Context(), space)
	require.NoError(t, err)
	require.Zero(t, used)
}

func TestDamageIsAnErrorAndNeverAWrongAnswer(t *testing.T) {
	server := pgserver.Start(t)
	s := open(t, postgres.Options{URL: server.URL})
	var b state.Batch
	b.Put(space, "key", []byte("value"), 0)
	b.PutRecord("table", []byte("key"), []byte("value"))
	for range 3 {
		b.Append(space, "log", []byte("entry"))
		b.Append(space, "cut", []byte("entry"))
		b.Append(space, "gap", []byte("entry"))
	}
	_, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	for _, statement := range []string{
		"UPDATE kv SET data = 'valuf'", "UPDATE records SET data = 'valuf'",
		"UPDATE entries SET data = 'entrz' WHERE log = (SELECT id FROM logs WHERE head = 'log') AND seq = 2",
		"DELETE FROM entries WHERE log = (SELECT id FROM logs WHERE head = 'cut') AND seq = 3",
		"DELETE FROM entries WHERE log = (SELECT id FROM logs WHERE head = 'gap') AND seq = 2",
	} {
		_, err := conn.Exec(t.Context(), "SET search_path = memhost; "+statement)
		require.NoError(t, err)
	}
	_, err = s.Get(t.Context(), space, "key")
	require.ErrorIs(t, err, state.ErrDamaged)
	_, err = s.List(t.Context(), space, state.ListQuery{Values: true})
	require.ErrorIs(t, err, state.ErrDamaged)
	_, err = s.Record(t.Context(), "table", []byte("key"))
	require.ErrorIs(t, err, state.ErrDamaged)
	_, err = s.Records(t.Context(), "table", nil, nil, 0)
	require.ErrorIs(t, err, state.ErrDamaged)
	for _, log := range []string{"log", "cut", "gap"} {
		for _, reverse := range []bool{false, true} {
			_, err = s.ReadLog(t.Context(), space, state.LogQuery{Log: log, Reverse: reverse})
			require.ErrorIs(t, err, state.ErrDamaged, "%s %t", log, reverse)
		}
	}
	es, err := s.ReadLog(t.Context(), space, state.LogQuery{Log: "gap", Limit: 1, Reverse: true})
	require.ErrorIs(t, err, state.ErrDamaged, "%v", es)
}
