package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health says how the server is, and what it is like. Without its database it answers 503, which is an error.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	state := &abi.BackendHealth{Status: abi.HealthOK, BackendName: backendName, ConsistencyModel: "eventual",
		Isolation: "hard", PetObservability: "strong", NativeQueryModes: []string{"semantic", "bm25", "graph", "temporal"},
		NativeMemoryTypes: []string{"world", "experience", "observation"}}
	status := ""
	for _, f := range []struct {
		route, field string
		into         *string
	}{{"health", "status", &status}, {"version", "api_version", &state.BackendVersion}} {
		answer, err := ask(c, request{route: f.route})
		if err != nil {
			return nil, err
		}
		err = fields(answer, map[string]func(*wirejson.Decoder) error{
			f.field: func(d *wirejson.Decoder) error { return sdk.ReadText(d, f.into) }})
		if err != nil || *f.into == "" {
			return nil, unusable(f.route, answer)
		}
	}
	if status != "healthy" {
		state.Status, state.Warnings = abi.HealthDegraded, []string{"backend_degraded: Hindsight says " + status}
	}
	return state, nil
}
