package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare. Existed tells whether the scope has a profile.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(true), Trace: &abi.Trace{BackendName: s.config.Provider}}
	if s.find(c.Scope) == nil {
		receipt.Existed, receipt.Warnings = sdk.Ptr(false), []string{noProfile}
	}
	return receipt, nil
}

// resetScope has nothing to remove: nothing was recorded.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.ResetReceipt{Status: abi.ResetDone, OldGeneration: c.Generation, NewGeneration: c.Generation + 1,
		Trace: &abi.Trace{BackendName: s.config.Provider}}
	if s.find(c.Scope) != nil {
		receipt.Remains = []string{"the profile: it comes from the configuration, not from recorded events"}
	}
	return receipt, nil
}
