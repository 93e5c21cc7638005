package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
)

// This file is a transaction's last round trip: what a batch writes.

// write queues the operations in order.
func (t *transaction) write(q *statements) {
	written := t.writtenRecords()
	puts := 0
	for _, key := range t.reserved {
		if !written[key] {
			deleteRecord(q, key.table, key.name)
		}
	}
	for _, o := range t.batch.Ops() {
		switch o.Kind {
		case state.OpPut:
			t.put(q, o, puts)
			puts++
		case state.OpAppend:
			t.append(q, o)
		case state.OpDeletePrefix:
			t.deletePrefix(q, o)
		case state.OpPutRecord:
			n := nameOf(o.Name)
			q.Queue(`INSERT INTO @.records (tbl, head, hash, tail, data, sum) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (tbl, head, hash) DO UPDATE SET data = excluded.data, sum = excluded.sum`,
				tableKey(o.Table), n.head, n.hash, n.tail, bytesOf(o.Value), sum(o.Name, o.Value))
		case state.OpDeleteRecord:
			deleteRecord(q, o.Table, o.Name)
		}
	}
}

func deleteRecord(q *statements, table state.Table, key string) {
	n := nameOf(key)
	q.Queue("DELETE FROM @.records WHERE tbl = $1 AND head = $2 AND hash = $3", tableKey(table), n.head, n.hash)
}

// put queues the batch's n-th put.
func (t *transaction) put(q *statements, o state.Op, n int) {
	if o.Replaced {
		return
	}
	of := nameOf(o.Name)
	queued := q.Queue(`
		WITH old AS (SELECT octet_length(data)::bigint AS size FROM @.kv WHERE space = $1 AND head = $2 AND hash = $3)
		INSERT INTO @.kv (space, head, hash, tail, version, data, sum) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (space, head, hash) DO UPDATE SET version = excluded.version, data = excluded.data, sum = excluded.sum
		RETURNING (SELECT size FROM old)`,
		o.Space[:], of.head, of.hash, of.tail, t.result.Versions[n], bytesOf(o.Value), sum(o.Name, o.Value))
	if t.deletes {
		queued.QueryRow(func(row pgx.Row) error {
			var old *int64
			err := row.Scan(&old)
			t.countPut(o, old)
			return err
		})
	}
}

func (t *transaction) append(q *statements, o state.Op) {
	n := nameOf(o.Name)
	queued := q.Queue(`
		WITH l AS (INSERT INTO @.logs (space, head, hash, tail, last, bytes) VALUES ($1, $2, $3, $4, 1, $5)
		           ON CONFLICT (space, head, hash) DO UPDATE
		           SET last = logs.last + 1, bytes = logs.bytes + excluded.bytes
		           RETURNING id, last)
		INSERT INTO @.entries (log, seq, data, sum) SELECT id, last, $6::bytea, $7::bigint FROM l RETURNING seq`,
		o.Space[:], n.head, n.hash, n.tail, len(o.Value), bytesOf(o.Value), sum(o.Name, o.Value))
	if t.deletes {
		queued.QueryRow(func(row pgx.Row) error {
			var seq int64
			if err := row.Scan(&seq); err != nil {
				return err
			}
			t.result.Seqs = append(t.result.Seqs, seq)
			t.countAppend(o, seq == 1)
			return nil
		})
	}
}

func (t *transaction) deletePrefix(q *statements, o state.Op) {
	var w whereClause
	w.and("space = %s", o.Space[:])
	w.prefix(o.Name)
	var n state.Counts
	q.Queue(fmt.Sprintf(`WITH gone AS (DELETE FROM @.kv WHERE true%s RETURNING %s AS size)
		SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone`, w.text, keySize), w.args...).
		QueryRow(func(row pgx.Row) error { return row.Scan(&n.Keys, &n.Bytes) })
	q.Queue(fmt.Sprintf("DELETE FROM @.entries WHERE log IN (SELECT id FROM @.logs WHERE true%s)", w.text), w.args...)
	q.Queue(fmt.Sprintf(`WITH gone AS (DELETE FROM @.logs WHERE true%s RETURNING last, %s AS size)
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

func (t *transaction) checkUsage() error {
	for space, was := range t.before {
		if err := t.batch.CheckUsage(space, was, t.used[space]); err != nil {
			return err
		}
	}
	return nil
}

// finish queues the statements that record the usage and the token, and the commit.
func (t *transaction) finish(q *statements) {
	for _, space := range t.spaces() {
		if used := t.used[space]; used > 0 {
			q.Queue("UPDATE @.spaces SET used = $2 WHERE space = $1", space[:], used)
		} else {
			q.Queue("DELETE FROM @.spaces WHERE space = $1", space[:])
		}
	}
	q.Queue("INSERT INTO @.commits (token) VALUES ($1) RETURNING number", t.token).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.number) })
	q.Queue("commit")
}

// bytesOf replaces nil by an empty value: nil would be NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
