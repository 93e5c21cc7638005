//go:build unix

package postgres_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADataFolderBelongsToOneCluster(t *testing.T) {
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Many: true, Past: filepath.Join(t.TempDir(), "cluster.json")}
	first := open(t, opts)
	require.NoError(t, put(first, "first"))
	other := opts
	other.Schema = "other"
	_, err := postgres.Migrate(t.Context(), other)
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), other)
	require.ErrorIs(t, err, state.ErrIdentity)
	require.ErrorContains(t, err, "belongs to cluster")
	require.Equal(t, "another_cluster", abi.AsError(err).Reason)
	require.False(t, abi.AsError(err).Retryable)
	again := open(t, opts)
	require.NoError(t, put(again, "its own"))
}

// TestARestoredDatabaseIsRefusedUntilTheLossIsAccepted: the server is restored from a copy of its files. A running host
// and a restarted one reject it, even after another host, which knows nothing about it, has written to it.
func TestARestoredDatabaseIsRefusedUntilTheLossIsAccepted(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	file := filepath.Join(t.TempDir(), "cluster.json")
	opts := postgres.Options{URL: server.URL, Many: true, Past: file, Session: time.Second, Timeout: 5 * time.Second}
	runs := open(t, opts)
	require.NoError(t, put(runs, "in the backup"))
	server.Kill()
	restore := server.Copy()
	server.Run()
	for range 3 { // the first one may use a connection that is gone
		_ = put(runs, "lost")
	}
	require.NoError(t, put(runs, "lost"))
	stopped := open(t, opts)
	require.NoError(t, stopped.Close())

	server.Kill()
	restore()
	server.Run()
	fresh := opts
	fresh.Past = ""
	newcomer := open(t, fresh)
	for range 10 { // its commits get the numbers of the lost ones
		require.NoError(t, put(newcomer, "after"))
	}
	var err error
	require.Eventually(t, func() bool {
		_, err = runs.Get(t.Context(), space, "k")
		return abi.AsError(err).Reason == "commits_lost"
	}, 30*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, err, state.ErrLoss)
	require.ErrorContains(t, err, "memhost cluster accept-loss")
	require.ErrorIs(t, put(runs, "refused"), state.ErrLoss)
	_, err = postgres.Open(t.Context(), opts)
	require.ErrorIs(t, err, state.ErrLoss)
	require.ErrorContains(t, err, "has lost commits: this host saw number ")

	operator, err := postgres.Open(t.Context(), postgres.Options{URL: server.URL})
	require.NoError(t, err, "status and accept-loss work")
	incarnation, err := operator.AcceptLoss(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, incarnation)
	require.NoError(t, operator.Close())
	require.ErrorIs(t, put(runs, "refused"), state.ErrLoss, "it may hold what is lost in memory")
	require.Eventually(t, func() bool {
		return abi.AsError(put(newcomer, "refused")).Reason == "commits_lost"
	}, 30*time.Second, 10*time.Millisecond, "so may one that met the loss without knowing")
	again := open(t, opts)
	require.NoError(t, put(again, "the new incarnation"))
	p, err := again.ClusterState(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, p.Incarnation)
}

func TestAStandbyIsRefusedAsReadOnly(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Many: true}
	open(t, opts)
	opts.URL = server.Standby().URL
	_, err := postgres.Open(t.Context(), opts)
	require.ErrorIs(t, err, state.ErrDatabase)
	require.ErrorContains(t, err, "is read-only: it is a standby")
	require.ErrorContains(t, err, "target_session_attrs=read-write")
}

// TestASchemaIsOneCluster: hosts with new folders prepare the same schema and open it at the same moment. The tables
// are created once, and have one identity, which all hosts store.
func TestASchemaIsOneCluster(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	const hosts = 6
	var made atomic.Int64
	var wg sync.WaitGroup
	var files, identities [hosts]string
	for i := range hosts {
		files[i] = filepath.Join(t.TempDir(), "cluster.json")
		wg.Go(func() {
			opts := postgres.Options{URL: server.URL, Many: true, Past: files[i]}
			ran, err := postgres.Migrate(t.Context(), opts)
			if !assert.NoError(t, err) {
				return
			}
			made.Add(int64(len(ran)))
			s, err := postgres.Open(t.Context(), opts)
			if !assert.NoError(t, err) {
				return
			}
			past, err := s.ClusterState(t.Context())
			assert.NoError(t, err)
			identities[i] = past.Identity
			assert.NoError(t, s.Close())
		})
	}
	wg.Wait()
	require.EqualValues(t, 3, made.Load(), "each migration ran once")
	for i := range hosts {
		require.NotEmpty(t, identities[i])
		require.Equal(t, identities[0], identities[i])
		text, err := os.ReadFile(files[i])
		require.NoError(t, err)
		require.Contains(t, string(text), identities[0])
	}
}
