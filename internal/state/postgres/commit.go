package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memhost/memhost/internal/state"
)

// MaxValue bounds one value, entry or record, in bytes: PostgreSQL rejects messages of a gigabyte.
const MaxValue = 512 << 20

// attempts is how often a batch is tried if the server rolls it back because of a deadlock with another one.
const attempts = 10

// Commit applies a batch in one transaction of two round trips. The first locks what the batch touches, and reads what
// its preconditions and its result depend on. The second writes, records the usage of the spaces and the token, and
// commits. A batch with a DeletePrefix takes three round trips, because only the deletion shows how much was deleted.
//
// Batches that touch the same space or the same record run one after another, across all hosts. A context that ends
// before the transaction has started withdraws the batch; after that, Commit waits for the outcome, at most
// Options.Timeout.
//
// If the connection is lost during the commit, the token shows what happened. Commit returns ErrUncertain only if it
// cannot reach a server that accepts writes.
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
	schema  schemaName
	conn    *pgxpool.Conn
	token   []byte
	number  int64 // of the commit
	// before and used are the usage of the spaces that the batch touches, without and with the batch.
	before, used map[state.Space]int64
	// reserved lists absent records that are locked by a placeholder row until the batch has written.
	reserved []recordKey
	// found has the present versions of the keys that the batch puts, in its order; 0 for an absent key.
	found []int64
	// deletes means that the batch has a DeletePrefix. Usage and sequence numbers are then counted while it writes.
	// Otherwise they are counted before, because the answer to the last round trip may be lost.
	deletes bool
	result  state.CommitResult
}

type recordKey struct {
	table state.Table
	name  string
}

// spaceName is a key or a log.
type spaceName struct {
	space state.Space
	name  string
}

func (s *Store) commitOnce(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	acquiring := s.wait(ctx, s.opts.Timeout)
	conn, err := s.pool.Acquire(acquiring)
	acquiring.end()
	if err != nil {
		return state.CommitResult{}, acquiring.error(err)
	}
	defer conn.Release() // closes a connection whose transaction is open
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	t := &transaction{batch: b, session: s.session, schema: s.schema, conn: conn, token: token, before: map[state.Space]int64{},
		used: map[state.Space]int64{}, result: state.NewResult(b)}
	t.deletes = slices.ContainsFunc(b.Ops(), func(o state.Op) bool { return o.Kind == state.OpDeletePrefix })
	last := statements{schema: s.schema}
	if err := t.prepare(ctx, &last); err != nil {
		t.rollback(ctx)
		return state.CommitResult{}, err
	}
	t.finish(&last)
	err = conn.SendBatch(ctx, &last.Batch).Close()
	switch {
	case err == nil:
		s.past.committed(t.number, token)
		return t.result, nil
	case !uncertain(err):
		t.rollback(ctx)
		return state.CommitResult{}, err
	}
	_ = conn.Conn().Close(ctx) // it is unusable, and this way the server notices sooner
	conn.Release()             // settle needs another connection, and all commits may call it at once
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

// prepare does everything before the last round trip, and queues what that one writes.
func (t *transaction) prepare(ctx context.Context, last *statements) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	if !t.deletes {
		t.write(last)
		return t.checkUsage()
	}
	q := statements{schema: t.schema}
	t.write(&q)
	if err := t.conn.SendBatch(ctx, &q.Batch).Close(); err != nil {
		return err
	}
	return t.checkUsage()
}

// settle finds the number of the transaction with a token after its connection was lost; 0 means that it was not
// committed. It writes the token itself, marked as lost. This waits for a transaction that is still open, fails on a
// server that is no longer the primary, and keeps a transaction that has not written its token yet from ever
// committing.
func (s *Store) settle(ctx context.Context, token []byte) (number int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var lost bool
		err := s.pool.QueryRow(ctx, s.schema.in(`INSERT INTO @.commits (token, lost) VALUES ($1, true)
			ON CONFLICT (token) DO UPDATE SET at = now() RETURNING lost, number`), token).Scan(&lost, &number)
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

// forgetTokens removes tokens that no longer matter, at every thousandth commit.
func (s *Store) forgetTokens(ctx context.Context) {
	if s.commits.Add(1)%1000 == 0 {
		// If it fails, the next thousandth commit tries again.
		w := s.wait(ctx, s.opts.Timeout)
		defer w.end()
		_, _ = s.pool.Exec(w, s.schema.in("DELETE FROM @.commits WHERE at < now() - interval '1 day'"))
	}
}
