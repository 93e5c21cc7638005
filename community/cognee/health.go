package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health says how the server is, and what it is like. Without its databases it answers 503, which is an error.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	state := &abi.BackendHealth{Status: abi.HealthOK, BackendName: backendName, ConsistencyModel: "eventual",
		Isolation: "hard", PetObservability: "strong", NativeQueryModes: []string{"chunks"}, NativeMemoryTypes: []string{"chunk"}}
	answer, err := ask(c, request{route: "health"})
	if err != nil {
		return nil, err
	}
	health := ""
	err = wirejson.DecodeBytes(answer).Obj(func(d *wirejson.Decoder, key string) error {
		switch key {
		case "health":
			return sdk.ReadText(d, &health)
		case "version":
			return sdk.ReadText(d, &state.BackendVersion)
		}
		return d.Skip()
	})
	if err != nil || health == "" {
		return nil, unusable("health", answer)
	}
	if health != "healthy" {
		state.Status, state.Warnings = abi.HealthDegraded, []string{"backend_degraded: Cognee says " + health}
	}
	return state, nil
}
