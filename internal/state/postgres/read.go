package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Get returns a key's value.
func (s *Store) Get(ctx context.Context, space state.Space, key string) (state.Value, error) {
	n := nameOf(key)
	var v state.Value
	var have int64
	found, err := s.row(ctx, "get", "SELECT version, data, sum FROM @.kv WHERE space = $1 AND head = $2 AND hash = $3",
		[]any{space[:], n.head, n.hash}, &v.Version, &v.Data, &have)
	if err != nil || !found {
		return state.Value{}, err
	}
	return v, checkSum("key", key, v.Data, have)
}

// List returns a page of a space's keys.
//
// The statement omits the values beyond MaxBytes, so that the server sends no more than a page.
func (s *Store) List(ctx context.Context, space state.Space, q state.ListQuery) (state.Page, error) {
	limit, err := state.PageLimit("list", q.Limit, q.MaxBytes)
	if err != nil {
		return state.Page{}, err
	}
	var w whereClause
	w.and("space = %s", space[:])
	w.prefix(q.Prefix)
	w.after(q.After)
	size := "octet_length(head) + octet_length(tail)"
	if q.Values {
		size += " + octet_length(data)"
	}
	query := fmt.Sprintf(`
		SELECT head || tail, version, octet_length(data), total, sum,
		       CASE WHEN %s::bool AND (n = 1 OR %s::bigint = 0 OR total <= %[2]s::bigint) THEN data END
		FROM (SELECT *, row_number() OVER w AS n, sum(%s) OVER w AS total
		      FROM (SELECT * FROM @.kv WHERE true%s ORDER BY head, tail LIMIT %s) page
		      WINDOW w AS (ORDER BY head, tail ROWS UNBOUNDED PRECEDING)) counted
		ORDER BY n`, w.arg(q.Values), w.arg(int64(q.MaxBytes)), size, w.text, w.arg(limit+1))
	var page state.Page
	err = s.rows(ctx, "list", query, w.args, func(rows pgx.Rows) error {
		var key []byte
		var item state.Item
		var total, have int64
		if err := rows.Scan(&key, &item.Version, &item.Size, &total, &have, &item.Data); err != nil || page.More {
			return err
		}
		if len(page.Items) == limit || len(page.Items) > 0 && q.MaxBytes > 0 && total > int64(q.MaxBytes) {
			page.More = true
			return nil
		}
		item.Key = string(key)
		page.Items = append(page.Items, item)
		if !q.Values {
			return nil
		}
		return checkSum("key", item.Key, item.Data, have)
	})
	if err != nil {
		return state.Page{}, err
	}
	return page, nil
}

// ReadLog returns a page of a log's entries.
func (s *Store) ReadLog(ctx context.Context, space state.Space, q state.LogQuery) (state.Entries, error) {
	limit, err := state.PageLimit("read log", q.Limit, q.MaxBytes)
	if err != nil {
		return state.Entries{}, err
	}
	if q.From < 0 {
		return state.Entries{}, invalid("read log: from is %d, want 0 or more", q.From)
	}
	order, bound := "ASC", "seq >= $5"
	if q.Reverse {
		order, bound = "DESC", "($5::bigint = 0 OR seq <= $5)"
	}
	n := nameOf(q.Log)
	query := fmt.Sprintf(`
		SELECT l.last, coalesce(e.seq, 0), coalesce(e.total, 0), coalesce(e.sum, 0),
		       CASE WHEN e.n = 1 OR $4::bigint = 0 OR e.total <= $4 THEN e.data END
		FROM @.logs l LEFT JOIN LATERAL (
		      SELECT *, row_number() OVER w AS n, sum(octet_length(data)) OVER w AS total
		      FROM (SELECT * FROM @.entries WHERE log = l.id AND %s ORDER BY seq %s LIMIT $6) page
		      WINDOW w AS (ORDER BY seq %[2]s ROWS UNBOUNDED PRECEDING)) e ON true
		WHERE l.space = $1 AND l.head = $2 AND l.hash = $3
		ORDER BY e.n`, bound, order)
	var es state.Entries
	args := []any{space[:], n.head, n.hash, int64(q.MaxBytes), q.From, limit + 1}
	err = s.rows(ctx, "read log", query, args, func(rows pgx.Rows) error {
		var entry state.Entry
		var total, have int64
		if err := rows.Scan(&es.Last, &entry.Seq, &total, &have, &entry.Data); err != nil || es.More {
			return err
		}
		if entry.Seq == 0 {
			return nil // the log exists, and no entry was found
		}
		if entry.Seq != nextSeq(q, es) {
			return missingEntry(space, q, es)
		}
		if len(es.Items) == limit || len(es.Items) > 0 && q.MaxBytes > 0 && total > int64(q.MaxBytes) {
			es.More = true
			return nil
		}
		es.Items = append(es.Items, entry)
		return checkSum("entry of log", q.Log, entry.Data, have)
	})
	if err != nil {
		return state.Entries{}, err
	}
	if next := nextSeq(q, es); !es.More && next >= 1 && next <= es.Last {
		return state.Entries{}, missingEntry(space, q, es)
	}
	return es, nil
}

func missingEntry(space state.Space, q state.LogQuery, es state.Entries) error {
	return &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("entry %d of log %.80q in space %s is missing; the "+
		"log's last one is %d", nextSeq(q, es), q.Log, space, es.Last), Hint: "restore the database from a backup"}
}

// nextSeq is the number of the entry after those read, in the direction of reading.
func nextSeq(q state.LogQuery, es state.Entries) int64 {
	if len(es.Items) > 0 {
		last := es.Items[len(es.Items)-1].Seq
		if q.Reverse {
			return last - 1
		}
		return last + 1
	}
	if !q.Reverse {
		return max(q.From, 1)
	}
	if q.From == 0 {
		return es.Last
	}
	return min(q.From, es.Last)
}

// LastSeq returns the sequence number of a log's last entry.
func (s *Store) LastSeq(ctx context.Context, space state.Space, log string) (last int64, err error) {
	n := nameOf(log)
	_, err = s.row(ctx, "last entry of a log", "SELECT last FROM @.logs WHERE space = $1 AND head = $2 AND hash = $3",
		[]any{space[:], n.head, n.hash}, &last)
	return last, err
}

// Count reports what DeletePrefix would remove.
func (s *Store) Count(ctx context.Context, space state.Space, prefix string) (state.Counts, error) {
	var w whereClause
	w.and("space = %s", space[:])
	w.prefix(prefix)
	var n state.Counts
	var keyBytes, logBytes int64
	_, err := s.rowWithin(ctx, s.opts.Timeout, "count", fmt.Sprintf(`
		SELECT * FROM
		  (SELECT count(*), coalesce(sum(%s), 0)::bigint FROM @.kv WHERE true%s) k,
		  (SELECT count(*), coalesce(sum(last), 0)::bigint, coalesce(sum(%s), 0)::bigint FROM @.logs WHERE true%[2]s) l`,
		keySize, w.text, logSize), w.args, &n.Keys, &keyBytes, &n.Logs, &n.Entries, &logBytes)
	n.Bytes = keyBytes + logBytes
	return n, err
}

// What a row of kv and of logs adds to the usage.
var (
	keySize = "octet_length(head) + octet_length(tail) + octet_length(data)"
	logSize = fmt.Sprintf("octet_length(head) + octet_length(tail) + bytes + %d * last", state.EntryOverhead)
)

// Usage returns the size of a space in bytes.
func (s *Store) Usage(ctx context.Context, space state.Space) (used int64, err error) {
	_, err = s.row(ctx, "usage", "SELECT used FROM @.spaces WHERE space = $1", []any{space[:]}, &used)
	return used, err
}

// Record returns a host record; nil if it is absent.
func (s *Store) Record(ctx context.Context, table state.Table, key []byte) ([]byte, error) {
	n := nameOf(string(key))
	var data []byte
	var have int64
	found, err := s.row(ctx, "record of table "+string(table),
		"SELECT data, sum FROM @.records WHERE tbl = $1 AND head = $2 AND hash = $3",
		[]any{tableKey(table), n.head, n.hash}, &data, &have)
	if err != nil || !found {
		return nil, err
	}
	if err := checkSum("record", string(key), data, have); err != nil {
		return nil, err
	}
	return data, nil
}

// ReadTogether implements fleet.Together. Each record is read by a statement of its own, because six statements that
// find one row take two thirds of the time of one that joins six keys with the table.
func (s *Store) ReadTogether(ctx context.Context, refs []fleet.Ref, list *fleet.List) ([][]byte, []state.KeyValue,
	error) {
	if err := s.session.check(); err != nil {
		return nil, nil, s.fail("records", err)
	}
	values := make([][]byte, len(refs))
	q := s.reading()
	for i, ref := range refs {
		n := nameOf(string(ref.Key))
		q.Queue("SELECT data, sum FROM @.records WHERE tbl = $1 AND head = $2 AND hash = $3", tableKey(ref.Table), n.head,
			n.hash).QueryRow(func(row pgx.Row) error {
			var have int64
			err := row.Scan(&values[i], &have)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			return checkSum("record", string(ref.Key), values[i], have)
		})
	}
	var listed []state.KeyValue
	if list != nil {
		query, args := recordsQuery(list.Table, list.Prefix, nil, state.DefaultLimit)
		q.Queue(query, args...).Query(eachRow(scanRecords(&listed)))
	}
	w := s.wait(ctx, s.opts.ReadTimeout)
	defer w.end()
	if err := s.pool.SendBatch(w, &q.Batch).Close(); err != nil {
		return nil, nil, s.fail("records", w.error(err))
	}
	return values, listed, nil
}

// Records returns a page of a table.
func (s *Store) Records(ctx context.Context, table state.Table, prefix, after []byte, limit int) ([]state.KeyValue,
	error) {
	limit, err := state.PageLimit("records", limit, 0)
	if err != nil {
		return nil, err
	}
	query, args := recordsQuery(table, prefix, after, limit)
	var kvs []state.KeyValue
	if err = s.rows(ctx, "records of table "+string(table), query, args, scanRecords(&kvs)); err != nil {
		return nil, err
	}
	return kvs, nil
}

// recordsQuery selects a page of records; scanRecords adds a row of it to kvs.
func recordsQuery(table state.Table, prefix, after []byte, limit int) (query string, args []any) {
	var w whereClause
	w.and("tbl = %s", tableKey(table))
	w.prefix(string(prefix))
	w.after(string(after))
	return fmt.Sprintf("SELECT head || tail, data, sum FROM @.records WHERE true%s ORDER BY head, tail LIMIT %s", w.text,
		w.arg(limit)), w.args
}

func scanRecords(kvs *[]state.KeyValue) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var kv state.KeyValue
		var have int64
		if err := rows.Scan(&kv.Key, &kv.Value, &have); err != nil {
			return err
		}
		*kvs = append(*kvs, kv)
		return checkSum("record", string(kv.Key), kv.Value, have)
	}
}

// wait is a context that ends if the server is silent for too long: a server that hangs neither answers nor closes the
// connection.
type wait struct {
	context.Context
	store *Store
	limit time.Duration
	timer *time.Timer
	stop  context.CancelCauseFunc
}

var errSilent = errors.New("the server is silent")

// wait starts to wait for the server. The caller must call end.
func (s *Store) wait(ctx context.Context, limit time.Duration) *wait {
	w := &wait{store: s, limit: limit}
	w.Context, w.stop = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.stop(errSilent) })
	return w
}

// heard must be called when the server has sent something.
func (w *wait) heard() { w.timer.Reset(w.limit) }

func (w *wait) end() {
	w.timer.Stop()
	w.stop(nil)
}

// error is the call's error, or ErrUnavailable if the call ended because the server was silent.
func (w *wait) error(err error) error {
	if err == nil || !errors.Is(context.Cause(w), errSilent) {
		return err
	}
	return &state.Error{Kind: state.ErrUnavailable, Cause: errSilent, Message: fmt.Sprintf("%s did not answer within %s",
		w.store.where, w.limit), Hint: "see that the server runs and can be reached from here"}
}

// row reads the single row of a query; false if there is none.
func (s *Store) row(ctx context.Context, what, query string, args []any, into ...any) (bool, error) {
	return s.rowWithin(ctx, s.opts.ReadTimeout, what, query, args, into...)
}

// rowWithin is row with a limit, for slow queries.
func (s *Store) rowWithin(ctx context.Context, limit time.Duration, what, query string, args []any, into ...any) (bool,
	error) {
	if err := s.session.check(); err != nil {
		return false, s.fail(what, err)
	}
	w := s.wait(ctx, limit)
	defer w.end()
	found := true
	q := s.reading()
	q.Queue(query, args...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(into...)
		if errors.Is(err, pgx.ErrNoRows) {
			found, err = false, nil
		}
		return err
	})
	err := s.pool.SendBatch(w, &q.Batch).Close()
	return err == nil && found, s.fail(what, w.error(err))
}

// rows calls each for every row of a query, which may keep its slices.
func (s *Store) rows(ctx context.Context, what, query string, args []any, each func(pgx.Rows) error) error {
	return s.rowsWithin(ctx, s.opts.ReadTimeout, what, query, args, each)
}

// rowsWithin is rows with a limit, for queries whose first row may take long.
func (s *Store) rowsWithin(ctx context.Context, limit time.Duration, what, query string, args []any,
	each func(pgx.Rows) error) error {
	if err := s.session.check(); err != nil {
		return s.fail(what, err)
	}
	w := s.wait(ctx, limit)
	defer w.end()
	q := s.reading()
	q.Queue(query, args...).Query(eachRow(func(rows pgx.Rows) error {
		w.heard()
		return each(rows)
	}))
	return s.fail(what, w.error(s.pool.SendBatch(w, &q.Batch).Close()))
}

// reading starts the statements of a read. A pooler may send each transaction to another server, so behind one the read
// is in the same transaction as a query for the server.
func (s *Store) reading() *statements {
	q := &statements{schema: s.schema}
	if s.pooled {
		q.Queue("SELECT " + s.serverText()).QueryRow(func(row pgx.Row) error {
			var server string
			if err := row.Scan(&server); err != nil {
				return err
			}
			return s.checkServer(server)
		})
	}
	return q
}

var _ state.Enumerator = (*Store)(nil)

// Tables implements state.Enumerator. Names of more than 255 bytes are not restored.
func (s *Store) Tables(ctx context.Context) (tables []state.Table, err error) {
	err = s.names(ctx, "tables", "SELECT DISTINCT tbl FROM @.records ORDER BY tbl", nil, func(name []byte) {
		tables = append(tables, state.Table(name))
	})
	return tables, err
}

// Spaces implements state.Enumerator.
func (s *Store) Spaces(ctx context.Context) (spaces []state.Space, err error) {
	err = s.names(ctx, "spaces", "SELECT space FROM @.spaces ORDER BY space", nil, func(name []byte) {
		spaces = append(spaces, state.Space(name))
	})
	return spaces, err
}

// Logs implements state.Enumerator.
func (s *Store) Logs(ctx context.Context, space state.Space) (logs []string, err error) {
	err = s.names(ctx, "logs", "SELECT head || tail FROM @.logs WHERE space = $1 ORDER BY head, tail", []any{space[:]},
		func(name []byte) { logs = append(logs, string(name)) })
	return logs, err
}

// names reads a column of names.
func (s *Store) names(ctx context.Context, what, query string, args []any, each func([]byte)) error {
	return s.rowsWithin(ctx, s.opts.Timeout, what, query, args, func(rows pgx.Rows) error {
		var name []byte
		err := rows.Scan(&name)
		each(name)
		return err
	})
}
