//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/state/statetest"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// poolModes returns the pooler modes that a store supports.
func poolModes() []string { return []string{"session", "transaction"} }

// TestBehindAPoolerStoreAgreesWithModel takes a minute for each mode; its short form is
// TestBehindAPoolerEachSchemaIsItsOwn.
func TestBehindAPoolerStoreAgreesWithModel(t *testing.T) {
	brief.Skip(t)
	server := pgserver.Start(t)
	for _, mode := range poolModes() {
		t.Run(mode, func(t *testing.T) {
			url := server.Pooler(t, mode).URL
			schemas := 0
			statetest.AgreesWithModel(t, func() (state.Store, func() (state.Store, error), error) {
				schemas++
				opts := postgres.Options{URL: url, Schema: fmt.Sprint(mode, " ", schemas)}
				if _, err := postgres.Migrate(t.Context(), opts); err != nil {
					return nil, nil, err
				}
				open := func() (state.Store, error) { return postgres.Open(t.Context(), opts) }
				s, err := open()
				return s, open, err
			})
		})
	}
}

// TestBehindAPoolerEachSchemaIsItsOwn: a pooler that drops startup parameters, and a user whose own search path leads
// to another slot's tables, make no difference.
func TestBehindAPoolerEachSchemaIsItsOwn(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	do := asOwner(t, server)
	do("CREATE ROLE tenant LOGIN SUPERUSER")
	do("ALTER ROLE tenant SET search_path = memhost, public")
	for _, mode := range poolModes() {
		t.Run(mode, func(t *testing.T) {
			url := server.Pooler(t, mode, "ignore_startup_parameters = search_path, idle_in_transaction_session_timeout").URL
			one := open(t, postgres.Options{URL: url, Many: true})
			require.True(t, one.Connections().Pooler)
			two := open(t, postgres.Options{URL: strings.Replace(url, "memhost@", "tenant@", 1), Schema: "other " + mode,
				Many: true})
			require.NoError(t, put(one, "of one"))
			v, err := two.Get(t.Context(), space, "k")
			require.NoError(t, err)
			require.Empty(t, v.Data)
			require.NoError(t, put(two, "of two"))
			v, err = one.Get(t.Context(), space, "k")
			require.NoError(t, err)
			require.Equal(t, "of one", string(v.Data))
			hosts, err := two.Hosts(t.Context())
			require.NoError(t, err)
			require.Len(t, hosts, 1)
		})
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	var tables int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").
		Scan(&tables))
	require.Zero(t, tables)
}

// TestATransactionThatIsLeftOpenEnds, whatever a pooler did with the connection's parameters: a host that is paused in
// a transaction does not block other hosts.
func TestATransactionThatIsLeftOpenEnds(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	for name, url := range map[string]string{"server": server.URL,
		"transaction": server.Pooler(t, "transaction", "ignore_startup_parameters = idle_in_transaction_session_timeout").URL} {
		var wire pgserver.Wire
		s := open(t, postgres.Options{URL: url, Schema: name, Dial: wire.Dial})
		wire.Take()
		require.NoError(t, put(s, "value"))
		sent := wire.Take().Statements
		at := 0
		for i, statement := range sent {
			if strings.HasPrefix(statement, "begin") {
				at = i
			}
		}
		require.Contains(t, sent[at+1], "set_config('idle_in_transaction_session_timeout', '10s', true)", name)
	}
}

func TestAPoolerThatIsNotFitIsRefused(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	_, err := postgres.Migrate(t.Context(), postgres.Options{URL: server.URL})
	require.NoError(t, err)
	for _, c := range []struct {
		name, mode, setting, params string
		kind                        error
		text                        string
	}{
		{"statement mode", "statement", "", "", state.ErrUnavailable, "session or transaction mode"},
		{"a parameter that it drops", "session", "ignore_startup_parameters = synchronous_commit",
			"&synchronous_commit=off", state.ErrDatabase, "a pooler dropped it"},
		{"a parameter that it does not know", "transaction", "", "&synchronous_commit=off", state.ErrUnavailable,
			"the pooler does not pass this parameter on"},
		{"a limit of clients", "session", "max_client_conn = 1", "", state.ErrUnavailable, "store.postgres.connections"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := server.Pooler(t, c.mode, c.setting).URL + c.params
			_, err := postgres.Open(t.Context(), postgres.Options{URL: url, Many: true})
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.text)
		})
	}
	_, err = postgres.Open(t.Context(), postgres.Options{URL: server.URL + "&synchronous_commit=off", Many: true})
	require.NoError(t, err, "the server itself takes it")
}

// TestARestartBehindAPooler: clients of a pooler keep their connections although the server behind them was restarted.
func TestARestartBehindAPooler(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct %t", direct), func(t *testing.T) {
			opts := postgres.Options{URL: server.Pooler(t, "transaction", "server_login_retry = 1").URL, Many: true, Session: 3 * time.Second}
			if direct {
				opts.Direct = server.URL
			}
			s := open(t, opts)
			require.NoError(t, put(s, "before"))
			server.Kill()
			server.Run()
			require.Eventually(t, func() bool { return put(s, "after") == nil }, 30*time.Second, 20*time.Millisecond)
			require.Eventually(t, func() bool {
				v, err := s.Get(t.Context(), space, "k")
				return err == nil && string(v.Data) == "after"
			}, 30*time.Second, 20*time.Millisecond)
		})
	}
}

// TestABurstLeavesRoomForSessions: hosts whose user may have few connections keep serving during and after a burst of
// writes. Earlier, their own idle connections used up the limit, and no session could be renewed.
func TestABurstLeavesRoomForSessions(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	do := asOwner(t, server)
	do("CREATE ROLE tenant LOGIN")
	do("GRANT ALL ON DATABASE postgres TO tenant")
	tenant := strings.Replace(server.URL, "memhost@", "tenant@", 1)
	for _, c := range []struct {
		name         string
		limit, hosts int
		url          func(t *testing.T) string
	}{
		{"a user with 16", 16, 1, func(*testing.T) string { return tenant }},
		{"three hosts of a user with 20", 20, 3, func(*testing.T) string { return tenant }},
		{"three hosts behind PgBouncer's 20", -1, 3, func(t *testing.T) string {
			return strings.Replace(server.Pooler(t, "session").URL, "memhost@", "tenant@", 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(fmt.Sprintf("ALTER ROLE tenant CONNECTION LIMIT %d", c.limit))
			var hosts []*postgres.Store
			const length = 2 * time.Second
			for range c.hosts {
				hosts = append(hosts, open(t, postgres.Options{URL: c.url(t), Many: true, Session: length}))
			}
			var wg sync.WaitGroup
			var failed atomic.Int64
			until := time.Now().Add(length)
			for i, s := range hosts {
				for n := range 32 {
					wg.Go(func() {
						for time.Now().Before(until) {
							var b state.Batch
							b.Put(space, fmt.Sprint(i, " ", n), []byte("v"), state.AnyVersion)
							if _, err := s.Commit(t.Context(), &b); err != nil {
								failed.Add(1)
							}
						}
					})
				}
			}
			wg.Wait()
			require.Zero(t, failed.Load())
			// By then, a session that is not renewed has ended.
			for quiet := time.Now().Add(2 * length); time.Now().Before(quiet); {
				for _, s := range hosts {
					require.Positive(t, s.Left())
				}
				time.Sleep(length / 10)
			}
			used := 0
			for _, s := range hosts {
				_, err := s.Hosts(t.Context())
				require.NoError(t, err)
				used += s.Connections().Used
			}
			if c.limit > 0 {
				require.LessOrEqual(t, used, c.limit)
			}
		})
	}
}

func TestMoreConnectionsThanTheServerAllowsAreRefused(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	_, err := postgres.Open(t.Context(), postgres.Options{URL: server.URL, Connections: 1000})
	require.ErrorIs(t, err, state.ErrInvalid)
	require.ErrorContains(t, err, "store.postgres.connections is 1000, and the server allows this user 97")
	s := open(t, postgres.Options{URL: server.URL, Connections: 3, Many: true})
	require.Equal(t, 3, s.Connections().Max)
}
