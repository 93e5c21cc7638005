//go:build unix

package postgres_test

import (
	"context"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// asOwner returns a function that runs statements at a server as its owner.
func asOwner(t *testing.T, server *pgserver.Server) (do func(statement string)) {
	return func(statement string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.URL)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	server := pgserver.Start(t)
	do := asOwner(t, server)
	_, err := postgres.Migrate(t.Context(), postgres.Options{URL: server.URL, Schema: "newer"})
	require.NoError(t, err)
	do("INSERT INTO newer.memhost_migrations (version) VALUES (7)")
	_, err = postgres.Migrate(t.Context(), postgres.Options{URL: server.URL, Schema: "newer"})
	require.ErrorIs(t, err, state.ErrSchema)
	require.ErrorContains(t, err, "has tables of version 7, this memhost knows 3")
	ran, err := postgres.Migrate(t.Context(), postgres.Options{URL: server.URL})
	require.NoError(t, err)
	require.Equal(t, []string{"00001_tables.sql", "00002_commit_numbers.sql", "00003_short_receipts.sql"}, ran)
	ran, err = postgres.Migrate(t.Context(), postgres.Options{URL: server.URL})
	require.NoError(t, err)
	require.Empty(t, ran, "everything is up to date")
	do("CREATE ROLE stranger LOGIN")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	with := func(from, to string) string { return strings.Replace(server.URL, from, to, 1) }
	for _, c := range []struct {
		name string
		opts postgres.Options
		kind error
		text string
		wait bool // retrying may help
	}{
		{"no URL", postgres.Options{}, state.ErrInvalid, "the URL of the database is empty", false},
		{"wrong URL", postgres.Options{URL: "postgres://u:hidden@h:port/d"}, state.ErrInvalid, "cannot be read", false},
		{"nobody there", postgres.Options{URL: "postgres://u:hidden@" + l.Addr().String() + "/d?sslmode=disable"},
			state.ErrUnavailable, l.Addr().String(), true},
		{"no TLS", postgres.Options{URL: with("sslmode=disable", "sslmode=verify-full")}, state.ErrUnavailable,
			"see sslmode and sslrootcert", true},
		{"no answer", postgres.Options{URL: "postgres://u:hidden@" + silent.Addr().String() +
			"/d?sslmode=disable&connect_timeout=1"}, state.ErrUnavailable, "see that the server runs", true},
		{"no such user", postgres.Options{URL: with("memhost@", "somebody:hidden@")}, state.ErrDatabase,
			"correct user and password", false},
		{"no such database", postgres.Options{URL: with("/postgres?", "/nothing?")}, state.ErrDatabase,
			"create the database", false},
		{"no rights", postgres.Options{URL: with("memhost@", "stranger@")}, state.ErrDatabase, "grant this user", false},
		{"read-only", postgres.Options{URL: server.URL + "&default_transaction_read_only=on"}, state.ErrDatabase,
			"is read-only", false},
		{"no tables", postgres.Options{URL: server.URL, Schema: "empty"}, state.ErrSchema, "memhost cluster migrate",
			false},
		{"newer tables", postgres.Options{URL: server.URL, Schema: "newer"}, state.ErrSchema,
			"has tables of version 7, this memhost knows 3", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), c.opts)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.text)
			require.NotContains(t, err.Error(), "hidden")
			require.Equal(t, c.wait, abi.AsError(err).Retryable)
		})
	}
}

// TestASchemaThatIsThereNeedsNoRightToMakeOne: an administrator created it and gave it to the user, who may create
// tables in it but no schema.
func TestASchemaThatIsThereNeedsNoRightToMakeOne(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	do := asOwner(t, server)
	do("CREATE ROLE tenant LOGIN")
	do("CREATE SCHEMA given")
	do("GRANT USAGE, CREATE ON SCHEMA given TO tenant")
	opts := postgres.Options{URL: strings.Replace(server.URL, "memhost@", "tenant@", 1), Schema: "given"}
	ran, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	require.Len(t, ran, 3)
	do("REVOKE CREATE ON SCHEMA given FROM tenant")
	ran, err = postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	require.Empty(t, ran)
	open(t, opts)
	_, err = postgres.Migrate(t.Context(), postgres.Options{URL: opts.URL, Schema: "another"})
	require.ErrorIs(t, err, state.ErrDatabase)
}

func TestClosedStoreSaysSo(t *testing.T) {
	brief.Leave(t)
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL})
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice is harmless")
	var b state.Batch
	b.Put(space, "k", nil, 0)
	_, err := s.Commit(t.Context(), &b)
	require.ErrorIs(t, err, state.ErrClosed)
	_, err = s.Get(t.Context(), space, "k")
	require.ErrorIs(t, err, state.ErrClosed)
}

// loss describes what happens to the next commit.
type loss struct {
	mu        sync.Mutex
	of        string // "answer", "commit", or "" for nothing
	happening bool
}

// lossyConn is a connection that is lost as its loss says: before the commit is sent, or instead of its answer.
type lossyConn struct {
	net.Conn
	loss *loss
}

func (c *lossyConn) Write(p []byte) (int, error) {
	c.loss.mu.Lock()
	defer c.loss.mu.Unlock()
	if strings.Contains(string(p), "commit") && c.loss.of != "" {
		c.loss.happening = true
		if c.loss.of == "commit" {
			c.loss.of, c.loss.happening = "", false
			_ = c.Close()
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(p)
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.loss.mu.Lock()
	defer c.loss.mu.Unlock()
	if c.loss.happening && strings.Contains(string(p[:max(n, 0)]), "COMMIT") {
		c.loss.of, c.loss.happening = "", false
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// TestALostConnectionIsSettledByTheToken: whether the commit or its answer was lost, Commit finds out and reports the
// right result.
func TestALostConnectionIsSettledByTheToken(t *testing.T) {
	brief.Leave(t)
	var next loss
	// At most one connection: settling must not wait for the connection of a commit that settles.
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL + "&default_query_exec_mode=exec&pool_max_conns=1",
		Timeout: 10 * time.Second,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &lossyConn{Conn: conn, loss: &next}, err
		}})
	there := int64(0)
	for i := range 10 {
		var b state.Batch
		b.Append(space, "log", []byte("entry"))
		next.mu.Lock()
		next.of = []string{"answer", "commit"}[i%2]
		next.mu.Unlock()
		res, err := s.Commit(t.Context(), &b)
		next.mu.Lock()
		require.Empty(t, next.of, "it happened")
		next.mu.Unlock()
		if i%2 == 0 {
			there++
			require.NoError(t, err)
			require.Equal(t, []int64{there}, res.Seqs)
		} else {
			require.ErrorIs(t, err, state.ErrUnavailable)
			require.NotErrorIs(t, err, state.ErrUncertain)
		}
		last, err := s.LastSeq(t.Context(), space, "log")
		require.NoError(t, err)
		require.Equal(t, there, last)
	}
}

func TestClocksThatDifferAreTold(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	for name, c := range map[string]struct {
		off  time.Duration
		want string
	}{
		"the same": {0, ""},
		"a little": {900 * time.Millisecond, ""},
		"ahead":    {time.Hour, "clock_differs: this host's clock is 1h0m0s ahead of that of "},
		"behind":   {-time.Hour, "clock_differs: this host's clock is 1h0m0s behind that of "},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, postgres.Options{URL: server.URL, Now: func() time.Time { return time.Now().Add(c.off) }})
			if c.want == "" {
				require.Empty(t, s.ClockWarning())
				return
			}
			warning := regexp.MustCompile(`(1h0m0|59m59)\.\ds`).ReplaceAllString(s.ClockWarning(), "1h0m0s")
			require.Contains(t, warning, c.want)
		})
	}
}
