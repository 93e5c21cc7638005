package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// findEvent looks an event up by its id. The result is certain, because a turn and its receipt are committed together.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	key, _, err := c.Get(eventKey(r.EventID))
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	return &abi.FindEventAnswer{Found: "present", NativeIDs: []string{string(key)}}, nil
}

// inventory counts the turns and hashes their keys with their versions. It reads keys only, not turns.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	held, err := readTally(c)
	if err != nil {
		return nil, err
	}
	var digest sdk.Digest
	if err := c.Each(abi.StateListRequest{Prefix: turnPrefix}, func(item sdk.Item) error {
		digest.Add(item.Key + " " + sdk.Itoa(item.Version) + "\n")
		return nil
	}); err != nil {
		return nil, err
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "turn", Count: held.turns, Digest: digest.Hex()}},
		Complete: true, Quiescent: true,
		Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list"}}, nil
}
