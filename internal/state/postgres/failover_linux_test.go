package postgres_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// withStandby starts a primary whose commits wait for its standby. The primary is first in the URL, which stays the
// same after a failover.
func withStandby(t *testing.T) (primary, standby *pgserver.Server, url string) {
	primary = pgserver.Start(t)
	standby = primary.Standby()
	do := asOwner(t, primary)
	do("ALTER SYSTEM SET synchronous_standby_names = '*'")
	do("SELECT pg_reload_conf()")
	return primary, standby, strings.Replace(primary.URL, "/postgres?", fmt.Sprintf(",127.0.0.1:%d/postgres?"+
		"target_session_attrs=read-write&", standby.Port()), 1)
}

// TestAnOldPrimaryThatWakesIsNotRead: the primary is suspended and its standby promoted. The old one wakes up and still
// claims to accept writes, although no standby follows it. A host with open connections to it only reads what the new
// one has, and does not report a loss of commits because of a new connection to the old one.
func TestAnOldPrimaryThatWakesIsNotRead(t *testing.T) {
	brief.Leave(t)
	old, next, url := withStandby(t)
	// Connections to the old one stay open, as in a network that does not report failures.
	s := open(t, postgres.Options{URL: url, Many: true, Session: 3 * time.Second, Timeout: 20 * time.Second,
		Dial: (&net.Dialer{KeepAlive: -1}).DialContext})
	require.NoError(t, put(s, "before"))
	read := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		v, err := s.Get(ctx, space, "k")
		return string(v.Data), err
	}
	var wg sync.WaitGroup
	for range 8 { // many connections are open
		wg.Go(func() {
			for range 20 {
				_, _ = read()
			}
		})
	}
	wg.Wait()

	old.Pause()
	require.Eventually(t, func() bool { return s.Left() <= 0 }, 30*time.Second, 10*time.Millisecond, "the session is over")
	next.Promote()
	other := open(t, postgres.Options{URL: next.URL, Many: true})
	require.NoError(t, put(other, "after"))
	require.Eventually(t, func() bool { return s.Left() > 0 }, 30*time.Second, 10*time.Millisecond)
	old.Continue()
	for range 100 {
		value, err := read()
		if err == nil {
			require.Equal(t, "after", value)
		}
		require.NotErrorIs(t, err, state.ErrLoss)
	}

	old.Kill()
	require.Eventually(t, func() bool {
		value, err := read()
		require.NotErrorIs(t, err, state.ErrLoss)
		return err == nil && value == "after"
	}, 60*time.Second, 10*time.Millisecond, "it serves from the new primary")
}

// TestACommitThatNobodyGotIsNoLoss: the standby is away, and a client of the primary gives up while its commit waits.
// The commit is then visible, but its receipt never reached a caller. A host that has seen it still serves from the
// standby, which never had it, after a failover.
func TestACommitThatNobodyGotIsNoLoss(t *testing.T) {
	brief.Leave(t)
	old, next, url := withStandby(t)
	s := open(t, postgres.Options{URL: url, Many: true, Session: 3 * time.Second, Timeout: 20 * time.Second,
		Past: filepath.Join(t.TempDir(), "cluster.json")})
	require.NoError(t, put(s, "before"))
	other, err := pgx.Connect(t.Context(), old.URL+"&search_path=memhost")
	require.NoError(t, err)

	next.Kill()
	for visible := false; !visible; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = other.Exec(ctx, "INSERT INTO commits (token) VALUES ('given up')")
		cancel()
		require.Error(t, err)
		other, err = pgx.Connect(t.Context(), old.URL+"&search_path=memhost")
		require.NoError(t, err)
		require.NoError(t, other.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM commits WHERE token = 'given up')").
			Scan(&visible))
	}
	require.Eventually(t, func() bool { return s.Left() <= 0 }, 30*time.Second, 10*time.Millisecond,
		"it has looked, and could not write")
	require.NoError(t, other.Close(t.Context()))
	old.Kill()
	next.Run()
	next.Promote()
	require.Eventually(t, func() bool {
		err := put(s, "after")
		require.NotErrorIs(t, err, state.ErrLoss)
		return err == nil
	}, 60*time.Second, 100*time.Millisecond, "it serves from the new primary")
}
