package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health is always ok: there is nothing that could fail.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.provider, ConsistencyModel: "immediate",
		Isolation:        "hard",
		PetObservability: "weak"}, nil
}
