package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare. Existed reports whether the scope holds turns.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	held, err := readTally(c)
	if err != nil {
		return nil, err
	}
	return &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(held.turns > 0),
		Trace: &abi.Trace{BackendName: s.config.Provider}}, nil
}

// resetScope counts the turns. The host removes them with the generation's state, in the transaction that starts the
// next one.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	held, err := readTally(c)
	if err != nil {
		return nil, err
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"turn": &held.turns},
		OldGeneration: c.Generation,
		NewGeneration: c.Generation + 1, Trace: &abi.Trace{BackendName: s.config.Provider}}, nil
}
