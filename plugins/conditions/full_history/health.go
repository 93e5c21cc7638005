package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health is always ok: the state is the host's own.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: []string{"turn"}, NativeIngestModes: []string{"verbatim"},
		NativeQueryModes: []string{"chronological"},
		Isolation:        "hard", PetObservability: "strong"}, nil
}

// readiness is always ready: a turn is stored with its receipt.
func readiness(*sdk.Call, *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "stored with the receipt"}, nil
}
