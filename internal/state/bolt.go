package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Bolt is a Store in one bbolt file. Open creates it.
//
// If the file is damaged while the store is open, operations that reach the damage fail with ErrDamaged and the others
// continue; the process does not end.
type Bolt struct {
	opts Options
	path string // of the data file, relative to the folder as the caller gave it
	db   *bbolt.DB
	file *os.File // the file that db has open

	mu      sync.Mutex // guards queue and closing
	queue   []*request
	closing bool
	wake    chan struct{} // has one token if something is in queue, or closing
	ended   chan struct{} // closed when the committer has ended

	// stuck means that bbolt panicked while it held locks; it must not be called again.
	stuck atomic.Bool
	// scrubbing is held for reading by readers, and for writing while free pages are overwritten.
	scrubbing sync.RWMutex
	// broken means that a write transaction panicked half-way; reads continue.
	broken atomic.Pointer[Error]

	closeOnce sync.Once
	closeErr  error

	committer
}

var _ Store = (*Bolt)(nil)

// Get returns a key's value.
func (s *Bolt) Get(ctx context.Context, space Space, key string) (Value, error) {
	var v Value
	err := s.view(ctx, "get", func(tx *bbolt.Tx) error {
		kv, err := bucket(tx, bucketKV)
		if err != nil {
			return err
		}
		k := spaceKey(space, key)
		stored := kv.Get(k)
		if stored == nil {
			return nil
		}
		version, data, err := unsealValue(k, stored)
		v = Value{Data: bytes.Clone(data), Version: version}
		return err
	})
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// List returns a page of a space's keys.
func (s *Bolt) List(ctx context.Context, space Space, q ListQuery) (Page, error) {
	limit, err := PageLimit("list", q.Limit, q.MaxBytes)
	if err != nil {
		return Page{}, err
	}
	var page Page
	err = s.view(ctx, "list", func(tx *bbolt.Tx) error {
		kv, err := bucket(tx, bucketKV)
		if err != nil {
			return err
		}
		prefix := spaceKey(space, q.Prefix)
		start, size := prefix, 0
		if q.After >= q.Prefix && q.After != "" {
			start = append(spaceKey(space, q.After), 0) // the smallest key after After
		}
		c := kv.Cursor()
		for k, stored := c.Seek(start); bytes.HasPrefix(k, prefix); k, stored = c.Next() {
			version, data, err := unsealValue(k, stored)
			if err != nil {
				return err
			}
			item := Item{Key: string(k[spaceLen:]), Version: version, Size: len(data)}
			size += len(item.Key)
			if q.Values {
				size += len(data)
			}
			if len(page.Items) == limit || len(page.Items) > 0 && q.MaxBytes > 0 && size > q.MaxBytes {
				page.More = true
				return nil
			}
			if q.Values {
				item.Data = bytes.Clone(data)
			}
			page.Items = append(page.Items, item)
		}
		return nil
	})
	if err != nil {
		return Page{}, err
	}
	return page, nil
}

// ReadLog returns a page of a log's entries.
func (s *Bolt) ReadLog(ctx context.Context, space Space, q LogQuery) (Entries, error) {
	limit, err := PageLimit("read log", q.Limit, q.MaxBytes)
	if err != nil {
		return Entries{}, err
	}
	if q.From < 0 {
		return Entries{}, invalid("read log: from is %d, want 0 or more", q.From)
	}
	var es Entries
	err = s.view(ctx, "read log", func(tx *bbolt.Tx) error {
		es.Last, _, err = logEnd(tx, space, q.Log)
		if err != nil || es.Last == 0 {
			return err
		}
		logs, err := bucket(tx, bucketLogs)
		if err != nil {
			return err
		}
		c := logs.Cursor()
		seq, step, next := max(q.From, 1), int64(1), c.Next
		if q.Reverse {
			seq, step, next = min(q.From, es.Last), -1, c.Prev
			if q.From == 0 {
				seq = es.Last
			}
		}
		prefix, size := logPrefix(space, q.Log), 0
		for k, stored := c.Seek(logKey(prefix, seq)); seq >= 1 && seq <= es.Last; k, stored = next() {
			if want := logKey(prefix, seq); !bytes.Equal(k, want) {
				return damaged("entry %d of log %s in space %s is missing; the log's last one is %d", seq, quote(q.Log),
					space, es.Last)
			}
			data, err := unseal(k, stored, 0)
			if err != nil {
				return err
			}
			size += len(data)
			if len(es.Items) == limit || len(es.Items) > 0 && q.MaxBytes > 0 && size > q.MaxBytes {
				es.More = true
				return nil
			}
			es.Items = append(es.Items, Entry{Seq: seq, Data: bytes.Clone(data)})
			seq += step
		}
		return nil
	})
	if err != nil {
		return Entries{}, err
	}
	return es, nil
}

// LastSeq returns the sequence number of a log's last entry.
func (s *Bolt) LastSeq(ctx context.Context, space Space, log string) (int64, error) {
	var last int64
	err := s.view(ctx, "last entry of a log", func(tx *bbolt.Tx) (err error) {
		last, _, err = logEnd(tx, space, log)
		return err
	})
	if err != nil {
		return 0, err
	}
	return last, nil
}

// Count reports what DeletePrefix would remove.
func (s *Bolt) Count(ctx context.Context, space Space, prefix string) (Counts, error) {
	var n Counts
	err := s.view(ctx, "count", func(tx *bbolt.Tx) error {
		kv, err := bucket(tx, bucketKV)
		if err != nil {
			return err
		}
		names, err := bucket(tx, bucketNames)
		if err != nil {
			return err
		}
		p := spaceKey(space, prefix)
		c := kv.Cursor()
		for k, stored := c.Seek(p); bytes.HasPrefix(k, p); k, stored = c.Next() {
			if n.Keys++; n.Keys%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			n.Bytes += pairBytes(k, stored)
		}
		c = names.Cursor()
		for k, stored := c.Seek(p); bytes.HasPrefix(k, p); k, stored = c.Next() {
			var last, size int64
			if err := unsealInts(k, stored, &last, &size); err != nil {
				return err
			}
			n.Logs++
			n.Entries += last
			n.Bytes += logBytes(len(k)-spaceLen, last, size)
		}
		return nil
	})
	if err != nil {
		return Counts{}, err
	}
	return n, nil
}

// Usage returns the size of a space in bytes.
func (s *Bolt) Usage(ctx context.Context, space Space) (int64, error) {
	var n int64
	err := s.view(ctx, "usage", func(tx *bbolt.Tx) (err error) {
		n, err = usageOf(tx, space)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Record returns a host record; nil if it is absent.
func (s *Bolt) Record(ctx context.Context, table Table, key []byte) ([]byte, error) {
	var data []byte
	err := s.view(ctx, "record of table "+string(table), func(tx *bbolt.Tx) error {
		payload, err := recordOf(tx, table, key)
		data = bytes.Clone(payload)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Records returns a page of a table.
func (s *Bolt) Records(ctx context.Context, table Table, prefix, after []byte, limit int) ([]KeyValue, error) {
	limit, err := PageLimit("records", limit, 0)
	if err != nil {
		return nil, err
	}
	var kvs []KeyValue
	err = s.view(ctx, "records of table "+string(table), func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, table)
		if err != nil || t == nil {
			return err
		}
		start := prefix
		if bytes.Compare(after, prefix) >= 0 && len(after) > 0 {
			start = append(bytes.Clone(after), 0)
		}
		c := t.Cursor()
		for k, stored := c.Seek(start); k != nil && bytes.HasPrefix(k, prefix) && len(kvs) < limit; k,
			stored = c.Next() {
			payload, err := unseal(k, stored, 0)
			if err != nil {
				return err
			}
			kvs = append(kvs, KeyValue{Key: bytes.Clone(k), Value: bytes.Clone(payload)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return kvs, nil
}

// Close waits for running commits, syncs what is not synced yet and releases the file.
func (s *Bolt) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
		s.wakeUp()
		<-s.ended
		s.closeErr = s.release()
	})
	return s.closeErr
}

func (s *Bolt) release() error {
	err := s.sync()
	if s.stuck.Load() { // bbolt's own Close would wait forever; release at least the lock
		return errors.Join(err, s.file.Close())
	}
	if closeErr := guard(s.db.Close); closeErr != nil {
		err = errors.Join(err, s.fail("close", closeErr))
	}
	if err == nil && s.broken.Load() == nil {
		s.removeOld()
		_ = os.WriteFile(s.path+cleanFile, []byte(stamp(s.path)), 0o600) // without it, the next Open checks the file
	}
	return err
}

// view runs one read transaction.
func (s *Bolt) view(ctx context.Context, what string, fn func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("state: %s: %w", what, err)
	}
	s.scrubbing.RLock()
	defer s.scrubbing.RUnlock()
	tx, err := s.begin(false)
	if err == nil {
		err = guard(func() error { return fn(tx) })
		_ = tx.Rollback() // a read transaction has nothing to lose
	}
	return s.fail(what, err)
}

// begin opens a transaction.
func (s *Bolt) begin(writable bool) (tx *bbolt.Tx, err error) {
	if s.stuck.Load() {
		return nil, damaged("given up after an earlier fault")
	}
	err = guard(func() (err error) {
		tx, err = s.db.Begin(writable)
		return err
	})
	if isFault(err) {
		s.stuck.Store(true)
	}
	return tx, err
}

// fail converts any error inside a transaction to an *Error, or a context's error.
func (s *Bolt) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		if e.Kind != ErrDamaged {
			return err
		}
		return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("%s: data file %s is damaged: %s", what, s.path,
			e.Message), Hint: damageHint, Cause: e.Cause}
	case errors.Is(err, berrors.ErrDatabaseNotOpen), errors.Is(err, berrors.ErrTxClosed):
		return errClosed(what)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("state: %s: %w", what, err)
	default:
		return &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("%s: data file %s: %s", what, s.path, err),
			Hint: hintFor(err), Cause: err}
	}
}

// guard runs fn, which works on bbolt's mapped memory. bbolt panics on damaged pages, and reading beyond the end of a
// truncated file is a memory fault: guard turns both into ErrDamaged instead of ending the process.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Kind: ErrDamaged, Message: fmt.Sprintf("reading it failed: %v", p), Cause: fault{p}}
		}
	}()
	return fn()
}

// fault is the cause of errors that guard created from a panic.
type fault struct{ value any }

func (f fault) Error() string { return fmt.Sprintf("panic: %v", f.value) }

func isFault(err error) bool {
	if err == nil {
		return false
	}
	var f fault
	return errors.As(err, &f)
}

// Helpers that reads and batches share.

func bucket(tx *bbolt.Tx, name string) (*bbolt.Bucket, error) {
	if b := tx.Bucket([]byte(name)); b != nil {
		return b, nil
	}
	return nil, damaged("bucket %s is missing", name)
}

// tableOf returns nil for a table that was never written to.
func tableOf(tx *bbolt.Tx, table Table) (*bbolt.Bucket, error) {
	tables, err := bucket(tx, bucketTables)
	if err != nil {
		return nil, err
	}
	return tables.Bucket([]byte(table)), nil
}

func recordOf(tx *bbolt.Tx, table Table, key []byte) ([]byte, error) {
	t, err := tableOf(tx, table)
	if err != nil || t == nil {
		return nil, err
	}
	stored := t.Get(key)
	if stored == nil {
		return nil, nil
	}
	return unseal(key, stored, 0)
}

// logEnd returns a log's last sequence number and the size of its entries in bytes.
func logEnd(tx *bbolt.Tx, space Space, log string) (last, size int64, err error) {
	names, err := bucket(tx, bucketNames)
	if err != nil {
		return 0, 0, err
	}
	k := spaceKey(space, log)
	if stored := names.Get(k); stored != nil {
		err = unsealInts(k, stored, &last, &size)
	}
	return last, size, err
}

func usageOf(tx *bbolt.Tx, space Space) (n int64, err error) {
	usage, err := bucket(tx, bucketUsage)
	if err != nil {
		return 0, err
	}
	if stored := usage.Get(space[:]); stored != nil {
		err = unsealInts(space[:], stored, &n)
	}
	return n, err
}

// pairBytes is how much a stored kv pair adds to the usage, logBytes how much a log adds.
func pairBytes(key, stored []byte) int64 {
	return int64(len(key) - spaceLen + max(0, len(stored)-sealLen-versionLen))
}

func logBytes(name int, entries, size int64) int64 {
	return int64(name) + size + EntryOverhead*entries
}

// PageLimit validates the page size of a query, and replaces 0 by the default. The error is ErrInvalid.
func PageLimit(what string, limit, maxBytes int) (int, error) {
	switch {
	case limit < 0:
		return 0, invalid("%s: limit is %d, want 0 or more", what, limit)
	case maxBytes < 0:
		return 0, invalid("%s: MaxBytes is %d, want 0 or more", what, maxBytes)
	case limit == 0:
		return DefaultLimit, nil
	}
	return limit, nil
}
