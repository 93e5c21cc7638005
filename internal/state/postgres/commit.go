package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memhost/memhost/internal/state"
)

// MaxValue bounds one value, entry or record, in bytes: PostgreSQL takes no message of a gigabyte.
const MaxValue = 512 << 20

// attempts is how often a batch is tried that the server rolled back because of a deadlock with another one.
const attempts = 10

// Commit applies a batch in one transaction of three round trips: it locks what the batch touches and reads what its
// preconditions name; it writes; it notes the usage of the spaces and the token, and commits.
//
// Batches that touch the same space or the same record go one after another, over all hosts. A context that ends before
// the transaction has begun withdraws the batch; later, Commit waits for the outcome, at most Options.Timeout.
//
// When the connection is lost during the commit, the token decides what happened. ErrUncertain is returned only while
// no server that accepts writes can be asked.
func (s *Store) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if err := s.checkBatch(ctx, b); err != nil {
		return state.CommitResult{}, err
	}
	if b.Len() == 0 {
		return state.NewResult(b), nil
	}
	var result state.CommitResult
	var err error
	for range attempts {
		result, err = s.commitOnce(ctx, b)
		if err == nil {
			s.forgetTokens(ctx)
			return result, nil
		}
		if !again(err) {
			break
		}
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = &state.Error{Kind: state.ErrUnavailable, Cause: err, Message: fmt.Sprintf("commit: %s: it took longer than "+
			"%s, nothing was applied", s.where, s.opts.Timeout), Hint: "see what holds the database up"}
	}
	return state.CommitResult{}, s.fail("commit", err)
}

func (s *Store) checkBatch(ctx context.Context, b *state.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	for i, o := range b.Ops() {
		if len(o.Value) > MaxValue {
			return invalid("batch: operation %d: the value has %d bytes, the database takes at most %d", i, len(o.Value),
				MaxValue)
		}
	}
	if s.closed.Load() {
		return s.fail("commit", errors.New("closed"))
	}
	if err := s.past.error(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("state: commit: %w", err)
	}
	return nil
}

// transaction is one attempt to commit a batch.
type transaction struct {
	batch   *state.Batch
	session *session
	conn    *pgxpool.Conn
	token   []byte
	number  int64 // of the commit
	// before and used are the usage of the spaces that the batch touches, before the batch and with it.
	before, used map[state.Space]int64
	// reserved are the records that were absent and are held by a row of ours until the batch has written.
	reserved []recordKey
	result   state.CommitResult
}

type recordKey struct {
	table state.Table
	name  string
}

func (s *Store) commitOnce(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return state.CommitResult{}, err
	}
	defer conn.Release() // closes a connection whose transaction is open
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	t := &transaction{batch: b, session: s.session, conn: conn, token: token, before: map[state.Space]int64{},
		used: map[state.Space]int64{}, result: state.NewResult(b)}
	for _, step := range []func(context.Context) error{t.lock, t.write, t.checkUsage} {
		if err := step(ctx); err != nil {
			t.rollback(ctx)
			return state.CommitResult{}, err
		}
	}
	err = t.finish(ctx)
	switch {
	case err == nil:
		s.past.committed(t.number, token)
		return t.result, nil
	case !uncertain(err):
		t.rollback(ctx)
		return state.CommitResult{}, err
	}
	_ = conn.Conn().Close(ctx) // it is of no use, and the server notices sooner
	number, askErr := s.settle(ctx, token)
	switch {
	case askErr != nil:
		return state.CommitResult{}, &state.Error{Kind: state.ErrUncertain, Cause: err,
			Message: fmt.Sprintf("commit: %s: the connection was lost (%s), and the outcome cannot be asked: %s", s.where,
				err, askErr), Hint: "see that the server runs and can be reached from here"}
	case number == 0:
		return state.CommitResult{}, err
	}
	s.past.committed(number, token)
	return t.result, nil
}

func (t *transaction) rollback(ctx context.Context) {
	if !t.conn.Conn().IsClosed() {
		_, _ = t.conn.Exec(ctx, "rollback") // Release closes a connection on which this failed
	}
}

// lock begins the transaction, takes the locks in an order that all batches share, and checks the preconditions.
func (t *transaction) lock(ctx context.Context) error {
	var q pgx.Batch
	q.Queue("begin isolation level read committed read write")
	t.session.lock(&q)
	for _, space := range t.spaces() {
		q.Queue(`INSERT INTO spaces (space, used) VALUES ($1, 0)
			ON CONFLICT (space) DO UPDATE SET used = spaces.used RETURNING used`, space[:]).
			QueryRow(func(row pgx.Row) error {
				var used int64
				err := row.Scan(&used)
				t.before[space], t.used[space] = used, used
				return err
			})
	}
	have := map[recordKey][]byte{}
	written := t.writtenRecords()
	for _, key := range t.expectedRecords() {
		strength := "SHARE" // batches that only rely on a record do not wait for each other
		if written[key] {
			strength = "UPDATE"
		}
		t.lockRecord(&q, key, strength, have)
	}
	for _, o := range t.batch.Ops() {
		if o.Kind != state.OpPut || o.Expected == state.AnyVersion {
			continue
		}
		n := nameOf(o.Name)
		q.Queue("SELECT coalesce((SELECT version FROM kv WHERE space = $1 AND head = $2 AND hash = $3), 0)", o.Space[:],
			n.head, n.hash).QueryRow(func(row pgx.Row) error {
			var found int64
			if err := row.Scan(&found); err != nil {
				return err
			}
			return o.CheckVersion(found)
		})
	}
	if err := t.conn.SendBatch(ctx, &q).Close(); err != nil {
		return err
	}
	for _, o := range t.batch.Ops() {
		if o.Kind != state.OpExpectRecord {
			continue
		}
		if err := o.CheckRecord(have[recordKey{o.Table, o.Name}]); err != nil {
			return err
		}
	}
	return nil
}

// lockRecord reads a record and locks it. An absent one has no row to lock: a row of ours takes its place until write
// removes it, and makes others that want the record wait.
func (t *transaction) lockRecord(q *pgx.Batch, key recordKey, strength string, have map[recordKey][]byte) {
	n := nameOf(key.name)
	ours := false
	q.Queue(`INSERT INTO records (tbl, head, hash, tail, data, sum) VALUES ($1, $2, $3, $4, '', 0)
		ON CONFLICT (tbl, head, hash) DO NOTHING RETURNING true`, tableKey(key.table), n.head, n.hash, n.tail).
		Query(func(rows pgx.Rows) error {
			ours = rows.Next()
			rows.Close()
			if ours {
				t.reserved = append(t.reserved, key)
			}
			return rows.Err()
		})
	q.Queue("SELECT data FROM records WHERE tbl = $1 AND head = $2 AND hash = $3 FOR "+strength, tableKey(key.table),
		n.head, n.hash).Query(func(rows pgx.Rows) error {
		there := false
		for rows.Next() {
			there = true
			var data []byte
			if err := rows.Scan(&data); err != nil {
				return err
			}
			if !ours {
				have[key] = data
			}
		}
		if err := rows.Err(); err != nil || there {
			return err
		}
		return errVanished
	})
}

// spaces returns the spaces that the batch writes to, in order.
func (t *transaction) spaces() []state.Space {
	set := map[state.Space]bool{}
	for _, o := range t.batch.Ops() {
		switch o.Kind {
		case state.OpPut, state.OpAppend, state.OpDeletePrefix:
			set[o.Space] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b state.Space) int { return bytes.Compare(a[:], b[:]) })
}

// expectedRecords returns the records with a precondition, in order.
func (t *transaction) expectedRecords() []recordKey {
	set := map[recordKey]bool{}
	for _, o := range t.batch.Ops() {
		if o.Kind == state.OpExpectRecord {
			set[recordKey{o.Table, o.Name}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.name, b.name))
	})
}

// writtenRecords returns the records that the batch puts or deletes.
func (t *transaction) writtenRecords() map[recordKey]bool {
	set := map[recordKey]bool{}
	for _, o := range t.batch.Ops() {
		if o.Kind == state.OpPutRecord || o.Kind == state.OpDeleteRecord {
			set[recordKey{o.Table, o.Name}] = true
		}
	}
	return set
}

// write sends the operations in their order.
func (t *transaction) write(ctx context.Context) error {
	var q pgx.Batch
	for _, key := range t.reserved {
		deleteRecord(&q, key.table, key.name)
	}
	for _, o := range t.batch.Ops() {
		switch o.Kind {
		case state.OpPut:
			t.put(&q, o)
		case state.OpAppend:
			t.append(&q, o)
		case state.OpDeletePrefix:
			t.deletePrefix(&q, o)
		case state.OpPutRecord:
			n := nameOf(o.Name)
			q.Queue(`INSERT INTO records (tbl, head, hash, tail, data, sum) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (tbl, head, hash) DO UPDATE SET data = excluded.data, sum = excluded.sum`,
				tableKey(o.Table), n.head, n.hash, n.tail, bytesOf(o.Value), sum(o.Name, o.Value))
		case state.OpDeleteRecord:
			deleteRecord(&q, o.Table, o.Name)
		}
	}
	if q.Len() == 0 {
		return nil
	}
	return t.conn.SendBatch(ctx, &q).Close()
}

func deleteRecord(q *pgx.Batch, table state.Table, key string) {
	n := nameOf(key)
	q.Queue("DELETE FROM records WHERE tbl = $1 AND head = $2 AND hash = $3", tableKey(table), n.head, n.hash)
}

func (t *transaction) put(q *pgx.Batch, o state.Op) {
	version := func(row pgx.Row) error {
		var version int64
		var old *int64
		if err := row.Scan(&version, &old); err != nil {
			return err
		}
		t.result.Versions = append(t.result.Versions, version)
		if o.Replaced {
			return nil
		}
		t.used[o.Space] += int64(len(o.Value))
		if old == nil {
			t.used[o.Space] += int64(len(o.Name))
		} else {
			t.used[o.Space] -= *old
		}
		return nil
	}
	if o.Replaced {
		q.Queue("SELECT nextval('versions'), NULL::bigint").QueryRow(version)
		return
	}
	n := nameOf(o.Name)
	q.Queue(`
		WITH old AS (SELECT octet_length(data)::bigint AS size FROM kv WHERE space = $1 AND head = $2 AND hash = $3)
		INSERT INTO kv (space, head, hash, tail, version, data, sum)
		VALUES ($1, $2, $3, $4, nextval('versions'), $5, $6)
		ON CONFLICT (space, head, hash) DO UPDATE SET version = excluded.version, data = excluded.data, sum = excluded.sum
		RETURNING version, (SELECT size FROM old)`,
		o.Space[:], n.head, n.hash, n.tail, bytesOf(o.Value), sum(o.Name, o.Value)).QueryRow(version)
}

func (t *transaction) append(q *pgx.Batch, o state.Op) {
	n := nameOf(o.Name)
	q.Queue(`
		WITH l AS (INSERT INTO logs (space, head, hash, tail, last, bytes) VALUES ($1, $2, $3, $4, 1, $5)
		           ON CONFLICT (space, head, hash) DO UPDATE
		           SET last = logs.last + 1, bytes = logs.bytes + excluded.bytes
		           RETURNING id, last)
		INSERT INTO entries (log, seq, data, sum) SELECT id, last, $6::bytea, $7::bigint FROM l RETURNING seq`,
		o.Space[:], n.head, n.hash, n.tail, len(o.Value), bytesOf(o.Value), sum(o.Name, o.Value)).
		QueryRow(func(row pgx.Row) error {
			var seq int64
			if err := row.Scan(&seq); err != nil {
				return err
			}
			t.result.Seqs = append(t.result.Seqs, seq)
			t.used[o.Space] += int64(len(o.Value)) + state.EntryOverhead
			if seq == 1 {
				t.used[o.Space] += int64(len(o.Name))
			}
			return nil
		})
}

func (t *transaction) deletePrefix(q *pgx.Batch, o state.Op) {
	var w where
	w.and("space = %s", o.Space[:])
	w.prefix(o.Name)
	var n state.Counts
	q.Queue(fmt.Sprintf(`WITH gone AS (DELETE FROM kv WHERE true%s RETURNING %s AS size)
		SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone`, w.text, keySize), w.args...).
		QueryRow(func(row pgx.Row) error { return row.Scan(&n.Keys, &n.Bytes) })
	q.Queue(fmt.Sprintf("DELETE FROM entries WHERE log IN (SELECT id FROM logs WHERE true%s)", w.text), w.args...)
	q.Queue(fmt.Sprintf(`WITH gone AS (DELETE FROM logs WHERE true%s RETURNING last, %s AS size)
		SELECT count(*), coalesce(sum(last), 0)::bigint, coalesce(sum(size), 0)::bigint FROM gone`, w.text, logSize),
		w.args...).QueryRow(func(row pgx.Row) error {
		var size int64
		if err := row.Scan(&n.Logs, &n.Entries, &size); err != nil {
			return err
		}
		n.Bytes += size
		t.used[o.Space] -= n.Bytes
		t.result.Deleted = append(t.result.Deleted, n)
		return nil
	})
}

func (t *transaction) checkUsage(context.Context) error {
	for space, was := range t.before {
		if err := t.batch.CheckUsage(space, was, t.used[space]); err != nil {
			return err
		}
	}
	return nil
}

// finish notes the usage and the token, and commits.
func (t *transaction) finish(ctx context.Context) error {
	var q pgx.Batch
	for _, space := range t.spaces() {
		if used := t.used[space]; used > 0 {
			q.Queue("UPDATE spaces SET used = $2 WHERE space = $1", space[:], used)
		} else {
			q.Queue("DELETE FROM spaces WHERE space = $1", space[:])
		}
	}
	q.Queue("INSERT INTO commits (token) VALUES ($1) RETURNING number", t.token).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.number) })
	q.Queue("commit")
	return t.conn.SendBatch(ctx, &q).Close()
}

// settle finds out the number of the transaction with a token, 0 when it was not committed, after its connection was lost. It writes the
// token itself, marked as lost: that waits for a transaction that is still open, fails on a server that is no longer
// the primary, and keeps a transaction that has not written its token yet from ever committing.
func (s *Store) settle(ctx context.Context, token []byte) (number int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var lost bool
		err := s.pool.QueryRow(ctx, `INSERT INTO commits (token, lost) VALUES ($1, true)
			ON CONFLICT (token) DO UPDATE SET at = now() RETURNING lost, number`, token).Scan(&lost, &number)
		switch {
		case err == nil && lost:
			return 0, nil
		case err == nil:
			return number, nil
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(wait):
		}
	}
}

// forgetTokens removes tokens that nobody will ask for any more, at every thousandth commit.
func (s *Store) forgetTokens(ctx context.Context) {
	if s.commits.Add(1)%1000 == 0 {
		// When it fails, the next thousandth tries again.
		_, _ = s.pool.Exec(ctx, "DELETE FROM commits WHERE at < now() - interval '1 day'")
	}
}

// bytesOf makes nil an empty value: nil would be NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
