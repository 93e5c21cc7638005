package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health checks the server and the services that it uses, because both servers' own health routes report success even
// if the database, the LLM or the worker is down. Only readiness reveals a dead worker.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: []string{"episode", "entity", "fact"}, Isolation: "filtered", PetObservability: "partial"}
	code, err := s.surface.probe(&scopedCall{c, s, probeGroup}, h)
	if err != nil {
		h.Status = abi.HealthUnavailable
		if code == "neo4j_down" { // the server itself may still work
			h.Status = abi.HealthDegraded
		}
		h.Warnings = append(h.Warnings, code+": "+abi.AsError(err).Message)
	}
	if s.hasBolt {
		h.PetObservability = "strong"
	}
	return h, nil
}
