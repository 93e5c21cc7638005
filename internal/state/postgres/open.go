package postgres

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memhost/memhost/internal/state"
)

// Options say which database to use, and how long to wait for it.
type Options struct {
	// URL is a libpq connection string: postgres://user@host:5432/database?sslmode=verify-full, or host=... user=... It
	// may name several hosts; with target_session_attrs=read-write the primary among them is used. It may lead to a
	// pooler in session or transaction mode. Required.
	URL string
	// Password replaces the one in the URL. Empty means the URL's, or that of libpq's environment and files.
	Password string
	// Direct is a connection string for the server itself if URL leads to a pooler. It is used to renew the host's
	// session, however busy the pooler is, and for migrations and VACUUM. Empty means URL. DirectPassword replaces its
	// password.
	Direct, DirectPassword string
	// Connections is the most connections that this host opens, including one for its session. 0 means a quarter of
	// what the server allows the user, at most 17, and 5 behind a pooler. The URL's pool_max_conns, if any, limits the
	// others.
	Connections int
	// Schema is the PostgreSQL schema of the tables; empty means "memhost".
	Schema string
	// Timeout bounds one commit, from its start to its outcome; 0 means a minute.
	Timeout time.Duration
	// ReadTimeout is how long a read waits for the server's next row; 0 means 5 seconds.
	ReadTimeout time.Duration
	// One makes this host the only one: Open waits for the end of a session that another host does not renew, and fails
	// while another host serves. Many lets it serve together with other hosts that use Many. With neither, the Store
	// has no session, and other hosts don't see it.
	One, Many bool
	// Session is how long other hosts wait for this one if it does not renew its session; 0 means 15 seconds.
	Session time.Duration
	// Past is a file in which a host with a session stores the latest commit that it saw, to detect a database that
	// lost commits or belongs to another cluster. If it is empty, the host only remembers while it runs.
	Past string
	// Version is this program's version, shown to other hosts.
	Version string
	// Dial opens connections; nil means the standard dialler.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is this host's clock; nil means time.Now.
	Now func() time.Time
}

// Store is a state.Store in a PostgreSQL database. Open creates it.
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	schema schemaName
	direct *pgx.ConnConfig // for connections outside the pool
	first  *pgx.Conn       // the first connection, until the session takes it
	pooled bool            // there is a pooler between this host and the server
	// server is the server that has this host's session, as identified by serverText. renewSoon requests an immediate
	// renewal.
	server    atomic.Pointer[string]
	renewSoon chan struct{}
	allowed   int64                     // connections that the server allows this user
	where     string                    // description of the database, without secrets, for messages
	session   *session                  // nil without Options.One and Many
	past      *pastCheck                // likewise
	watched   atomic.Pointer[pastCheck] // past, for connections: nil until it has been checked
	closed    atomic.Bool
	commits   atomic.Int64
	// background waits for the goroutines besides reads and commits. They end with open, which shut cancels.
	background sync.WaitGroup
	open       context.Context
	shut       context.CancelFunc
	// What the server reported when the store was opened.
	synchronousCommit, synchronousStandbys string
	clockWarning                           string
}

var (
	_ state.Store     = (*Store)(nil)
	_ state.Sizer     = (*Store)(nil)
	_ state.Connected = (*Store)(nil)
)

// Open connects to a database that Migrate has prepared.
//
// Errors: ErrInvalid for a wrong URL; ErrServed if another host serves (see Options.One and Many); ErrSchema if the
// tables are missing or of another version; ErrIdentity and ErrLoss (see Options.Past); ErrDatabase if the server
// rejects this user or is read-only; ErrUnavailable if no server answers.
func Open(ctx context.Context, opts Options) (*Store, error) {
	s, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	w := s.wait(ctx, s.opts.ReadTimeout)
	err = s.checkVersion(w)
	if err == nil {
		err = s.readDurability(w)
	}
	if err == nil {
		err = s.readClock(w)
	}
	w.end()
	if err != nil {
		s.leave(ctx)
		return nil, w.error(err)
	}
	if opts.One || opts.Many {
		if err := s.enter(ctx); err != nil {
			s.leave(ctx)
			return nil, err
		}
	}
	if s.session == nil {
		_ = s.first.Close(ctx)
	}
	return s, nil
}

// leave closes the connections of a store that could not be opened.
func (s *Store) leave(ctx context.Context) {
	_ = s.first.Close(context.WithoutCancel(ctx))
	s.pool.Close()
}

// enter starts this host's session, after checking the database's past against what this host has seen.
func (s *Store) enter(ctx context.Context) error {
	p, err := openPast(s, s.opts.Past)
	if err != nil {
		return err
	}
	w := s.wait(ctx, s.opts.ReadTimeout)
	defer w.end()
	if _, err := p.check(w, s.pool); err != nil {
		return s.fail("open", w.error(err))
	}
	s.past = p
	s.watched.Store(p)
	if err := s.join(ctx); err != nil {
		return err
	}
	p.keep()
	return nil
}

// Size is the size of the slot's tables and indexes.
func (s *Store) Size(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r'`, s.opts.Schema).Scan(&n)
	return n, s.fail("size", err)
}

// Where describes the database without secrets.
func (s *Store) Where() string { return s.where }

// checkVersion compares the version of the tables with that of the migrations.
func (s *Store) checkVersion(ctx context.Context) error {
	var exists, readOnly bool
	err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, current_setting('transaction_read_only')::bool",
		s.schema.in("@."+versionTable)).Scan(&exists, &readOnly)
	if err != nil {
		return s.fail("open", err)
	}
	if readOnly {
		return &state.Error{Kind: state.ErrDatabase, Message: s.where + " is read-only: it is a standby, or the user's " +
			"transactions are read-only", Hint: "name the primary, or all servers and target_session_attrs=read-write"}
	}
	var version int64
	if exists {
		if version, err = s.version(ctx); err != nil {
			return err
		}
	}
	files, err := migrationFiles()
	if err != nil {
		return err
	}
	want := int64(len(files))
	switch {
	case version == 0:
		return s.schemaError("has no tables of memhost", "run: memhost cluster migrate")
	case version < want:
		return s.schemaError(fmt.Sprintf("has tables of version %d, this memhost needs %d", version, want),
			"run: memhost cluster migrate")
	case version > want:
		return s.newer(version, want)
	}
	return nil
}

// version reads the version of the tables; 0 if there are none.
func (s *Store) version(ctx context.Context) (version int64, err error) {
	err = s.pool.QueryRow(ctx, s.schema.in("SELECT coalesce(max(version), 0) FROM @."+versionTable)).Scan(&version)
	return version, s.fail("open", err)
}

// newer is the error for tables of a version that this program does not know.
func (s *Store) newer(version, known int64) error {
	return s.schemaError(fmt.Sprintf("has tables of version %d, this memhost knows %d: a newer one made them", version,
		known), "use that version of memhost")
}

// readDurability reads the settings that Durability reports.
func (s *Store) readDurability(ctx context.Context) error {
	return s.fail("open", s.pool.QueryRow(ctx, "SELECT current_setting('synchronous_commit'), "+
		"current_setting('synchronous_standby_names')").Scan(&s.synchronousCommit, &s.synchronousStandbys))
}

// maxClockDrift is how far this host's clock may differ from the server's. Hosts that share a database all compare with
// the server's clock.
const maxClockDrift = time.Second

// readClock compares this host's clock with the server's.
func (s *Store) readClock(ctx context.Context) error {
	var servers time.Time
	before := s.opts.Now()
	if err := s.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&servers); err != nil {
		return s.fail("open", err)
	}
	after := s.opts.Now()
	ahead, word := before.Sub(servers), "ahead of" // at least by this much, however long the answer took
	if behind := servers.Sub(after); behind > ahead {
		ahead, word = behind, "behind"
	}
	if ahead > maxClockDrift {
		s.clockWarning = fmt.Sprintf("clock_differs: this host's clock is %s %s that of %s: receipts, archive and logs of "+
			"several hosts are out of order; let NTP set the clocks", ahead.Round(100*time.Millisecond), word, s.where)
	}
	return nil
}

// ClockWarning says how far this host's clock differed from the server's when the store was opened; empty if less than
// a second.
func (s *Store) ClockWarning() string { return s.clockWarning }

// Durability reports the settings that decide what an acknowledged write survives, as of opening the store
// ("synchronous_commit on, synchronous_standby_names 'node2'"). The warning, "weak_commits: ...", is empty unless an
// acknowledged write may be lost even if the server keeps its files.
func (s *Store) Durability() (settings, warning string) {
	settings = fmt.Sprintf("synchronous_commit %s, synchronous_standby_names '%s'", s.synchronousCommit,
		s.synchronousStandbys)
	const advice = "; set it to on, for this user or in the URL"
	switch {
	case s.synchronousCommit == "off":
		warning = "weak_commits: the database's synchronous_commit is off: what was acknowledged in the last moments " +
			"before its server ends suddenly is lost" + advice
	case s.synchronousCommit == "local" && s.synchronousStandbys != "":
		warning = "weak_commits: the database's synchronous_commit is local, though it has synchronous standbys: what was " +
			"acknowledged in the last moments before a failover is lost" + advice
	}
	return settings, warning
}

func (s *Store) schemaError(text, hint string) error {
	return &state.Error{Kind: state.ErrSchema, Message: s.where + " " + text, Hint: hint}
}

// Close waits for running reads and commits, and closes the connections.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.session != nil {
		s.session.end()
	}
	s.past.keep()
	s.shut()
	s.background.Wait()
	s.pool.Close()
	return nil
}
