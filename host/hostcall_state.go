package host

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// Bounds of one state call.
const (
	stateNameBytes = 512
	statePageItems = 1000
	statePageBytes = 16 << 20
)

// stateFor returns the call's state, or why there is none to read or to write.
func (c *call) stateFor(write bool) (*stateTx, *abi.Error) {
	if c.state == nil {
		return nil, abi.NewError(abi.CodeDenied, fmt.Sprintf("%s has no scope, so it has no state", c.op))
	}
	if write && c.state.refusal != nil {
		return nil, c.state.refusal(c.op)
	}
	return c.state, nil
}

// stateName reads the name of a key or log out of the guest's memory.
func stateName(m guestMemory, ptr, n uint64, what string, least int) (string, *abi.Error) {
	name := m.text(ptr, n)
	if len(name) < least || len(name) > stateNameBytes {
		return "", abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("state %s has %d bytes, want %d to %d", what, len(name), least, stateNameBytes))
	}
	if !utf8.ValidString(name) {
		return "", abi.NewError(abi.CodeInvalidArgument, "state "+what+" is not UTF-8")
	}
	return name, nil
}

// stateValue copies a value out of the guest's memory.
func (c *call) stateValue(m guestMemory, ptr, n uint64) ([]byte, *abi.Error) {
	value := m.view(ptr, n)
	if limit := c.provider.limits.StateValueBytes; int64(len(value)) > limit {
		return nil, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("state value has %d bytes, the limit is %d", len(value), limit))
	}
	return bytes.Clone(value), nil
}

func hostStateGet(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(false)
		if refusal != nil {
			return c.refuse(refusal)
		}
		key, wrong := stateName(m, stack[0], stack[1], "key", 1)
		if wrong != nil {
			return c.refuse(wrong)
		}
		data, version, err := t.get(c.ctx, key)
		if err != nil {
			return c.refuse(stateError(err))
		}
		return c.answer(&abi.StateVersion{Version: version}, data)
	}()
}

func hostStatePut(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(true)
		if refusal != nil {
			return c.refuse(refusal)
		}
		key, wrong := stateName(m, stack[0], stack[1], "key", 1)
		if wrong != nil {
			return c.refuse(wrong)
		}
		value, wrong := c.stateValue(m, stack[2], stack[3])
		if wrong != nil {
			return c.refuse(wrong)
		}
		expected := int64(stack[4])
		if expected < abi.AnyVersion {
			return c.refuse(abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("expected version %d; want -1, 0 or a version", expected)))
		}
		version, err := t.put(c.ctx, key, value, expected)
		if err != nil {
			return c.refuse(stateError(err))
		}
		return c.answer(&abi.StateVersion{Version: version})
	}()
}

func hostStateDelete(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(true)
		if refusal != nil {
			return c.refuse(refusal)
		}
		prefix, wrong := stateName(m, stack[0], stack[1], "prefix", 0)
		if wrong != nil {
			return c.refuse(wrong)
		}
		count, err := t.delete(c.ctx, prefix)
		if err != nil {
			return c.refuse(stateError(err))
		}
		return c.answer(&abi.StateDeleted{Deleted: count})
	}()
}

func hostStateAppend(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(true)
		if refusal != nil {
			return c.refuse(refusal)
		}
		log, wrong := stateName(m, stack[0], stack[1], "log", 1)
		if wrong != nil {
			return c.refuse(wrong)
		}
		entry, wrong := c.stateValue(m, stack[2], stack[3])
		if wrong != nil {
			return c.refuse(wrong)
		}
		seq, err := t.append(c.ctx, log, entry)
		if err != nil {
			return c.refuse(stateError(err))
		}
		return c.answer(&abi.StateSeq{Seq: seq})
	}()
}

func hostStateList(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(false)
		if refusal != nil {
			return c.refuse(refusal)
		}
		var r abi.StateListRequest
		if err := m.parse(stack[0], stack[1], &r); err != nil {
			return c.refuse(err)
		}
		page, err := t.list(c.ctx, state.ListQuery{Prefix: r.Prefix, After: r.After,
			Limit: pageItems(r.Limit), Values: r.Values, MaxBytes: statePageBytes})
		if err != nil {
			return c.refuse(stateError(err))
		}
		head := abi.StateList{Keys: make([]abi.StateKey, len(page.Items)), More: page.More}
		bodies := make([][]byte, 0, len(page.Items))
		for i, item := range page.Items {
			head.Keys[i] = abi.StateKey{Key: item.Key, Version: item.Version, Size: int64(item.Size)}
			if r.Values {
				bodies = append(bodies, item.Data)
			}
		}
		return c.answer(&head, bodies...)
	}()
}

func hostStateRead(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		t, refusal := c.stateFor(false)
		if refusal != nil {
			return c.refuse(refusal)
		}
		var r abi.StateReadRequest
		if err := m.parse(stack[0], stack[1], &r); err != nil {
			return c.refuse(err)
		}
		if r.Log == "" || len(r.Log) > stateNameBytes {
			return c.refuse(abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("log: has %d bytes, want 1 to %d", len(r.Log), stateNameBytes)))
		}
		entries, err := t.read(c.ctx, state.LogQuery{Log: r.Log, From: max(0, r.From), Limit: pageItems(r.Limit),
			Reverse: r.Reverse, MaxBytes: statePageBytes})
		if err != nil {
			return c.refuse(stateError(err))
		}
		head := abi.StateEntries{Entries: make([]abi.StateEntry, len(entries.Items)), Last: entries.Last, More: entries.More}
		bodies := make([][]byte, len(entries.Items))
		for i, e := range entries.Items {
			head.Entries[i] = abi.StateEntry{Seq: e.Seq, Size: int64(len(e.Data))}
			bodies[i] = e.Data
		}
		return c.answer(&head, bodies...)
	}()
}

// pageItems is the number of items in a page: what was asked for, at most statePageItems.
func pageItems(limit int64) int {
	if limit <= 0 || limit > statePageItems {
		return statePageItems
	}
	return int(limit)
}
