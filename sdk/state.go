package sdk

import (
	"github.com/memhost/memhost/abi"
)

// AnyVersion as Put's expected version overwrites the key whatever its version; 0 means that the key must be absent.
const AnyVersion = abi.AnyVersion

// Item is one key of the scope's state.
type Item struct {
	Key     string
	Version int64
	// Size is the value's length in bytes.
	Size int64
	// Value is nil if values were not requested.
	Value []byte
}

// Entry is one entry of a log.
type Entry struct {
	Seq  int64
	Data []byte
}

// Get returns a key's value and version; version 0 means that the key is absent.
func (c *Call) Get(key string) ([]byte, int64, error) {
	var head abi.StateVersion
	value, err := c.take(c.host.StateGet([]byte(key)), &head)
	return value, head.Version, err
}

// Put writes a key. The write is committed together with the operation's answer, or not at all. If the stored version
// is not the expected one, the error is conflict.
func (c *Call) Put(key string, value []byte, expected int64) error {
	var head abi.StateVersion
	_, err := c.take(c.host.StatePut([]byte(key), value, expected), &head)
	return err
}

// Delete removes every key and log whose name begins with prefix, and returns the number of removed values and entries.
// The empty prefix removes everything.
func (c *Call) Delete(prefix string) (int64, error) {
	var head abi.StateDeleted
	_, err := c.take(c.host.StateDelete([]byte(prefix)), &head)
	return head.Deleted, err
}

// List returns a page of keys in byte order, with their values if the request asks for them, and whether there are
// more.
func (c *Call) List(r abi.StateListRequest) ([]Item, bool, error) {
	var head abi.StateList
	body, err := c.take(c.host.StateList(abi.Marshal(&r)), &head)
	if err != nil {
		return nil, false, err
	}
	if r.Values {
		c.values = body
	}
	items := make([]Item, len(head.Keys))
	for i, k := range head.Keys {
		items[i] = Item{Key: k.Key, Version: k.Version, Size: k.Size}
		if r.Values {
			if k.Size > int64(len(body)) {
				return nil, false, abi.NewError(abi.CodeInternal, "state_list: the values are shorter than their sizes")
			}
			items[i].Value, body = body[:k.Size:k.Size], body[k.Size:]
		}
	}
	return items, head.More, nil
}

// ReuseValues gives back the values of the page that List returned last, as Reuse does. Nothing may refer to them any
// more; the keys stay valid.
func (c *Call) ReuseValues() {
	c.Reuse(c.values)
	c.values = nil
}

// Each calls f for every key of a list, page by page, until f returns an error. Keys that f writes under the prefix may
// or may not be visited.
func (c *Call) Each(r abi.StateListRequest, f func(Item) error) error {
	for more := true; more; {
		var items []Item
		var err error
		if items, more, err = c.List(r); err != nil {
			return err
		}
		for i := range items {
			r.After = items[i].Key
			if err := f(items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Append adds an entry to a log and returns its sequence number, from 1.
func (c *Call) Append(log string, entry []byte) (int64, error) {
	var head abi.StateSeq
	_, err := c.take(c.host.StateAppend([]byte(log), entry), &head)
	return head.Seq, err
}

// Read returns a page of a log's entries and the log's last sequence number.
func (c *Call) Read(r abi.StateReadRequest) (entries []Entry, last int64, err error) {
	var head abi.StateEntries
	body, err := c.take(c.host.StateRead(abi.Marshal(&r)), &head)
	if err != nil {
		return nil, 0, err
	}
	entries = make([]Entry, len(head.Entries))
	for i, e := range head.Entries {
		if e.Size > int64(len(body)) {
			return nil, 0, abi.NewError(abi.CodeInternal, "state_read: the entries are shorter than their sizes")
		}
		entries[i] = Entry{Seq: e.Seq, Data: body[:e.Size:e.Size]}
		body = body[e.Size:]
	}
	return entries, head.Last, nil
}
