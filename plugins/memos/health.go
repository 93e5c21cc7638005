package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
)

// health checks the web process, then the graph database and the embedder by the isolation probe, without writing: GET
// /health says healthy even if the database is down. The version there is a constant unrelated to the release, so
// health reports none.
func health(b *backend, _ *abi.Empty) (*abi.BackendHealth, error) {
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: b.config.Provider, ConsistencyModel: "immediate",
		Isolation: "unverified", PetObservability: "partial",
		NativeMemoryTypes: []string{"text_mem", "pref_mem", "tool_mem", "skill_mem", "LongTermMemory", "UserMemory",
			"PreferenceMemory", "ToolSchemaMemory", "ToolTrajectoryMemory",
			"SkillMemory", "WorkingMemory"},
		NativeIngestModes: []string{profileAsync, profileFast, profileFine}, NativeQueryModes: []string{searchFast,
			searchFine, searchMixture},
		Warnings: []string{"write_profile: " + b.profile()}}
	if b.async() {
		h.ConsistencyModel = "async_derived"
	}
	if b.searchMode != searchFast {
		h.Warnings = append(h.Warnings, "search_ablation: "+ablation(b.searchMode))
	}
	if !b.filters() {
		h.Warnings = append(h.Warnings, "label_not_filtered: graph store postgres ignores filters")
	}
	if len(b.readable) > 0 {
		h.Warnings = append(h.Warnings, b.sharing())
	}
	if _, err := b.get("liveness"); err != nil {
		return unavailable(h, err), nil
	}
	v, err := b.probe(false)
	if err != nil {
		return unavailable(h, err), nil
	}
	if v.leak != nil {
		return unavailable(h, v.leak), nil
	}
	h.Isolation = v.isolation
	h.Warnings = append(h.Warnings, v.warnings...)
	if v.searchBroken {
		h.Status = abi.HealthDegraded
	}
	return h, nil
}

func unavailable(h *abi.BackendHealth, err error) *abi.BackendHealth {
	e := abi.AsError(err)
	h.Status = abi.HealthUnavailable
	h.Warnings = append(h.Warnings, string(e.Code)+": "+strings.TrimSpace(e.Message+" "+e.Hint))
	return h
}

// profile describes the cost of the write profile (single_cube.py, mem_read_handler.py).
func (s *settings) profile() string {
	lost := ""
	if s.graphStore == "neo4j" && s.addMode != profileFast {
		lost = "; on graph store neo4j a turn with tool trajectories or skills loses its whole batch"
	}
	switch s.addMode {
	case profileFast:
		return "sync/fast keeps raw text only, no preferences, tools or skills; ids are final and all labels are kept"
	case profileFine:
		return "sync/fine calls an LLM inside each write; ids are final and all labels are kept" + lost
	}
	if s.keepsInfo() {
		return "async: an LLM replaces the raw text later, and the ids of receipts with it"
	}
	return "async: an LLM replaces the raw text later, and the ids of receipts with it; of the labels the exact " +
		"triple and the scenario remain" + lost
}
