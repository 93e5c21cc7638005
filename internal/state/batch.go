package state

import (
	"bytes"
	"fmt"
	"strings"
)

// Batch is a list of writes and preconditions that Store.Commit applies together. The zero Batch is empty and ready to
// use.
//
// Preconditions (the expected versions of puts, and ExpectRecord) are all checked against the state before the batch,
// wherever they are in it. A caller that writes a key twice in one batch may only pass an expected version with the
// first put. The writes are then applied in the order of the calls.
//
// The slices passed in must not change until Commit returns. A Batch is not safe for concurrent use.
type Batch struct {
	// MaxSpaceBytes limits the usage of every space that the batch writes to: a batch that makes a space grow beyond it
	// is rejected with ErrQuota. 0 means no limit. A batch that shrinks a space is accepted even above the limit.
	MaxSpaceBytes int64

	ops     []Op
	puts    int
	appends int
	deletes int
	bytes   int
}

// OpKind is the kind of an [Op].
type OpKind int

// The kinds of operations, each named after the method of [Batch] that adds it.
const (
	OpPut OpKind = iota
	OpAppend
	OpDeletePrefix
	OpPutRecord
	OpDeleteRecord
	OpExpectRecord
)

// Op is one call on a Batch, as a store reads it.
type Op struct {
	Kind OpKind
	// Space is set for puts, appends and deletes of a prefix; Table for the operations on records.
	Space Space
	Table Table
	// Name is the key, the log, the prefix or the record's key.
	Name string
	// Value is what to write, or what ExpectRecord expects: nil means absent.
	Value []byte
	// Expected is the version that the key of a put must have: AnyVersion, or 0 for absent.
	Expected int64
	// Replaced marks a put whose key is written again by a later put of the same batch. It still gets a version, but
	// has no value.
	Replaced bool
}

// Put writes a key and returns the put's index in CommitResult.Versions. expected is the version that the key must have
// before the batch: AnyVersion means any, 0 means absent. Otherwise the batch fails with ErrConflict.
func (b *Batch) Put(space Space, key string, value []byte, expected int64) int {
	b.add(Op{Kind: OpPut, Space: space, Name: key, Value: value, Expected: expected})
	b.puts++
	return b.puts - 1
}

// Replace is Put for a key that the batch already writes. earlier is the value of Len before that Put. The earlier
// value is dropped, but its precondition and its version remain, so that all versions are the same as with both puts.
func (b *Batch) Replace(earlier int, space Space, key string, value []byte) int {
	old := &b.ops[earlier]
	b.bytes -= len(old.Value)
	old.Value, old.Replaced = nil, true
	return b.Put(space, key, value, AnyVersion)
}

// Append adds an entry to the end of a log and returns the append's index in CommitResult.Seqs. The entry gets the next
// number of the log; the first is 1.
func (b *Batch) Append(space Space, log string, value []byte) int {
	b.add(Op{Kind: OpAppend, Space: space, Name: log, Value: value})
	b.appends++
	return b.appends - 1
}

// DeletePrefix removes the keys, and the logs with all their entries, whose names begin with prefix, and returns the
// delete's index in CommitResult.Deleted. The empty prefix removes everything in the space.
func (b *Batch) DeletePrefix(space Space, prefix string) int {
	b.add(Op{Kind: OpDeletePrefix, Space: space, Name: prefix})
	b.deletes++
	return b.deletes - 1
}

// PutRecord writes a host record.
func (b *Batch) PutRecord(table Table, key, value []byte) {
	b.add(Op{Kind: OpPutRecord, Table: table, Name: string(key), Value: value})
}

// DeleteRecord removes a host record, if it exists.
func (b *Batch) DeleteRecord(table Table, key []byte) {
	b.add(Op{Kind: OpDeleteRecord, Table: table, Name: string(key)})
}

// ExpectRecord makes the batch fail with ErrConflict unless the record has exactly this value before the batch. A nil
// value means that the record must be absent; an empty one that is not nil, that it must exist and be empty.
func (b *Batch) ExpectRecord(table Table, key, value []byte) {
	b.add(Op{Kind: OpExpectRecord, Table: table, Name: string(key), Value: value})
}

// Ops returns the calls on the batch in order. The caller must not change them.
func (b *Batch) Ops() []Op { return b.ops }

// Len is the number of writes and preconditions.
func (b *Batch) Len() int { return len(b.ops) }

// Bytes is the size of the names and values in the batch.
func (b *Batch) Bytes() int { return b.bytes }

func (b *Batch) add(o Op) {
	b.ops = append(b.ops, o)
	b.bytes += len(o.Name) + len(o.Value)
}

// Validate returns ErrInvalid for a batch that is wrong whatever the store contains, for example one with an empty key.
// Each store calls it first.
func (b *Batch) Validate() error {
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

func (o Op) validate() error {
	what, least := "key", 1
	switch o.Kind {
	case OpAppend:
		what = "log name"
	case OpDeletePrefix:
		what, least = "prefix", 0
	case OpPutRecord, OpDeleteRecord, OpExpectRecord:
		what = "record key"
		if n := len(o.Table); n < 1 || n > MaxName {
			return fmt.Errorf("name of the table has %d bytes, want 1 to %d", n, MaxName)
		}
	}
	if n := len(o.Name); n < least || n > MaxName {
		return fmt.Errorf("%s has %d bytes, want %d to %d", what, n, least, MaxName)
	}
	if n := len(o.Value); n > MaxValue {
		return fmt.Errorf("value of %s %s has %d bytes, want at most %d", what, quote(o.Name), n, MaxValue)
	}
	if o.Kind == OpPut && o.Expected < AnyVersion {
		return fmt.Errorf("expected version of key %s is %d, want %d or more", quote(o.Name), o.Expected, AnyVersion)
	}
	return nil
}

// CheckVersion returns ErrConflict if a put expects a version other than found, which is 0 for an absent key.
func (o Op) CheckVersion(found int64) error {
	if o.Expected == AnyVersion || o.Expected == found {
		return nil
	}
	return &Error{Kind: ErrConflict, Conflict: &Conflict{Space: o.Space, Key: o.Name, Expected: o.Expected,
		Found: found},
		Message: fmt.Sprintf("commit: key %s in space %s %s, expected that it %s", quote(o.Name), o.Space,
			hasVersion(found), hasVersion(o.Expected)),
		Hint: "read it again and decide anew; nothing was applied"}
}

// CheckRecord returns ErrConflict if ExpectRecord expects a value other than have, which is nil for an absent record.
func (o Op) CheckRecord(have []byte) error {
	if sameRecord(have, o.Value) {
		return nil
	}
	return &Error{Kind: ErrConflict, Conflict: &Conflict{Key: o.Name, Table: o.Table},
		Message: fmt.Sprintf("commit: record %s in table %s %s", quote(o.Name), o.Table,
			notAsExpected(have, o.Value)),
		Hint: "read it again and decide anew; nothing was applied"}
}

func hasVersion(v int64) string {
	if v == 0 {
		return "is absent"
	}
	return fmt.Sprintf("has version %d", v)
}

func notAsExpected(have, want []byte) string {
	switch {
	case have == nil:
		return "is absent, expected that it is there"
	case want == nil:
		return "is there, expected that it is absent"
	default:
		return "is not as expected"
	}
}

// CheckUsage returns ErrQuota if the batch makes a space grow from was to now bytes, beyond MaxSpaceBytes.
func (b *Batch) CheckUsage(space Space, was, now int64) error {
	if b.MaxSpaceBytes == 0 || now <= b.MaxSpaceBytes || now <= was {
		return nil
	}
	return &Error{Kind: ErrQuota,
		Quota: &Quota{Space: space, Used: was, Needed: now, Limit: b.MaxSpaceBytes},
		Message: fmt.Sprintf("commit: space %s holds %d bytes and would hold %d, its limit is %d", space, was,
			now, b.MaxSpaceBytes),
		Hint: "delete state of this scope or raise the limit; nothing was applied"}
}

// CommitResult is the result of a committed batch.
type CommitResult struct {
	// Versions has the new version of each Put, Seqs the sequence number of each Append, Deleted what each DeletePrefix
	// removed; each in the order of the calls.
	Versions []int64
	Seqs     []int64
	Deleted  []Counts
}

// NewResult returns a result with capacity for the answers to a batch. Its slices are empty, not nil.
func NewResult(b *Batch) CommitResult {
	return CommitResult{
		Versions: make([]int64, 0, b.puts),
		Seqs:     make([]int64, 0, b.appends),
		Deleted:  make([]Counts, 0, b.deletes),
	}
}

// sameRecord compares a record (nil when absent) with an expected one.
func sameRecord(have, want []byte) bool {
	return (have == nil) == (want == nil) && bytes.Equal(have, want)
}

// quote formats a name for a message: escaped, and shortened if it is long.
func quote(name string) string {
	const most = 80
	if len(name) <= most {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(name[:most], "?"), len(name))
}
