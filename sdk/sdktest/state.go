package sdktest

import (
	"bytes"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

type storeKey struct {
	scope      abi.MemoryScope
	generation int64
}

// store is the state of one generation of a scope.
type store struct {
	keys    map[string]value
	logs    map[string][][]byte
	order   []string // the sorted keys; nil if out of date
	version int64
	undo    []func()
}

type value struct {
	version int64
	data    []byte
}

func (h *Host) store(scope abi.MemoryScope) *store {
	key := storeKey{scope, h.Generation(scope)}
	s := h.stores[key]
	if s == nil {
		s = &store{keys: map[string]value{}, logs: map[string][][]byte{}}
		h.stores[key] = s
	}
	return s
}

func (s *store) commit() { s.undo = nil }

func (s *store) rollBack() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
	s.undo = nil
	s.order = nil
}

func (s *store) ordered() []string {
	if s.order == nil {
		s.order = slices.Sorted(maps.Keys(s.keys))
	}
	return s.order
}

// set writes a key, or removes it if v is the zero value.
func (s *store) set(key string, v value) {
	old, had := s.keys[key]
	s.undo = append(s.undo, func() {
		delete(s.keys, key)
		if had {
			s.keys[key] = old
		}
	})
	if v.version == 0 {
		delete(s.keys, key)
	} else {
		s.keys[key] = v
	}
	if !had || v.version == 0 {
		s.order = nil
	}
}

func (s *store) setLog(name string, entries [][]byte) {
	old := s.logs[name]
	s.undo = append(s.undo, func() { s.logs[name] = old })
	s.logs[name] = entries
}

// checkKey checks the rules for keys and writes. If one is broken, it returns the error's result and false.
func (c *call) checkKey(name []byte, write bool) (packed uint64, ok bool) {
	switch {
	case c.op == abi.OpHealth:
		return c.refuse(abi.CodeDenied, "state: health has no scope, so it has no state"), false
	case len(name) > 512 || !utf8.Valid(name):
		return c.refuse(abi.CodeInvalidArgument, "state: a name is 1 to 512 bytes of UTF-8"), false
	case !write:
		return 0, true
	case c.ReadOnly:
		return c.refuse(abi.CodeReadOnly, "state: the slot is read-only"), false
	}
	switch c.op {
	case abi.OpSetupScope, abi.OpRecordEvent, abi.OpRecordEvents, abi.OpResetScope, abi.OpWaitUntilReady,
		abi.OpApplyFeedback, abi.OpNativeMutation, abi.OpForget:
		return 0, true
	}
	return c.refuse(abi.CodeDenied, "state: "+c.op+" may not write"), false
}

func (c *call) checkName(name []byte, write bool) (packed uint64, ok bool) {
	if len(name) == 0 {
		return c.refuse(abi.CodeInvalidArgument, "state: a name is 1 to 512 bytes of UTF-8"), false
	}
	return c.checkKey(name, write)
}

func (c *call) StateGet(key []byte) uint64 {
	c.Reads++
	if packed, ok := c.checkName(key, false); !ok {
		return packed
	}
	v := c.store.keys[string(key)]
	c.ValueBytes += int64(len(v.data))
	return c.answer(&abi.StateVersion{Version: v.version}, v.data)
}

func (c *call) StatePut(key, data []byte, expected int64) uint64 {
	if packed, ok := c.checkName(key, true); !ok {
		return packed
	}
	if now := c.store.keys[string(key)].version; expected != abi.AnyVersion && expected != now {
		return c.refuse(abi.CodeConflict, "state: the key "+string(key)+" has another version")
	}
	c.store.version++
	c.store.set(string(key), value{c.store.version, append([]byte{}, data...)})
	return c.answer(&abi.StateVersion{Version: c.store.version}, nil)
}

func (c *call) StateDelete(prefix []byte) uint64 {
	if packed, ok := c.checkKey(prefix, true); !ok {
		return packed
	}
	var deleted int64
	for _, key := range c.store.from(string(prefix), "") {
		if !strings.HasPrefix(key, string(prefix)) {
			break
		}
		c.store.set(key, value{})
		deleted++
	}
	for name, entries := range c.store.logs {
		if strings.HasPrefix(name, string(prefix)) {
			deleted += int64(len(entries))
			c.store.setLog(name, nil)
		}
	}
	return c.answer(&abi.StateDeleted{Deleted: deleted}, nil)
}

// from returns the keys with prefix that follow after, in order.
func (s *store) from(prefix, after string) []string {
	keys := s.ordered()
	i := sort.SearchStrings(keys, prefix)
	if after != "" {
		i = max(i, sort.Search(len(keys), func(i int) bool { return keys[i] > after }))
	}
	return keys[i:]
}

func (c *call) StateList(request []byte) uint64 {
	c.Reads++
	var r abi.StateListRequest
	if err := abi.UnmarshalStrict(request, &r); err != nil {
		return c.refuse(abi.CodeInvalidArgument, "state_list: "+err.Error())
	}
	if packed, ok := c.checkKey([]byte(r.Prefix), false); !ok {
		return packed
	}
	limit := c.pageLimit(r.Limit)
	var list abi.StateList
	var values []byte
	for _, key := range c.store.from(r.Prefix, r.After) {
		if !strings.HasPrefix(key, r.Prefix) {
			break
		}
		v := c.store.keys[key]
		if n := int64(len(list.Keys)); n == limit || r.Values && n > 0 && int64(len(values)+len(v.data)) > c.PageBytes {
			list.More = true
			break
		}
		list.Keys = append(list.Keys, abi.StateKey{Key: key, Version: v.version, Size: int64(len(v.data))})
		if r.Values {
			values = append(values, v.data...)
		}
	}
	c.ValueBytes += int64(len(values))
	return c.answer(&list, values)
}

func (c *call) pageLimit(wanted int64) int64 {
	if wanted <= 0 || wanted > c.PageLimit {
		return c.PageLimit
	}
	return wanted
}

func (c *call) StateAppend(log, entry []byte) uint64 {
	if packed, ok := c.checkName(log, true); !ok {
		return packed
	}
	entries := append(c.store.logs[string(log)], bytes.Clone(entry))
	c.store.setLog(string(log), entries)
	return c.answer(&abi.StateSeq{Seq: int64(len(entries))}, nil)
}

func (c *call) StateRead(request []byte) uint64 {
	c.Reads++
	var r abi.StateReadRequest
	if err := abi.UnmarshalStrict(request, &r); err != nil {
		return c.refuse(abi.CodeInvalidArgument, "state_read: "+err.Error())
	}
	if packed, ok := c.checkName([]byte(r.Log), false); !ok {
		return packed
	}
	entries := c.store.logs[r.Log]
	head := abi.StateEntries{Last: int64(len(entries))}
	seq, step := max(r.From, 1), int64(1)
	if r.Reverse {
		seq, step = min(or(r.From, head.Last), head.Last), -1
	}
	limit := c.pageLimit(r.Limit)
	var body []byte
	for ; seq >= 1 && seq <= head.Last; seq += step {
		entry := entries[seq-1]
		if n := int64(len(head.Entries)); n == limit || n > 0 && int64(len(body)+len(entry)) > c.PageBytes {
			head.More = true
			break
		}
		head.Entries = append(head.Entries, abi.StateEntry{Seq: seq, Size: int64(len(entry))})
		body = append(body, entry...)
	}
	c.ValueBytes += int64(len(body))
	return c.answer(&head, body)
}
