package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// How long a session lasts after its renewal, and how often it is renewed. Three renewals may fail in a row.
const (
	defaultSession = 15 * time.Second
	renewals       = 5  // per length of a session
	looks          = 50 // per length of a session, by a host that waits for the end of another one's session
)

var _ fleet.Sessions = (*Store)(nil)

// session is this host's row in table sessions. The row decides: while it exists, this host is alive. A host that finds
// another host's row with a passed end deletes it, and serves. The delete waits for running commits of the old host;
// later ones find that the row is gone and are rejected. So no clock decides what is written. Clocks only decide how
// long a host that cannot renew its session keeps answering reads.
type session struct {
	store  *Store
	id     atomic.Pointer[fleet.Session] // changes with each rejoin
	length time.Duration
	// until is when reads end, by sinceBoot.
	until atomic.Int64
	// over is set when the row is gone because another host took over. With Options.Many a new session is started then.
	over atomic.Bool
	why  atomic.Pointer[error] // why the last renewal failed, for messages
	// conn is only used for renewals, so that they are not delayed by commits that wait for each other or by a lack of
	// connections. It is the first connection that the host opens. fresh is set from then until the pool was renewed.
	conn  *pgx.Conn
	fresh bool
	stop  context.CancelFunc
	ended chan struct{}
}

// join starts this host's session. If another host's session keeps it out, join waits for the end of that session, as
// long as it is not renewed.
//
// Errors: ErrServed if another host serves.
func (s *Store) join(ctx context.Context) error {
	j := &session{store: s, length: s.opts.Session, conn: s.first, fresh: true,
		ended: make(chan struct{})}
	var first *otherSession
	for {
		w := s.wait(ctx, s.opts.Timeout) // also waits for commits of a session that has ended
		found, err := j.begin(w)
		w.end()
		if err != nil {
			return s.fail("open", w.error(err))
		}
		if found == nil {
			break
		}
		if first == nil {
			first = found
		}
		if found.renewed(first) {
			return found.refusal(s.where)
		}
		select {
		case <-ctx.Done():
			return found.refusal(s.where)
		case <-time.After(min(found.left, j.length/looks) + 10*time.Millisecond):
		}
	}
	inside, stop := context.WithCancel(context.Background())
	j.stop = stop
	s.session = j
	go j.renewAlways(inside)
	return nil
}

// otherSession is the session of another host.
type otherSession struct {
	id      string
	host    string
	pid     int
	version string
	began   time.Time
	ends    time.Time
	left    time.Duration
}

// renewed reports whether a host is serving, given what was found first.
func (o *otherSession) renewed(first *otherSession) bool {
	return o.id != first.id || !o.ends.Equal(first.ends)
}

func (o *otherSession) refusal(where string) error {
	return &state.Error{Kind: state.ErrServed, Message: fmt.Sprintf("%s belongs to another host: pid %d on %s, memhost "+
		"%s, since %s", where, o.pid, o.host, o.version, o.began.UTC().Format(time.RFC3339)),
		Hint: "talk to that slot (--server), stop it, or name another schema"}
}

// begin starts a session with a new id. If another host keeps this one out, it returns that host's session.
func (j *session) begin(ctx context.Context) (*otherSession, error) {
	var id fleet.Session
	_, _ = rand.Read(id[:]) // never fails
	asked := sinceBoot()
	if err := j.connect(ctx); err != nil {
		return nil, err
	}
	now, err := j.store.past.check(ctx, j.conn)
	if err != nil {
		return nil, err
	}
	found, err := j.insert(ctx, id, now.server)
	if err != nil || found != nil {
		return found, err
	}
	j.store.server.Store(&now.server)
	j.renewPool()
	j.store.past.learn(now)
	j.id.Store(&id)
	j.until.Store(int64(asked + j.length))
	j.over.Store(false)
	return nil, nil
}

// insert removes sessions that have ended and inserts this host's. If another one is left, it returns that one instead.
func (j *session) insert(ctx context.Context, id fleet.Session, server string) (*otherSession, error) {
	var found *otherSession
	in := j.store.schema.in
	err := j.store.begin(ctx, j.conn, func(tx pgx.Tx) error {
		var here string
		if err := tx.QueryRow(ctx, "SELECT "+j.store.serverText()).Scan(&here); err != nil {
			return err
		}
		if here != server {
			return otherServer(j.store.where)
		}
		// The lock lets one host at a time check and insert.
		if _, err := tx.Exec(ctx, in("SELECT value FROM @.meta WHERE name = 'identity' FOR UPDATE")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, in("DELETE FROM @.sessions WHERE ends < clock_timestamp()")); err != nil {
			return err
		}
		var o otherSession
		var seconds float64
		err := tx.QueryRow(ctx, in(`SELECT encode(id, 'hex'), host, pid, version, began, ends,
			extract(epoch FROM ends - clock_timestamp())::float8 FROM @.sessions
			WHERE alone OR NOT $1 ORDER BY began LIMIT 1`), j.store.opts.Many).
			Scan(&o.id, &o.host, &o.pid, &o.version, &o.began, &o.ends, &seconds)
		if err == nil {
			o.left = max(0, time.Duration(seconds*float64(time.Second)))
			found = &o
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		host, err := os.Hostname()
		if err != nil {
			host = "a machine without a name"
		}
		_, err = tx.Exec(ctx, in(`INSERT INTO @.sessions (id, alone, host, pid, version, ends)
			VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6::bigint * interval '1 ms')`), id[:], !j.store.opts.Many, host,
			os.Getpid(), j.store.opts.Version, j.length.Milliseconds())
		return err
	})
	return found, err
}

// renewAlways renews the session until Close. When the row is gone it returns, or with Options.Many starts a new
// session.
func (j *session) renewAlways(ctx context.Context) {
	defer close(j.ended)
	defer func() {
		if j.conn != nil {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = j.conn.Close(within)
		}
	}()
	for wait := j.length / renewals; j.store.opts.Many || !j.over.Load(); {
		select {
		case <-ctx.Done():
			return
		case <-j.store.renewSoon:
		case <-time.After(wait):
		}
		wait = j.length / renewals
		if !j.renew(ctx) {
			wait = j.length / looks // serve again soon after the database is back
		}
		if j.over.Load() && j.store.opts.Many && !j.rejoin(ctx) {
			wait = j.length / looks
		}
	}
}

// rejoin starts a new session to replace one that has ended, and reports whether it succeeded.
func (j *session) rejoin(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, j.length/2)
	defer cancel()
	found, err := j.begin(ctx)
	return err == nil && found == nil
}

// renew renews the session once, and reports whether it reached the database. A failure is left to the next attempt:
// reads report it once the session has ended.
func (j *session) renew(ctx context.Context) bool {
	if j.store.past.error() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, j.length/2)
	defer cancel()
	asked := sinceBoot()
	if err := j.connect(ctx); err != nil {
		return j.failed(err)
	}
	now, err := j.store.past.check(ctx, j.conn)
	if err != nil {
		_ = j.conn.Close(ctx)
		return j.failed(err)
	}
	var server string
	err = j.conn.QueryRow(ctx, j.store.schema.in(`UPDATE @.sessions SET ends = clock_timestamp() + $2::bigint * interval '1 ms'
		WHERE id = $1 RETURNING `+j.store.serverText()), j.id.Load()[:], j.length.Milliseconds()).Scan(&server)
	ended := errors.Is(err, pgx.ErrNoRows)
	switch {
	case ended:
	case err != nil:
		_ = j.conn.Close(ctx)
		return j.failed(err)
	case server != now.server:
		return j.failed(otherServer(j.store.where))
	}
	j.why.Store(nil)
	j.store.server.Store(&now.server)
	j.renewPool()
	switch {
	case ended:
		j.over.Store(true)
	default:
		j.store.past.learn(now)
		j.store.past.keep()
		j.until.Store(int64(asked + j.length))
	}
	return true
}

// connect opens the connection for renewals unless it is open.
func (j *session) connect(ctx context.Context) error {
	if j.conn != nil && !j.conn.IsClosed() {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, j.store.direct)
	if err != nil {
		var server *pgconn.PgError
		if errors.As(err, &server) && (server.Code == "53300" || server.Code == "08P01") {
			// No connection is left. Staying alive is more important: close the idle ones of the pool.
			j.store.pool.Reset()
		}
		return err
	}
	j.conn, j.fresh, j.store.first = conn, true, conn
	return nil
}

// renewPool closes the other connections after the one for renewals was opened. The server may have changed, and the
// old one may still answer on them, with outdated content.
func (j *session) renewPool() {
	if j.fresh {
		j.store.pool.Reset()
		j.fresh = false
	}
}

// failed records why a renewal failed.
func (j *session) failed(err error) (renewed bool) {
	j.why.Store(&err)
	return false
}

// Sessions returns the sessions of the hosts that share the store; nil unless it was opened with Options.Many.
func (s *Store) Sessions() fleet.Sessions {
	if !s.opts.Many {
		return nil
	}
	return s
}

// Self is this host's session, for package fleet.
func (s *Store) Self() fleet.Session {
	if s.session == nil {
		return fleet.Session{}
	}
	return *s.session.id.Load()
}

// Left implements fleet.Sessions.
func (s *Store) Left() time.Duration {
	if s.session == nil || s.session.over.Load() {
		return 0
	}
	return time.Duration(s.session.until.Load()) - sinceBoot()
}

// Hosts implements fleet.Sessions.
func (s *Store) Hosts(ctx context.Context) (hosts []fleet.Host, err error) {
	err = s.rows(ctx, "hosts", `SELECT id, host, pid, version, began, extract(epoch FROM ends - clock_timestamp())::float8
		FROM @.sessions WHERE ends > clock_timestamp() ORDER BY began, id`, nil, func(rows pgx.Rows) error {
		var h fleet.Host
		var id []byte
		var left float64
		if err := rows.Scan(&id, &h.Name, &h.PID, &h.Version, &h.Began, &left); err != nil {
			return err
		}
		h.Session, h.Left = fleet.Session(id), time.Duration(left*float64(time.Second))
		hosts = append(hosts, h)
		return nil
	})
	return hosts, err
}

// End implements fleet.Sessions. The delete waits for that session's running commits.
func (s *Store) End(ctx context.Context, other fleet.Session) (left time.Duration, err error) {
	q := statements{schema: s.schema}
	q.Queue("DELETE FROM @.sessions WHERE id = $1 AND ends < clock_timestamp()", other[:])
	q.Queue("SELECT extract(epoch FROM ends - clock_timestamp())::float8 FROM @.sessions WHERE id = $1", other[:]).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var seconds float64
				if err := rows.Scan(&seconds); err != nil {
					return err
				}
				left = max(time.Millisecond, time.Duration(seconds*float64(time.Second)))
			}
			return rows.Err()
		})
	w := s.wait(ctx, s.opts.Timeout)
	defer w.end()
	return left, s.fail("end a session", w.error(s.pool.SendBatch(w, &q.Batch).Close()))
}

// end stops the renewals and deletes the row, so that another host need not wait.
func (j *session) end() {
	j.stop()
	<-j.ended
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// If it fails, the session simply expires.
	_, _ = j.store.pool.Exec(ctx, j.store.schema.in("DELETE FROM @.sessions WHERE id = $1"), j.id.Load()[:])
}

// check returns an error when this host may not answer reads: another one may serve, with newer content.
func (j *session) check() error {
	switch {
	case j == nil:
		return nil
	case j.store.past.error() != nil:
		return j.store.past.error()
	case j.over.Load():
		return j.overError()
	case int64(sinceBoot()) >= j.until.Load():
		e := &state.Error{Kind: state.ErrUnavailable, Message: fmt.Sprintf("%s: this host could not renew its session "+
			"for %s", j.store.where, j.length), Hint: "see that the server runs and can be reached from here"}
		if why := j.why.Load(); why != nil {
			e.Message += ": " + (*why).Error()
			var known *state.Error
			if errors.As(j.store.fail("renew", *why), &known) && known.Hint != "" {
				e.Hint = known.Hint
			}
		}
		return e
	}
	return nil
}

func (j *session) overError() error {
	if j.store.closed.Load() {
		return &state.Error{Kind: state.ErrClosed, Message: j.store.where + ": the store is closed"}
	}
	if j.store.opts.Many {
		return &state.Error{Kind: state.ErrUnavailable, Message: j.store.where + ": this host could not renew its session " +
			"in time, and other hosts act for it now; it begins a new session", Hint: "try again"}
	}
	return &state.Error{Kind: state.ErrOwned, Message: j.store.where + " belongs to another host now: this one could " +
		"not renew its session in time", Hint: "talk to the other host; this one serves again after a restart, when " +
		"the other one has ended"}
}

// lock queues the lock of the session's row until the end of the transaction.
func (j *session) lock(q *statements) {
	if j == nil {
		return
	}
	id := j.id.Load()
	q.Queue("SELECT true FROM @.sessions WHERE id = $1 FOR KEY SHARE", id[:]).QueryRow(func(row pgx.Row) error {
		var there bool
		err := row.Scan(&there)
		if errors.Is(err, pgx.ErrNoRows) {
			if j.id.Load() == id {
				j.over.Store(true)
			}
			return j.overError()
		}
		return err
	})
}
