package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memhost/memhost/internal/state"
)

// A URL may lead to a pooler (such as PgBouncer) instead of a server. A pooler may drop the parameters with which a
// connection starts, and may run each transaction of one connection on another connection to the server, or on another
// server. So the SQL of this package names the schema of every table, and sets what it needs in the same transaction.
// Behind a pooler it uses no prepared statements, and only accepts answers from the server that renewed this host's
// session (Store.server).

// How many connections a host opens unless Options.Connections says so. One of them is for its session.
const (
	mostConnections   = 17
	pooledConnections = 5 // three hosts fit into the 20 connections that PgBouncer opens for a database by default
	shareOfHost       = 4 // a host takes a quarter of what the server allows its user
	fewestConnections = 2
)

const (
	idleConnection = 30 * time.Second // after this time an idle connection is closed
	idleChecks     = 15 * time.Second
	// longestIdle ends a transaction whose host is paused, because other hosts wait for its locks.
	longestIdle = "10s"
)

// schemaName is the quoted name of a schema. Statements refer to a table in it as @.kv.
type schemaName string

// in replaces @ in a statement by the schema's name.
func (n schemaName) in(statement string) string {
	return strings.ReplaceAll(statement, "@.", string(n)+".")
}

// statements is a pgx.Batch whose statements refer to tables as @.kv.
type statements struct {
	pgx.Batch
	schema schemaName
}

// Queue adds a statement.
func (q *statements) Queue(statement string, args ...any) *pgx.QueuedQuery {
	return q.Batch.Queue(q.schema.in(statement), args...)
}

// begin runs do in a transaction, which the server ends if this host is paused in it.
func (s *Store) begin(ctx context.Context, on interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, on, func(tx pgx.Tx) error {
		if err := scanSetting(tx.QueryRow(ctx, setLongestIdle)); err != nil {
			return err
		}
		return do(tx)
	})
}

const setLongestIdle = "SELECT set_config('idle_in_transaction_session_timeout', '" + longestIdle + "', true)"

// scanSetting reads the answer to setLongestIdle.
func scanSetting(row pgx.Row) error {
	var got string
	if err := row.Scan(&got); err != nil {
		return err
	}
	if got != longestIdle {
		return &state.Error{Kind: state.ErrDatabase, Message: fmt.Sprintf("the server set "+
			"idle_in_transaction_session_timeout to %q, want %s", got, longestIdle), Hint: poolerHint}
	}
	return nil
}

const poolerHint = "connect to the server itself, or to a pooler in session or transaction mode"

func connect(ctx context.Context, opts Options) (_ *Store, err error) {
	if opts.Schema == "" {
		opts.Schema = "memhost"
	}
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.ReadTimeout == 0 {
		opts.ReadTimeout = 5 * time.Second
	}
	if opts.Session == 0 {
		opts.Session = defaultSession
	}
	config, err := parseURL(opts.URL, "the URL of the database", opts.Password, opts)
	if err != nil {
		return nil, err
	}
	direct := config.ConnConfig.Copy()
	if opts.Direct != "" {
		own, err := parseURL(opts.Direct, "the direct URL of the database", opts.DirectPassword, opts)
		if err != nil {
			return nil, err
		}
		direct = own.ConnConfig
	}
	direct.DefaultQueryExecMode = pgx.QueryExecModeExec
	s := &Store{opts: opts, schema: schemaName(quoteName(opts.Schema)), direct: direct,
		renewSoon: make(chan struct{}, 1)}
	s.open, s.shut = context.WithCancel(context.Background())
	c := config.ConnConfig
	s.where = fmt.Sprintf("database %s at %s:%d, schema %s, user %s", c.Database, c.Host, c.Port,
		opts.Schema, c.User)
	// The first connection is the one that renews the session, and is kept: without it this host cannot serve.
	if s.first, err = pgx.ConnectConfig(ctx, direct); err != nil {
		return nil, s.fail("open", err)
	}
	defer func() {
		if err != nil {
			_ = s.first.Close(context.WithoutCancel(ctx))
		}
	}()
	w := s.wait(ctx, s.opts.Timeout)
	defer w.end()
	if err := s.inspect(w, s.first); err != nil {
		return nil, s.fail("open", w.error(err))
	}
	s.pooled = s.pooled || opts.Direct != ""
	if most := s.opts.Connections; most > int(s.allowed) && !s.pooled {
		return nil, invalid("%s: store.postgres.connections is %d, and the server allows this user %d", s.where, most,
			s.allowed)
	}
	s.size(config)
	if s.pooled && !strings.Contains(opts.URL, "default_query_exec_mode") {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	config.MaxConnIdleTime, config.HealthCheckPeriod = idleConnection, idleChecks
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
		defer cancel()
		now, err := s.watched.Load().check(ctx, conn)
		if err != nil {
			return err
		}
		return s.checkServer(now.server)
	}
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, invalid("%s: %s", s.where, err)
	}
	if err := s.readBack(w); err != nil {
		s.pool.Close()
		return nil, s.fail("open", w.error(err))
	}
	return s, nil
}

// parseURL parses a connection string. name is what messages call it.
func parseURL(text, name, password string, opts Options) (*pgxpool.Config, error) {
	if text == "" {
		return nil, invalid("%s is empty, want postgres://user@host:5432/database", name)
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, invalid("%s cannot be read: %s", name, err)
	}
	c := config.ConnConfig
	if password != "" {
		c.Password = password
	}
	if opts.Dial != nil {
		c.DialFunc = opts.Dial
	}
	if c.RuntimeParams[applicationName] == "" {
		c.RuntimeParams[applicationName] = "memhost"
	}
	wait := 10 * time.Second
	if n := len(c.Fallbacks); n > 0 { // a renewal must reach the last server even if the first ones do not answer
		wait = opts.Session / 2 / time.Duration(n+2)
	}
	if c.ConnectTimeout == 0 || c.ConnectTimeout > wait {
		c.ConnectTimeout = wait
	}
	return config, nil
}

const applicationName = "application_name"

// inspect detects a pooler between this host and the server, and reads how many connections the server allows.
func (s *Store) inspect(ctx context.Context, conn *pgx.Conn) error {
	var process int64
	err := conn.QueryRow(ctx, `SELECT pg_backend_pid()::bigint, least(
		current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
		(SELECT nullif(rolconnlimit, -1) FROM pg_catalog.pg_roles WHERE rolname = current_user),
		(SELECT nullif(datconnlimit, -1) FROM pg_catalog.pg_database WHERE datname = current_database()))::bigint`).
		Scan(&process, &s.allowed)
	// A pooler has its own process numbers.
	s.pooled = process != int64(conn.PgConn().PID())
	return err
}

// size limits the pool, so that several hosts fit into what the server allows.
func (s *Store) size(config *pgxpool.Config) {
	total := s.opts.Connections
	switch {
	case total > 0:
	case strings.Contains(s.opts.URL, "pool_max_conns"):
		total = int(config.MaxConns) + 1
	case s.pooled:
		total = min(pooledConnections, int(s.allowed))
	default:
		total = min(mostConnections, int(s.allowed)/shareOfHost)
	}
	total = max(total, fewestConnections)
	config.MaxConns = int32(total - 1)
}

// readBack checks what this package relies on: that a transaction stays on one connection and accepts settings, and
// that the parameters of the URL reached the server.
func (s *Store) readBack(ctx context.Context) error {
	params := maps.Clone(s.pool.Config().ConnConfig.RuntimeParams)
	for _, name := range []string{applicationName, "options", "search_path"} { // nothing depends on these
		delete(params, name)
	}
	rollback := errors.New("nothing is kept")
	err := s.begin(ctx, s.pool, func(tx pgx.Tx) error {
		if err := scanSetting(tx.QueryRow(ctx, "SELECT current_setting('idle_in_transaction_session_timeout')")); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(params)) {
			var got, want string
			if err := tx.QueryRow(ctx, "SELECT current_setting($1::text)", name).Scan(&got); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "SELECT set_config($1::text, $2::text, true)", name, params[name]).
				Scan(&want); err != nil {
				return err
			}
			if got != want {
				return &state.Error{Kind: state.ErrDatabase, Message: fmt.Sprintf("%s: the URL sets %s to %q, and the server "+
					"has %q: a pooler dropped it", s.where, name, params[name], got), Hint: fmt.Sprintf("remove %s from the "+
					"URL, and set it at the server: ALTER ROLE %s SET %[1]s = ...", name,
					s.pool.Config().ConnConfig.User)}
			}
		}
		return rollback
	})
	if errors.Is(err, rollback) {
		return nil
	}
	return err
}

// serverText is an SQL expression that identifies the server, even through a pooler. It is an empty text if all of this
// host's connections lead to the same server.
func (s *Store) serverText() string {
	if !s.pooled && len(s.direct.Fallbacks) == 0 {
		return "''"
	}
	return "extract(epoch FROM pg_postmaster_start_time())::text"
}

// checkServer returns an error unless server is the one that has this host's session. Another one may be a former
// primary that does not know it has been replaced.
func (s *Store) checkServer(server string) error {
	want := s.server.Load()
	if want == nil || *want == server {
		return nil
	}
	select {
	case s.renewSoon <- struct{}{}:
	default:
	}
	return otherServer(s.where)
}

// otherServer is the error for an answer from a server other than the session's.
func otherServer(where string) error {
	return &state.Error{Kind: state.ErrUnavailable, Message: where + ": the answer came from another server than the one " +
		"that has this host's session, or the server was restarted", Hint: "try again; the session is renewed there first"}
}

// Connections reports how many connections this host has and may have.
func (s *Store) Connections() state.Connections {
	stat := s.pool.Stat()
	c := state.Connections{Used: int(stat.TotalConns()), Max: int(stat.MaxConns()), Allowed: int(s.allowed), Pooler: s.pooled}
	if s.session != nil {
		c.Used, c.Max = c.Used+1, c.Max+1
	}
	return c
}

// poolerHintOf is the hint for a protocol error (08P01), which is how poolers reject requests.
func poolerHintOf(server *pgconn.PgError) string {
	switch text := server.Message; {
	case strings.Contains(text, "unsupported startup parameter"):
		return "the pooler does not pass this parameter on: remove it from the URL and set it at the server (ALTER ROLE " +
			"... SET), or have the pooler pass it"
	case strings.Contains(text, "statement pooling"):
		return poolerHint
	case strings.Contains(text, "max_client_conn"), strings.Contains(text, "query_wait_timeout"),
		strings.Contains(text, "too many"):
		return tooManyHint
	case strings.Contains(text, "no such database"):
		return "correct the database's name in the URL, or the pooler's list of databases"
	}
	return "see the log of the pooler that answered"
}

const tooManyHint = "raise the limit of connections of the server, its user or the pooler, or lower " +
	"store.postgres.connections of each host"
