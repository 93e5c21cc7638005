// Package nothing answers readiness and inventory for conditions that store no recorded events.
package nothing

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Readiness is always ready: a retrieval does not depend on what was recorded.
func Readiness(*sdk.Call, *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	return &abi.BackendReadiness{Status: abi.ReadinessReady,
		Method: "keeps nothing: no retrieval waits for what was recorded"}, nil
}

// Inventory is complete and empty.
func Inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{}, Complete: true, Quiescent: true,
		Trace: &abi.Trace{BackendName: config.Provider,
			Warnings: []string{"keeps_nothing: there is nothing to count"}}}, nil
}
