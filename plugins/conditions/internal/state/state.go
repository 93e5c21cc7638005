// Package state is the memory that the host keeps for a scope, as one operation uses it.
//
// An operation that cannot read or write its state has failed as a whole: the host keeps nothing of what it wrote. So
// a State keeps its first error. After it every read finds nothing, every write does nothing and every loop ends, and
// the operation returns the error at its end:
//
//	s := state.Of(call)
//	text, version := s.Get("file")
//	s.Put("file", append(text, line...), version)
//	return receipt, s.Err()
//
// Code between two reads therefore has to cope with an empty value, as it does with a key that is absent, and need
// not ask for errors.
package state

import (
	"iter"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// State is a call with its scope's state. Use its methods in place of those of sdk.Call.
type State struct {
	*sdk.Call
	err error
}

// Of returns the state of a call.
func Of(c *sdk.Call) *State { return &State{Call: c} }

// Err returns the first error, if any.
func (s *State) Err() error { return s.err }

// OK reports whether there was no error.
func (s *State) OK() bool { return s.err == nil }

// Fail sets the error, unless there was one before.
func (s *State) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Replace replaces the first error with another one.
func (s *State) Replace(err error) { s.err = err }

// Get returns the value under a key and its version; version 0 means that the key is absent.
func (s *State) Get(key string) (value []byte, version int64) {
	if s.err == nil {
		value, version, s.err = s.Call.Get(key)
	}
	return value, version
}

// Has reports whether a key exists.
func (s *State) Has(key string) bool {
	_, version := s.Get(key)
	return version != 0
}

// Put writes a key. If the stored version is not the expected one, the error is conflict.
func (s *State) Put(key string, value []byte, expected int64) {
	if s.err == nil {
		s.err = s.Call.Put(key, value, expected)
	}
}

// Delete removes all keys and logs whose name begins with prefix.
func (s *State) Delete(prefix string) {
	if s.err == nil {
		_, s.err = s.Call.Delete(prefix)
	}
}

// Remove removes one key. Because Delete also removes all keys that begin with it, those are written again.
func (s *State) Remove(key string) {
	var others []sdk.Item
	for item := range s.Values(key) {
		if item.Key != key {
			item.Value = append([]byte(nil), item.Value...)
			others = append(others, item)
		}
	}
	s.Delete(key)
	for _, item := range others {
		s.Put(item.Key, item.Value, sdk.AnyVersion)
	}
}

// List returns one page of keys, and whether there are more.
func (s *State) List(r abi.StateListRequest) (items []sdk.Item, more bool) {
	if s.err == nil {
		items, more, s.err = s.Call.List(r)
	}
	return items, more
}

// Items iterates over the keys of a list, page by page. Keys written under the prefix during the loop may or may not be
// visited.
func (s *State) Items(r abi.StateListRequest) iter.Seq[sdk.Item] {
	return func(yield func(sdk.Item) bool) {
		for more := true; more; {
			var items []sdk.Item
			items, more = s.List(r)
			for _, item := range items {
				r.After = item.Key
				if !yield(item) || s.err != nil {
					return
				}
			}
		}
	}
}

// Values returns all keys under a prefix with their values.
func (s *State) Values(prefix string) iter.Seq[sdk.Item] {
	return s.Items(abi.StateListRequest{Prefix: prefix, Values: true})
}

// Append adds an entry to a log.
func (s *State) Append(log string, entry []byte) {
	if s.err == nil {
		_, s.err = s.Call.Append(log, entry)
	}
}

// pageEntries is how many entries of a log are read at once.
const pageEntries = 500

// Entries iterates over a log's entries from one number, counted from 1, up to and including another.
func (s *State) Entries(log string, from, to int64) iter.Seq[sdk.Entry] {
	return func(yield func(sdk.Entry) bool) {
		for from = max(1, from); from <= to; {
			entries := s.read(abi.StateReadRequest{Log: log, From: from, Limit: min(pageEntries, to-from+1)})
			if len(entries) == 0 {
				return
			}
			for _, e := range entries {
				from = e.Seq + 1
				if !yield(e) || s.err != nil {
					return
				}
			}
		}
	}
}

// Newest iterates over the entries of a log from its end to its beginning, in pages of the given size.
func (s *State) Newest(log string, page int64) iter.Seq[sdk.Entry] {
	return func(yield func(sdk.Entry) bool) {
		for r := (abi.StateReadRequest{Log: log, Limit: page, Reverse: true}); ; {
			entries := s.read(r)
			for _, e := range entries {
				r.From = e.Seq - 1
				if !yield(e) || s.err != nil {
					return
				}
			}
			if len(entries) == 0 || r.From == 0 {
				return
			}
		}
	}
}

// Last returns the number of a log's last entry, 0 if it is empty, and that entry.
func (s *State) Last(log string) (n int64, entry []byte) {
	for e := range s.Newest(log, 1) {
		return e.Seq, e.Data
	}
	return 0, nil
}

func (s *State) read(r abi.StateReadRequest) (entries []sdk.Entry) {
	if s.err == nil {
		entries, _, s.err = s.Read(r)
	}
	return entries
}

// Load reads an object under a key into members and returns the key's version, 0 if the key is absent.
//
// Errors: unavailable (state_io) for a value that is not an object.
func (s *State) Load(key string, members ...object.Member) (version int64) {
	value, version := s.Get(key)
	if version != 0 && object.Decode(value, members...) != nil {
		s.Fail(Unreadable(key))
	}
	return version
}

// Store writes an object under a key.
func (s *State) Store(key string, expected int64, members ...object.Member) {
	s.Put(key, object.Encode(members...), expected)
}

// Unreadable returns the error for a damaged value.
func Unreadable(key string) error {
	return abi.NewError(abi.CodeUnavailable,
		"the state under "+strconv.Quote(key)+" is not what was stored there").WithReason("state_io")
}

// NowMS returns the call's clock in ms since 1970.
func (s *State) NowMS() int64 {
	at, err := abi.ParseTime(s.Now)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}
