package state

import (
	"bytes"
	"fmt"
	"strings"
)

// Batch is a list of writes and preconditions that Store.Commit applies together. The zero Batch is empty and ready to
// use.
//
// Preconditions (the expected versions of puts, and ExpectRecord) are checked against the state before the batch, all
// of them, wherever they are in it. A caller that writes a key twice in one batch passes an expected version only with
// the first put. The writes then happen in the order of the calls.
//
// The slices passed in must not change until Commit returns. A Batch is not safe for concurrent use.
type Batch struct {
	// MaxSpaceBytes bounds the usage of every space that the batch writes to: a batch that makes a space grow beyond it
	// is refused with ErrQuota. 0 means no bound. A batch that shrinks a space passes, even one above the bound.
	MaxSpaceBytes int64

	ops     []op
	puts    int
	appends int
	deletes int
	bytes   int
}

type opKind int

const (
	opPut opKind = iota
	opAppend
	opDeletePrefix
	opPutRecord
	opDeleteRecord
	opExpectRecord
)

// op is one call on a Batch. Name is the key, the log, the prefix or the record's key.
type op struct {
	kind     opKind
	space    Space
	table    Table
	name     string
	value    []byte
	expected int64
	replaced bool // a put that a later one of the same key replaced: it has no value any more
}

// Put writes a key and returns the put's index in CommitResult.Versions. Expected is the version that the key must have
// before the batch: AnyVersion for whatever it is, 0 for absent; another one there is ErrConflict.
func (b *Batch) Put(space Space, key string, value []byte, expected int64) int {
	b.add(op{kind: opPut, space: space, name: key, value: value, expected: expected})
	b.puts++
	return b.puts - 1
}

// Replace is Put for a key whose value is in the batch already. earlier is what Len was before that Put. Its value is
// let go; its precondition and its version remain, so that every version is what it would be with both puts.
func (b *Batch) Replace(earlier int, space Space, key string, value []byte) int {
	old := &b.ops[earlier]
	b.bytes -= len(old.value)
	old.value, old.replaced = nil, true
	return b.Put(space, key, value, AnyVersion)
}

// Append adds an entry to the end of a log and returns the append's index in CommitResult.Seqs. The entry gets the
// number after the log's last one; the first is 1.
func (b *Batch) Append(space Space, log string, value []byte) int {
	b.add(op{kind: opAppend, space: space, name: log, value: value})
	b.appends++
	return b.appends - 1
}

// DeletePrefix removes the keys, and the logs with all their entries, whose names begin with prefix, and returns the
// delete's index in CommitResult.Deleted. The empty prefix removes everything in the space.
func (b *Batch) DeletePrefix(space Space, prefix string) int {
	b.add(op{kind: opDeletePrefix, space: space, name: prefix})
	b.deletes++
	return b.deletes - 1
}

// PutRecord writes a host record.
func (b *Batch) PutRecord(table Table, key, value []byte) {
	b.add(op{kind: opPutRecord, table: table, name: string(key), value: value})
}

// DeleteRecord removes a host record; one that is absent stays so.
func (b *Batch) DeleteRecord(table Table, key []byte) {
	b.add(op{kind: opDeleteRecord, table: table, name: string(key)})
}

// ExpectRecord makes the batch fail with ErrConflict unless the record has exactly this value before the batch. A nil
// value means that it must be absent; an empty one that is not nil, that it is there and empty.
func (b *Batch) ExpectRecord(table Table, key, value []byte) {
	b.add(op{kind: opExpectRecord, table: table, name: string(key), value: value})
}

// Len is the number of writes and preconditions.
func (b *Batch) Len() int { return len(b.ops) }

// Bytes is the size of the names and values in the batch.
func (b *Batch) Bytes() int { return b.bytes }

func (b *Batch) add(o op) {
	b.ops = append(b.ops, o)
	b.bytes += len(o.name) + len(o.value)
}

// validate checks what no state of the store could make right.
func (b *Batch) validate() error {
	if b.MaxSpaceBytes < 0 {
		return invalid("batch: MaxSpaceBytes is %d, want 0 or more", b.MaxSpaceBytes)
	}
	for i, o := range b.ops {
		if err := o.validate(); err != nil {
			return invalid("batch: operation %d: %s", i, err)
		}
	}
	return nil
}

func (o op) validate() error {
	what, least := "key", 1
	switch o.kind {
	case opAppend:
		what = "log name"
	case opDeletePrefix:
		what, least = "prefix", 0
	case opPutRecord, opDeleteRecord, opExpectRecord:
		what = "record key"
		if n := len(o.table); n < 1 || n > MaxName {
			return fmt.Errorf("name of the table has %d bytes, want 1 to %d", n, MaxName)
		}
	}
	if n := len(o.name); n < least || n > MaxName {
		return fmt.Errorf("%s has %d bytes, want %d to %d", what, n, least, MaxName)
	}
	if n := len(o.value); n > MaxValue {
		return fmt.Errorf("value of %s %s has %d bytes, want at most %d", what, quote(o.name), n, MaxValue)
	}
	if o.kind == opPut && o.expected < AnyVersion {
		return fmt.Errorf("expected version of key %s is %d, want %d or more", quote(o.name), o.expected, AnyVersion)
	}
	return nil
}

// CommitResult tells what a batch came to.
type CommitResult struct {
	// Versions holds the new version of each Put, Seqs the sequence number of each Append, Deleted what each
	// DeletePrefix removed; all in the order of the calls.
	Versions []int64
	Seqs     []int64
	Deleted  []Counts
}

// sameRecord compares a record (nil when absent) with an expected one.
func sameRecord(have, want []byte) bool {
	return (have == nil) == (want == nil) && bytes.Equal(have, want)
}

// quote makes a name fit for a message: escaped, and cut when it is long.
func quote(name string) string {
	const most = 80
	if len(name) <= most {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(name[:most], "?"), len(name))
}
