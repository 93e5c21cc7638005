// Package opstate is the state that a guest sees during one operation: the store's content, overlaid with the
// operation's own writes.
package opstate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// State is the state of one operation. The operation's writes stay in a batch, which the host commits together with the
// operation's receipt, or drops.
type State struct {
	store state.Store
	space state.Space
	// Batch has the writes so far.
	Batch state.Batch

	keys    overlay
	logs    map[string][][]byte // appended entries, by log
	deleted prefixes            // what the store has under these prefixes no longer counts
	// moment is that of an operation that only reads, else nil.
	moment *Moment
	// read has values that the store returned since Remember, together at most rememberBytes; nil before.
	read      map[string]state.Value
	readBytes int
	// commits is the space's record of TableCommits, if knowsCommits.
	commits      []byte
	knowsCommits bool
}

// provisional is the first version number of the operation's own writes. These versions are valid until the operation
// ends; the store assigns the real ones.
const provisional = 1 << 62

// New returns the state of a space before the operation writes.
func New(store state.Store, space state.Space) *State { return &State{store: store, space: space} }

// Space is where the state lives in the store.
func (t *State) Space() state.Space { return t.space }

func (t *State) clean() bool {
	return len(t.keys.values) == 0 && len(t.logs) == 0 && len(t.deleted) == 0
}

// wasDeleted reports whether the operation deleted what the store has under name.
func (t *State) wasDeleted(name string) bool { return t.deleted.cover(name) }

// Get reads a value; version 0 means that there is none.
func (t *State) Get(ctx context.Context, key string) ([]byte, int64, error) {
	if v, ok := t.keys.values[key]; ok {
		return v.data, v.version, nil
	}
	if t.wasDeleted(key) {
		return nil, 0, nil
	}
	if v, known := t.read[key]; known {
		return v.Data, v.Version, nil
	}
	v, err := cachedRead(t.moment, key, func() (state.Value, error) { return t.store.Get(ctx, t.space, key) })
	if size := len(key) + len(v.Data); err == nil && t.read != nil && t.readBytes+size <= rememberBytes {
		t.readBytes += size
		t.read[key] = v
	}
	return v.Data, v.Version, err
}

// rememberBytes bounds what Remember keeps: keys and values, in bytes.
const rememberBytes = 1 << 20

// Remember makes the operation ask the store once for a key. Call it only if no other operation may write the space
// until this one's commit. A guest reads a key, and a put with an expected version reads it again.
func (t *State) Remember() { t.read = map[string]state.Value{} }

// Put writes value and retains it: the caller must not change it afterwards.
func (t *State) Put(ctx context.Context, key string, value []byte, expected int64) (int64, error) {
	earlier, again := t.keys.values[key]
	if expected != abi.AnyVersion {
		_, version, err := t.Get(ctx, key)
		if err != nil {
			return 0, err
		}
		if version != expected {
			return 0, abi.NewError(abi.CodeConflict,
				fmt.Sprintf("state key %.80q has version %d, expected %d", key, version,
					expected)).WithReason("state_version")
		}
	}
	at := t.Batch.Len()
	switch {
	case again:
		t.Batch.Replace(earlier.at, t.space, key, value)
	case t.wasDeleted(key):
		t.Batch.Put(t.space, key, value, state.AnyVersion)
	default:
		t.Batch.Put(t.space, key, value, expected)
	}
	return t.keys.set(key, value, at), nil
}

// writeOverhead is added to the size of each write, besides its name and value, in bytes.
const writeOverhead = 64

// WriteBytes is the memory that the operation's writes need until they are committed, in bytes.
func (t *State) WriteBytes() int64 {
	return int64(t.Batch.Bytes()) + int64(t.Batch.Len())*writeOverhead
}

// WriteBytesWith is WriteBytes after one more write. A value that a put replaces is not counted.
func (t *State) WriteBytesWith(name string, value []byte, put bool) int64 {
	bytes := t.WriteBytes() + int64(len(name)+len(value)) + writeOverhead
	if put {
		bytes -= int64(len(t.keys.values[name].data))
	}
	return bytes
}

// Delete removes keys and logs with a prefix, and counts the removed values and entries.
func (t *State) Delete(ctx context.Context, prefix string) (int64, error) {
	var count int64
	hides := false // whether the store has something under the prefix
	if !t.wasDeleted(prefix) {
		stored, err := t.store.Count(ctx, t.space, prefix)
		if err != nil {
			return 0, err
		}
		count = stored.Keys + stored.Entries
		hides = count > 0
		first, end := t.deleted.within(prefix)
		for _, earlier := range t.deleted[first:end] {
			c, err := t.store.Count(ctx, t.space, earlier)
			if err != nil {
				return 0, err
			}
			count -= c.Keys + c.Entries
		}
	}
	for _, key := range t.keys.keysUnder(prefix, "", 0) {
		delete(t.keys.values, key)
		if _, version, err := t.Get(ctx, key); err != nil {
			return 0, err
		} else if version == 0 {
			count++ // it was not in the store, so it has not been counted yet
		}
	}
	for log, entries := range t.logs {
		if strings.HasPrefix(log, prefix) {
			count += int64(len(entries))
			delete(t.logs, log)
		}
	}
	t.Batch.DeletePrefix(t.space, prefix)
	if hides {
		first, end := t.deleted.within(prefix)
		t.deleted = slices.Replace(t.deleted, first, end, prefix)
	}
	return count, nil
}

// Append appends an entry and retains it: the caller must not change it afterwards. The returned sequence number is
// final, because writers of one scope run one after another.
func (t *State) Append(ctx context.Context, log string, entry []byte) (int64, error) {
	last, err := t.lastStored(ctx, log)
	if err != nil {
		return 0, err
	}
	t.Batch.Append(t.space, log, entry)
	if t.logs == nil {
		t.logs = map[string][][]byte{}
	}
	t.logs[log] = append(t.logs[log], entry)
	return last + int64(len(t.logs[log])), nil
}

func (t *State) lastStored(ctx context.Context, log string) (int64, error) {
	if t.wasDeleted(log) {
		return 0, nil
	}
	return t.store.LastSeq(ctx, t.space, log)
}

// List pages through the keys of store and overlay together.
func (t *State) List(ctx context.Context, q state.ListQuery) (state.Page, error) {
	if t.clean() {
		return cachedRead(t.moment, q, func() (state.Page, error) { return t.store.List(ctx, t.space, q) })
	}
	own := t.keys.keysUnder(q.Prefix, q.After, q.Limit+1)
	var out state.Page
	bytes := 0
	add := func(i state.Item) bool {
		size := len(i.Key)
		if q.Values {
			size += i.Size
		}
		if len(out.Items) == q.Limit || len(out.Items) > 0 && q.MaxBytes > 0 && bytes+size > q.MaxBytes {
			out.More = true
			return false
		}
		bytes += size
		out.Items = append(out.Items, i)
		return true
	}
	addOwn := func() bool {
		v := t.keys.values[own[0]]
		i := state.Item{Key: own[0], Version: v.version, Size: len(v.data)}
		if q.Values {
			i.Data = v.data
		}
		own = own[1:]
		return add(i)
	}
	for stored := (state.Page{More: true}); stored.More; {
		var err error
		if stored, err = t.store.List(ctx, t.space, q); err != nil {
			return state.Page{}, err
		}
		for _, i := range stored.Items {
			q.After = i.Key
			for len(own) > 0 && own[0] < i.Key {
				if !addOwn() {
					return out, nil
				}
			}
			if _, over := t.keys.values[i.Key]; over || t.wasDeleted(i.Key) {
				continue
			}
			if !add(i) {
				return out, nil
			}
		}
	}
	for len(own) > 0 {
		if !addOwn() {
			break
		}
	}
	return out, nil
}

// Read pages through the entries of a log, with the operation's own entries at the end.
func (t *State) Read(ctx context.Context, q state.LogQuery) (state.Entries, error) {
	own := t.logs[q.Log]
	if len(own) == 0 && !t.wasDeleted(q.Log) {
		return cachedRead(t.moment, q, func() (state.Entries, error) { return t.store.ReadLog(ctx, t.space, q) })
	}
	base, err := t.lastStored(ctx, q.Log)
	if err != nil {
		return state.Entries{}, err
	}
	out := state.Entries{Last: base + int64(len(own))}
	at, step := max(q.From, 1), int64(1)
	if q.Reverse {
		step = -1
		if at = out.Last; q.From > 0 {
			at = min(q.From, out.Last)
		}
	}
	bytes := 0
	for ; at >= 1 && at <= out.Last; at += step {
		entry := state.Entry{Seq: at}
		if at > base {
			entry.Data = own[at-base-1]
		} else {
			stored, err := t.store.ReadLog(ctx, t.space, state.LogQuery{Log: q.Log, From: at, Limit: 1})
			if err != nil {
				return state.Entries{}, err
			}
			if len(stored.Items) == 1 {
				entry.Data = stored.Items[0].Data
			}
		}
		if len(out.Items) == q.Limit || len(out.Items) > 0 && q.MaxBytes > 0 && bytes+len(entry.Data) > q.MaxBytes {
			out.More = true
			break
		}
		bytes += len(entry.Data)
		out.Items = append(out.Items, entry)
	}
	return out, nil
}
