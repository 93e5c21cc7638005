package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope checks the connection to the graph. It creates nothing: a group exists only through its data.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"group_id": v.group}, Trace: v.trace("")}
	sdk.Put(&receipt.Trace.Details, "surface", sdk.Text(v.name))
	err = v.surface.setup(v, receipt)
	if err != nil {
		return nil, err
	}
	return receipt, v.boltAlive()
}

// resetScope removes the group. What a server writes later from its queue goes into the old generation's group.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.ResetReceipt{Status: abi.ResetInProgress, Removed: map[string]*int64{}, OldGeneration: c.Generation,
		NewGeneration: c.Generation + 1, Trace: v.trace("")}
	sdk.Put(&receipt.Trace.Details, "group_id", sdk.Text(v.group))
	return receipt, v.surface.reset(v, receipt)
}

// inventory counts what the group holds, and says whether the surface could list all of it.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.Inventory{Trace: v.trace("")}
	return answer, v.surface.inventory(v, answer)
}
