package state

import (
	"context"
	"encoding/hex"
)

// Space is the hash that identifies one (provider, origin, namespace, scope, generation). The host computes it; the
// store only keeps spaces apart.
type Space [16]byte

// String is the space in hexadecimal.
func (s Space) String() string { return hex.EncodeToString(s[:]) }

// Table names one kind of host record ("ledger", "modes"). It is created with its first record. 1 to MaxName bytes.
type Table string

// AnyVersion as the expected version of a Put accepts any present version. 0 means that the key must be absent.
const AnyVersion = -1

// Size limits of a Batch, in bytes, checked before anything is written. Larger is ErrInvalid.
const (
	// MaxName bounds keys, log names, record keys and names of tables. None of them may be empty.
	MaxName = 16 << 10
	// MaxValue bounds one value, log entry or record.
	MaxValue = 1 << 30
)

// DefaultLimit is the number of items in a page when the query's Limit is 0.
const DefaultLimit = 1000

// Store is what the host requires from a store. It is safe for concurrent use.
//
// Callers own the byte slices that it returns. A single read sees a consistent snapshot; two reads may see different
// ones. The errors are *Error (see ErrUnavailable and the others), or the context's own, wrapped.
type Store interface {
	// Get returns a key's value. Version 0 means absent, which is not an error.
	Get(ctx context.Context, space Space, key string) (Value, error)
	// List returns a page of a space's keys in ascending byte order.
	List(ctx context.Context, space Space, q ListQuery) (Page, error)
	// ReadLog returns a page of a log's entries. A log that does not exist is empty.
	ReadLog(ctx context.Context, space Space, q LogQuery) (Entries, error)
	// LastSeq returns the sequence number of a log's last entry, 0 if there is none. Its cost does not grow with the
	// log.
	LastSeq(ctx context.Context, space Space, log string) (int64, error)
	// Count reports what Batch.DeletePrefix with that prefix would remove. Its cost grows with the number of keys, not
	// of entries.
	Count(ctx context.Context, space Space, prefix string) (Counts, error)
	// Usage returns the size of a space in bytes, counted as in Counts.Bytes. Its cost does not grow with the space.
	Usage(ctx context.Context, space Space) (int64, error)

	// Record returns a host record. It returns nil if the record is absent; a present but empty record is not nil.
	Record(ctx context.Context, table Table, key []byte) ([]byte, error)
	// Records returns the records whose key begins with prefix and is greater than after, in ascending byte order.
	// Limit 0 means DefaultLimit; if limit records are returned, there may be more.
	Records(ctx context.Context, table Table, prefix, after []byte, limit int) ([]KeyValue, error)

	// Commit applies a batch: all of it or nothing. After success the batch is as durable as the store's options
	// promise. A context that ends while the batch is queued withdraws it, and nothing is applied; after that, Commit
	// waits for the outcome. The batch is neither changed nor retained.
	Commit(ctx context.Context, b *Batch) (CommitResult, error)
	// Close waits for running commits and releases the store. Later calls fail with ErrClosed. Closing twice has no
	// effect.
	Close() error
}

// Scrubber is a Store that can erase deleted content from its files.
type Scrubber interface {
	// Scrub erases deleted or replaced content from the store's files, as far as the store can. Errors: those of a
	// Store, if something is left that the store could have erased.
	Scrub(ctx context.Context) error
	// Outside names the copies of deleted content that Scrub cannot reach, and how they are removed; nil if there are
	// none.
	Outside() []string
}

// Value is a key's value.
type Value struct {
	// Data is nil if the key is absent.
	Data []byte
	// Version is greater than every version that the store assigned before, to any key; 0 means absent. A store that
	// hosts share guarantees that only for the keys of one space, but never assigns a version twice.
	Version int64
}

// ListQuery asks for a page of keys.
type ListQuery struct {
	// Prefix selects keys; empty selects all.
	Prefix string
	// After continues after a key (exclusive), which need not exist. Empty starts at the first.
	After string
	// Limit is a number of keys; 0 means DefaultLimit.
	Limit int
	// Values requests the values too.
	Values bool
	// MaxBytes ends a page before the keys (and values, if requested) exceed it; 0 means no such limit. The first item
	// is returned whatever its size, so that readers make progress.
	MaxBytes int
}

// Page is a part of a list.
type Page struct {
	Items []Item
	// More is true when there are further keys after the last item.
	More bool
}

// Item is one key of a Page.
type Item struct {
	Key     string
	Version int64
	// Size is the length of the value in bytes, even if Data was not requested.
	Size int
	// Data is nil unless ListQuery.Values was set.
	Data []byte
}

// LogQuery asks for a page of a log.
type LogQuery struct {
	Log string
	// From is the first sequence number to return; 0 means the first entry, or with Reverse the last.
	From int64
	// Limit is a number of entries; 0 means DefaultLimit.
	Limit int
	// Reverse reads from newer to older entries.
	Reverse bool
	// MaxBytes ends a page before the entries exceed it; 0 means no such limit. The first entry is returned whatever
	// its size.
	MaxBytes int
}

// Entries is a part of a log.
type Entries struct {
	Items []Entry
	// Last is the sequence number of the log's last entry in the same snapshot; 0 if there is none.
	Last int64
	// More is true when there are further entries after the last item, in the direction of reading.
	More bool
}

// Entry is one entry of a log.
type Entry struct {
	// Seq counts from 1 without gaps. After DeletePrefix has removed the log it starts at 1 again.
	Seq  int64
	Data []byte
}

// KeyValue is one host record.
type KeyValue struct {
	Key, Value []byte
}

// Counts is how much a prefix holds or held.
type Counts struct {
	Keys, Logs, Entries int64
	// Bytes counts for each key its length and that of its value; for each log its name's length, and for each entry
	// its length and EntryOverhead.
	Bytes int64
}

// EntryOverhead is what an entry adds to the usage besides its own bytes, so that empty entries are not free.
const EntryOverhead = 8
