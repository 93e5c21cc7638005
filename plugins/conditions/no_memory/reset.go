package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return &abi.SetupReceipt{Ready: true, Trace: s.trace()}, nil
}

// resetScope has nothing to remove.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, OldGeneration: c.Generation, NewGeneration: c.Generation + 1,
		Trace: s.trace()}, nil
}
