package postgres

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/state"
)

// This file is a transaction's first round trip: what a batch locks and reads before it writes.

// lock starts the transaction, takes the locks in an order that all batches share, and checks the preconditions, those
// on records first.
func (t *transaction) lock(ctx context.Context) error {
	q := statements{schema: t.schema}
	q.Queue("begin isolation level read committed read write")
	q.Queue(setLongestIdle).QueryRow(scanSetting)
	t.session.lock(&q)
	for _, space := range t.spaces() {
		q.Queue(`INSERT INTO @.spaces (space, used) VALUES ($1, 0)
			ON CONFLICT (space) DO UPDATE SET used = spaces.used RETURNING used`, space[:]).
			QueryRow(func(row pgx.Row) error {
				var used int64
				err := row.Scan(&used)
				t.before[space] = used
				t.used[space] += used
				return err
			})
	}
	have := map[recordKey][]byte{}
	expected, absent := t.expectedRecords()
	written := t.writtenRecords()
	for _, key := range expected {
		strength := "SHARE" // batches that only rely on a record do not wait for each other
		if written[key] {
			strength = "UPDATE"
		}
		if absent[key] {
			t.lockAbsent(&q, key, strength, have)
		} else {
			t.lockRecord(&q, key, strength, have)
		}
	}
	t.readKeys(&q)
	t.readLogs(&q)
	if err := t.conn.SendBatch(ctx, &q.Batch).Close(); err != nil {
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
	return t.checkVersions()
}

// checkVersions checks the preconditions on keys.
func (t *transaction) checkVersions() error {
	puts := 0
	for _, o := range t.batch.Ops() {
		if o.Kind != state.OpPut {
			continue
		}
		found := t.found[puts]
		puts++
		if o.Expected == state.AnyVersion {
			continue
		}
		if err := o.CheckVersion(found); err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads, in one statement, the versions and sizes of the keys that the batch puts, for their preconditions and
// for the usage. Another statement allocates their new versions.
func (t *transaction) readKeys(q *statements) {
	puts, spaces, heads, hashes := t.opsOf(state.OpPut)
	if len(puts) == 0 {
		return
	}
	q.Queue("SELECT nextval($2::text::regclass) FROM generate_series(1, $1::int)", len(puts),
		t.schema.in("@.versions")).
		Query(func(rows pgx.Rows) (err error) {
			t.result.Versions, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			return err
		})
	written := map[spaceName]*int64{} // sizes of values that the batch itself replaces
	next := 0
	q.Queue(`SELECT coalesce(found.version, 0), found.size
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS key (space, head, hash, n)
		LEFT JOIN LATERAL (SELECT version, octet_length(data)::bigint AS size FROM @.kv
			WHERE space = key.space AND head = key.head AND hash = key.hash LIMIT 1) found ON true
		ORDER BY key.n`, spaces, heads, hashes).Query(eachRow(func(rows pgx.Rows) error {
		var found int64
		var size *int64
		if err := rows.Scan(&found, &size); err != nil {
			return err
		}
		o := puts[next]
		next++
		t.found = append(t.found, found)
		if t.deletes || o.Replaced {
			return nil
		}
		key := spaceName{o.Space, o.Name}
		if before := written[key]; before != nil {
			size = before
		}
		t.countPut(o, size)
		now := int64(len(o.Value))
		written[key] = &now
		return nil
	}))
}

// readLogs reads, in one statement, the last sequence numbers of the logs that the batch appends to, from which it
// computes those of the new entries.
func (t *transaction) readLogs(q *statements) {
	appends, spaces, heads, hashes := t.opsOf(state.OpAppend)
	if len(appends) == 0 || t.deletes {
		return
	}
	added := map[spaceName]int64{}
	next := 0
	q.Queue(`SELECT coalesce((SELECT last FROM @.logs WHERE space = key.space AND head = key.head AND hash = key.hash), 0)
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS key (space, head, hash, n)
		ORDER BY key.n`, spaces, heads, hashes).Query(eachRow(func(rows pgx.Rows) error {
		var last int64
		if err := rows.Scan(&last); err != nil {
			return err
		}
		o := appends[next]
		next++
		log := spaceName{o.Space, o.Name}
		added[log]++
		seq := last + added[log]
		t.result.Seqs = append(t.result.Seqs, seq)
		t.countAppend(o, seq == 1)
		return nil
	}))
}

// opsOf returns the batch's operations of a kind, and their names as columns for unnest.
func (t *transaction) opsOf(kind state.OpKind) (ops []state.Op, spaces, heads, hashes [][]byte) {
	for _, o := range t.batch.Ops() {
		if o.Kind == kind {
			n := nameOf(o.Name)
			ops, spaces = append(ops, o), append(spaces, o.Space[:])
			heads, hashes = append(heads, n.head), append(hashes, n.hash)
		}
	}
	return ops, spaces, heads, hashes
}

// eachRow calls do for every row.
func eachRow(do func(pgx.Rows) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := do(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// countPut adds what a put takes to the usage. old is the size of the value that it replaces, nil for a new key.
func (t *transaction) countPut(o state.Op, old *int64) {
	t.used[o.Space] += int64(len(o.Value))
	if old == nil {
		t.used[o.Space] += int64(len(o.Name))
	} else {
		t.used[o.Space] -= *old
	}
}

// countAppend adds what an entry takes to the usage, and the name of a new log.
func (t *transaction) countAppend(o state.Op, first bool) {
	t.used[o.Space] += int64(len(o.Value)) + state.EntryOverhead
	if first {
		t.used[o.Space] += int64(len(o.Name))
	}
}

// lockRecord reads a record and locks it.
func (t *transaction) lockRecord(q *statements, key recordKey, strength string, have map[recordKey][]byte) {
	n := nameOf(key.name)
	q.Queue("SELECT data FROM @.records WHERE tbl = $1 AND head = $2 AND hash = $3 FOR "+strength, tableKey(key.table),
		n.head, n.hash).Query(eachRow(func(rows pgx.Rows) error {
		var data []byte
		err := rows.Scan(&data)
		have[key] = data
		return err
	}))
}

// lockAbsent is lockRecord for a record that should be absent, and so has no row to lock. A placeholder row, which
// write removes, makes others that want the record wait.
func (t *transaction) lockAbsent(q *statements, key recordKey, strength string, have map[recordKey][]byte) {
	n := nameOf(key.name)
	ours := false
	q.Queue(`INSERT INTO @.records (tbl, head, hash, tail, data, sum) VALUES ($1, $2, $3, $4, '', 0)
		ON CONFLICT (tbl, head, hash) DO NOTHING RETURNING true`, tableKey(key.table), n.head, n.hash, n.tail).
		Query(func(rows pgx.Rows) error {
			ours = rows.Next()
			rows.Close()
			if ours {
				t.reserved = append(t.reserved, key)
			}
			return rows.Err()
		})
	q.Queue("SELECT data FROM @.records WHERE tbl = $1 AND head = $2 AND hash = $3 FOR "+strength, tableKey(key.table),
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

// expectedRecords returns the records with a precondition, in order, and those of them that should be absent.
func (t *transaction) expectedRecords() (ordered []recordKey, absent map[recordKey]bool) {
	absent = map[recordKey]bool{}
	for _, o := range t.batch.Ops() {
		if o.Kind == state.OpExpectRecord {
			key := recordKey{o.Table, o.Name}
			absent[key] = absent[key] || o.Value == nil
		}
	}
	return slices.SortedFunc(maps.Keys(absent), func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.name, b.name))
	}), absent
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
