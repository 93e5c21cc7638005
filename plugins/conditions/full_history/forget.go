package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget removes turns. The key of a forgotten event is emptied, not deleted: a delete removes every key with the same
// beginning, and other ids may begin with this one.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	held, err := readTally(c)
	if err != nil {
		return nil, err
	}
	keys, err := selectedKeys(c, r)
	if err != nil {
		return nil, err
	}
	removed := []string{}
	for _, key := range keys {
		stored, version, err := c.Get(key)
		if err != nil {
			return nil, err
		}
		if version == 0 {
			continue
		}
		var e abi.MemoryEvent
		if abi.Unmarshal(stored, &e) != nil {
			return nil, unreadable(key)
		}
		if _, err := c.Delete(key); err != nil { // all keys of turns have the same length
			return nil, err
		}
		if err := c.Put(eventKey(e.EventID), nil, sdk.AnyVersion); err != nil {
			return nil, err
		}
		held.turns--
		held.bytes -= int64(len(stored))
		removed = append(removed, key)
	}
	if len(removed) > 0 {
		if err := held.write(c); err != nil {
			return nil, err
		}
	}
	return &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"turn": removed},
		DerivedMayRemain: []string{}, Trace: &abi.Trace{BackendName: s.config.Provider,
			NativeOperation: "state_delete"}}, nil
}

// selectedKeys returns the keys of the turns that a request selects; some of them may not exist.
func selectedKeys(c *sdk.Call, r *abi.ForgetRequest) (keys []string, err error) {
	for _, id := range r.EventIDs {
		key, _, err := c.Get(eventKey(id))
		if err != nil {
			return nil, err
		}
		if len(key) > 0 {
			keys = append(keys, string(key))
		}
	}
	for _, id := range r.NativeIDs {
		if strings.HasPrefix(id, turnPrefix) && len(id) == turnKeyLength {
			keys = append(keys, id)
		}
	}
	if r.SessionID == "" && r.From == "" {
		return keys, nil
	}
	query := abi.StateListRequest{Prefix: turnPrefix, Values: true}
	err = c.Each(query, func(item sdk.Item) error {
		var e abi.MemoryEvent
		if abi.Unmarshal(item.Value, &e) != nil {
			return unreadable(item.Key)
		}
		if sdk.Forgets(r, e.SessionID, e.Timestamp) {
			keys = append(keys, item.Key)
		}
		return nil
	})
	return keys, err
}
