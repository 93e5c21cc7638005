package state

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// writer applies batches to one write transaction.
type writer struct {
	tx                            *bbolt.Tx
	kv, logs, names, usage, table *bbolt.Bucket
	// used caches the usage of the spaces that the transaction touched, until flush writes it.
	used map[Space]int64
	// fill is how full split pages of keys and tables are left.
	fill float64
}

func newWriter(tx *bbolt.Tx) (*writer, error) {
	w := &writer{tx: tx, used: map[Space]int64{}}
	for _, b := range []struct {
		to   **bbolt.Bucket
		name string
	}{{&w.kv, bucketKV}, {&w.logs, bucketLogs}, {&w.names, bucketNames}, {&w.usage, bucketUsage},
		{&w.table, bucketTables}} {
		var err error
		if *b.to, err = bucket(tx, b.name); err != nil {
			return nil, err
		}
	}
	w.logs.FillPercent = fullPages // logs grow at their ends, so a page that was split is hardly written to again
	return w, nil
}

// fullPages is how full bbolt leaves the pages that it splits, if little will be written to them again. Its default of
// one half suits single writes at random keys.
const fullPages = 0.9

// bulkOps is the number of operations from which a batch counts as an import.
const bulkOps = 64

// fillPages prepares for a group of batches. The keys of an import are next to each other: with bbolt's default every
// page of them would stay half empty.
func (w *writer) fillPages(group []*request) {
	ops := 0
	for _, r := range group {
		ops += r.batch.Len()
	}
	if w.fill = bbolt.DefaultFillPercent; ops >= bulkOps*len(group) {
		w.fill = fullPages
	}
	w.kv.FillPercent = w.fill
}

// writes reports whether a batch has anything besides preconditions.
func (b *Batch) writes() bool {
	for _, o := range b.ops {
		if o.Kind != OpExpectRecord {
			return true
		}
	}
	return false
}

// check tests the preconditions of a batch, those on records first. It changes nothing.
func (w *writer) check(b *Batch) error {
	for _, o := range b.ops {
		if o.Kind != OpExpectRecord {
			continue
		}
		have, err := recordOf(w.tx, o.Table, []byte(o.Name))
		if err != nil {
			return err
		}
		if err := o.CheckRecord(have); err != nil {
			return err
		}
	}
	for _, o := range b.ops {
		if o.Kind != OpPut || o.Expected == AnyVersion {
			continue
		}
		var found int64
		k := spaceKey(o.Space, o.Name)
		if stored := w.kv.Get(k); stored != nil {
			var err error
			if found, _, err = unsealValue(k, stored); err != nil {
				return err
			}
		}
		if err := o.CheckVersion(found); err != nil {
			return err
		}
	}
	return nil
}

// apply writes a batch. If it fails, the transaction must not be committed.
func (w *writer) apply(b *Batch) (CommitResult, error) {
	res := NewResult(b)
	before := map[Space]int64{}
	for _, o := range b.ops {
		var delta int64
		var err error
		switch o.Kind {
		case OpPut:
			var version int64
			version, delta, err = w.put(o)
			res.Versions = append(res.Versions, version)
		case OpAppend:
			var seq int64
			seq, delta, err = w.append(o.Space, o.Name, o.Value)
			res.Seqs = append(res.Seqs, seq)
		case OpDeletePrefix:
			var n Counts
			n, err = w.deletePrefix(o.Space, o.Name)
			delta = -n.Bytes
			res.Deleted = append(res.Deleted, n)
		case OpPutRecord:
			err = w.putRecord(o.Table, o.Name, o.Value)
		case OpDeleteRecord:
			err = w.deleteRecord(o.Table, o.Name)
		}
		if err == nil && delta != 0 {
			err = w.account(o.Space, delta, before)
		}
		if err != nil {
			return CommitResult{}, err
		}
	}
	for space, was := range before {
		if err := b.CheckUsage(space, was, w.used[space]); err != nil {
			return CommitResult{}, err
		}
	}
	return res, nil
}

func (w *writer) put(o Op) (version, delta int64, err error) {
	if o.Replaced {
		next, err := w.kv.NextSequence()
		return int64(next), 0, err
	}
	k := spaceKey(o.Space, o.Name)
	if old := w.kv.Get(k); old != nil {
		if _, _, err := unsealValue(k, old); err != nil {
			return 0, 0, err
		}
		delta = -pairBytes(k, old)
	}
	next, err := w.kv.NextSequence()
	if err != nil {
		return 0, 0, err
	}
	var v [versionLen]byte
	binary.BigEndian.PutUint64(v[:], next)
	stored := seal(k, v[:], o.Value)
	return int64(next), delta + pairBytes(k, stored), w.kv.Put(k, stored)
}

func (w *writer) append(space Space, log string, value []byte) (seq, delta int64, err error) {
	last, size, err := logEnd(w.tx, space, log)
	if err != nil {
		return 0, 0, err
	}
	if last == 0 {
		delta = int64(len(log))
	}
	seq = last + 1
	k := logKey(logPrefix(space, log), seq)
	if err := w.logs.Put(k, seal(k, value)); err != nil {
		return 0, 0, err
	}
	name := spaceKey(space, log)
	err = w.names.Put(name, sealInts(name, seq, size+int64(len(value))))
	return seq, delta + int64(len(value)) + EntryOverhead, err
}

func (w *writer) deletePrefix(space Space, prefix string) (Counts, error) {
	var n Counts
	p := spaceKey(space, prefix)
	err := eachPage(w.kv, p, func(k, stored []byte) error {
		n.Keys++
		n.Bytes += pairBytes(k, stored)
		return w.kv.Delete(k)
	})
	if err != nil {
		return Counts{}, err
	}
	err = eachPage(w.names, p, func(k, stored []byte) error {
		var last, size int64
		if err := unsealInts(k, stored, &last, &size); err != nil {
			return err
		}
		n.Logs++
		n.Entries += last
		n.Bytes += logBytes(len(k)-spaceLen, last, size)
		entries := logPrefix(space, string(k[spaceLen:]))
		for seq := int64(1); seq <= last; seq++ {
			if err := w.logs.Delete(logKey(entries, seq)); err != nil {
				return err
			}
		}
		return w.names.Delete(k)
	})
	if err != nil {
		return Counts{}, err
	}
	return n, nil
}

// eachPage calls fn for the pairs whose key begins with prefix. fn may delete the pair: pairs are read in pages,
// because a bbolt cursor does not survive a deletion. The value is only valid during the call.
func eachPage(b *bbolt.Bucket, prefix []byte, fn func(k, stored []byte) error) error {
	type pair struct{ k, stored []byte }
	page := make([]pair, 0, 512)
	start := prefix
	for {
		page = page[:0]
		c := b.Cursor()
		for k, stored := c.Seek(start); bytes.HasPrefix(k, prefix) && len(page) < cap(page); k, stored = c.Next() {
			page = append(page, pair{bytes.Clone(k), stored})
		}
		for _, p := range page {
			if err := fn(p.k, p.stored); err != nil {
				return err
			}
		}
		if len(page) < cap(page) {
			return nil
		}
		start = append(page[len(page)-1].k, 0)
	}
}

func (w *writer) putRecord(table Table, key string, value []byte) error {
	t, err := w.table.CreateBucketIfNotExists([]byte(table))
	if err != nil {
		return err
	}
	t.FillPercent = w.fill
	return t.Put([]byte(key), seal([]byte(key), value))
}

func (w *writer) deleteRecord(table Table, key string) error {
	t := w.table.Bucket([]byte(table))
	if t == nil {
		return nil
	}
	return t.Delete([]byte(key))
}

// account adds to the usage of a space; before records the usage before the batch.
func (w *writer) account(space Space, delta int64, before map[Space]int64) error {
	now, ok := w.used[space]
	if !ok {
		var err error
		if now, err = usageOf(w.tx, space); err != nil {
			return err
		}
	}
	if _, ok := before[space]; !ok {
		before[space] = now
	}
	w.used[space] = max(0, now+delta)
	return nil
}

// flush writes the usage of the touched spaces.
func (w *writer) flush() error {
	for space, n := range w.used {
		var err error
		if n == 0 {
			err = w.usage.Delete(space[:])
		} else {
			err = w.usage.Put(space[:], sealInts(space[:], n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
