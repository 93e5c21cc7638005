package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// TestAFullDiskLosesNothing: the tables are on a file system of 16 MiB. Once it is full, batches fail with a hint, and
// everything that was acknowledged is there.
func TestAFullDiskLosesNothing(t *testing.T) {
	brief.Leave(t)
	dir, err := os.MkdirTemp("", "pg")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mount("memhost", dir, "tmpfs", 0, "size=16m,mode=0700,uid=65534,gid=65534"); err != nil {
		t.Skip("no small file system: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	server := pgserver.Start(t)
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", dir))
	require.NoError(t, err)
	s := open(t, postgres.Options{URL: server.URL + "&default_tablespace=small", Many: true})
	noise := make([]byte, 1<<20) // incompressible, because PostgreSQL compresses data
	random := uint32(1)
	for i := range noise {
		random = random*1664525 + 1013904223
		noise[i] = byte(random >> 24)
	}
	there := 0
	for ; ; there++ {
		require.Less(t, there, 64)
		var b state.Batch
		b.Put(space, fmt.Sprint(there), noise, 0)
		if _, err = s.Commit(t.Context(), &b); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.ErrorContains(t, err, "make room on the server's disk")
	require.True(t, abi.AsError(err).Retryable)
	for i := range there {
		v, err := s.Get(t.Context(), space, fmt.Sprint(i))
		require.NoError(t, err)
		require.Len(t, v.Data, len(noise))
	}
	require.Positive(t, there)
}

func TestTooManyConnectionsSayWhatToDo(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	open(t, postgres.Options{URL: server.URL})
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "CREATE ROLE few LOGIN CONNECTION LIMIT 0")
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), postgres.Options{URL: strings.Replace(server.URL, "memhost@", "few@", 1)})
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.ErrorContains(t, err, "lower store.postgres.connections")
	require.True(t, abi.AsError(err).Retryable)
}
