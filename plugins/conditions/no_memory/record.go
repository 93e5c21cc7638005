package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent stores nothing, and its receipt says so.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusNotRetained, NativeIDsKind: abi.NativeIDsNone,
		StoredCount: sdk.Ptr(int64(0)), Trace: s.trace()}, nil
}
