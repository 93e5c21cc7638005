package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// probeGroup is a group that no scope has: reading it proves the way to the database.
const probeGroup = groupPrefix + "health"

// health asks the server, and what stands behind it: both servers' own health routes stay green with the database, the LLM or the worker dead.
// A dead worker shows in readiness only.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: []string{"episode", "entity", "fact"}, NativeIngestModes: []string{"message"}, NativeQueryModes: s.queryModes(),
		Isolation: "filtered", PetObservability: "partial"}
	if s.mcp {
		h.NativeIngestModes = []string{"message", "text", "json", "fact_triple(text-extraction)", "triplet"}
	}
	if s.bolt {
		h.PetObservability = "strong"
	}
	if s.core {
		s.coreModes(h)
		s.coreProbe(c, h)
		return h, nil
	}
	s.probe(c, h)
	return h, nil
}

// probe makes the native calls, the cheap and quick ones first: with Neo4j down the servers answer after half a minute.
func (s *settings) probe(c *sdk.Call, h *abi.BackendHealth) {
	alive := "rest_health"
	if s.mcp {
		alive = "mcp_health"
	}
	if _, err := s.rest(c, abi.HTTPRequest{Route: alive}, nil); err != nil {
		unwell(h, abi.HealthUnavailable, "server_down", err)
		return
	}
	if s.bolt {
		if _, err := boltNumber(c, "bolt_alive", nil); err != nil {
			unwell(h, abi.HealthDegraded, "neo4j_down", err)
			return
		}
	}
	if !s.mcp {
		if _, err := s.restEpisodes(c, probeGroup, 1); err != nil {
			unwell(h, abi.HealthUnavailable, "database_down", err)
		}
		return
	}
	missing, err := s.mcpMissing(c)
	switch {
	case err != nil:
		unwell(h, abi.HealthUnavailable, "mcp_down", err)
		return
	case len(missing) > 0:
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings, "tools_missing: the MCP server lacks "+strings.Join(missing, ", ")+"; it is older than mcp-server 1.0.2, or not Graphiti's")
	}
	if err := s.mcpStatus(c); err != nil {
		unwell(h, abi.HealthUnavailable, "database_down", err)
	}
}

func unwell(h *abi.BackendHealth, status abi.HealthStatus, code string, err error) {
	h.Status = status
	h.Warnings = append(h.Warnings, code+": "+abi.AsError(err).Message)
}
