package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health is ok when the configuration can be used: there is nothing else that could fail.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: []string{"profile"}, NativeQueryModes: []string{"fixed"}, Isolation: "hard",
		PetObservability: "weak"}
	if len(s.profiles) == 0 {
		h.Warnings = []string{"no_profile: the configuration has no profile at all: every retrieval is empty"}
	}
	return h, nil
}
