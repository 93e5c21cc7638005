//go:build unix

package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// query connects to a server as its owner and runs statements.
func query(t *testing.T, url string, statements ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	return conn
}

// deletedRows writes rows and deletes them, and returns a function that counts those still in the pages of their table.
func deletedRows(t *testing.T, s *postgres.Store, url string) (left func() int) {
	t.Helper()
	for _, deletes := range []bool{false, true} {
		var b state.Batch
		for i := range 100 {
			key := fmt.Appendf(nil, "zorvex-%d", i)
			if deletes {
				b.DeleteRecord("t", key)
			} else {
				b.PutRecord("t", key, []byte("likes milk"))
			}
		}
		_, err := s.Commit(t.Context(), &b)
		require.NoError(t, err)
	}
	conn := query(t, url, "CREATE EXTENSION IF NOT EXISTS pageinspect", "SET search_path TO memhost, public")
	return func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM
			generate_series(0, pg_relation_size('records') / 8192 - 1) AS page,
			heap_page_items(get_raw_page('records', page::int)) WHERE position('zorvex'::bytea IN t_data) > 0`).Scan(&n))
		return n
	}
}

func TestScrubRemovesDeletedRows(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	s := open(t, postgres.Options{URL: server.URL, Many: true})
	left := deletedRows(t, s, server.URL)
	require.Positive(t, left(), "without scrubbing the test would prove nothing")
	require.NoError(t, s.Scrub(t.Context()))
	require.Zero(t, left())
	require.Len(t, s.Outside(), 3)
}

func TestScrubReportsWhatVacuumLeaves(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	owned := open(t, postgres.Options{URL: server.URL})
	left := deletedRows(t, owned, server.URL)

	t.Run("an older transaction sees them", func(t *testing.T) {
		var b state.Batch
		b.PutRecord("t", []byte("zorvex"), nil)
		_, err := owned.Commit(t.Context(), &b)
		require.NoError(t, err)
		reader := query(t, server.URL, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM memhost.records")
		var d state.Batch
		d.DeleteRecord("t", []byte("zorvex"))
		_, err = owned.Commit(t.Context(), &d)
		require.NoError(t, err)
		err = owned.Scrub(t.Context())
		require.ErrorIs(t, err, state.ErrUnavailable)
		require.ErrorContains(t, err, "is older sees them")
		require.Equal(t, 1, left())
		_, err = reader.Exec(t.Context(), "COMMIT")
		require.NoError(t, err)
		require.NoError(t, owned.Scrub(t.Context()))
		require.Zero(t, left())
	})
	t.Run("the user does not own the tables", func(t *testing.T) {
		query(t, server.URL, "CREATE ROLE guest LOGIN", "GRANT USAGE ON SCHEMA memhost TO guest",
			"GRANT ALL ON ALL TABLES IN SCHEMA memhost TO guest")
		s, err := postgres.Open(t.Context(), postgres.Options{URL: server.URL + "&user=guest"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		err = s.Scrub(t.Context())
		require.ErrorIs(t, err, state.ErrUnavailable)
		require.ErrorContains(t, err, `"records"`)
	})
}
