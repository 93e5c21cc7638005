package main

import (
	"errors"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/idtemplate"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// The write profiles, named after the values of add_mode.
const (
	profileAsync = "async"
	profileFast  = "sync/fast"
	profileFine  = "sync/fine"
)

// The search modes of POST /product/search.
const (
	searchFast    = "fast"
	searchFine    = "fine"
	searchMixture = "mixture"
)

// When a message's name is written before its text (name_prefix).
const (
	prefixAuto   = "auto"
	prefixAlways = "always"
	prefixNever  = "never"
)

// settings is the operator's block, merged over the schema's defaults by the host.
type settings struct {
	config          *abi.GuestConfig
	addMode         string
	searchMode      string
	graphStore      string
	limits          limits
	shareGroups     bool
	namePrefix      string
	sourceDesign    bool
	dedup           string
	relativity      float64
	rerank          bool
	readBack        bool
	isolationProbe  bool
	stallAfterMS    int64
	feedbackEnabled bool
	feedbackMode    string
	// template makes cube ids, if one is configured.
	template *idtemplate.Template
	// readable are other cubes that a search also reads.
	readable []string

	// headers are sent with every request, jsonHeaders with those that have a body.
	headers, jsonHeaders map[string]string
	// verified is a cache: the probe found that cubes are separated. It does not depend on the scope.
	verified *verdict
}

// parseSettings reads the block. The initial values are the schema's defaults, for hosts that do not merge them.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, addMode: profileAsync, searchMode: searchFast, graphStore: "neo4j-community",
		limits: limits{10, 6, 6, 3}, namePrefix: prefixAlways, dedup: "mmr", rerank: true, readBack: true,
		isolationProbe: true,
		stallAfterMS:   600_000,
		feedbackMode:   "sync", jsonHeaders: map[string]string{"content-type": "application/json"}}
	if slices.Contains(config.Secrets, "api_key") {
		s.headers = map[string]string{"authorization": "Bearer {{secret:api_key}}"}
		s.jsonHeaders["authorization"] = s.headers["authorization"]
	}
	share, template := "", ""
	err := wire.Read(config.Config, "share", &share, "name_prefix", &s.namePrefix, "add_mode", &s.addMode,
		"search_mode", &s.searchMode, "graph_store", &s.graphStore,
		"top_k", &s.limits.text, "pref_top_k", &s.limits.pref, "tool_mem_top_k", &s.limits.tool,
		"skill_mem_top_k", &s.limits.skill, "dedup", &s.dedup, "relativity", &s.relativity, "rerank", &s.rerank,
		"read_back", &s.readBack, "isolation_probe", &s.isolationProbe, "stall_after_ms", &s.stallAfterMS,
		"feedback_enabled", &s.feedbackEnabled, "feedback_mode", &s.feedbackMode,
		"writable_cube_template", &template, "readable_cubes", &s.readable)
	if err == nil && template != "" {
		if s.template, err = idtemplate.Parse(template, idtemplate.Run, idtemplate.Persona); err != nil {
			err = errors.New("writable_cube_template: " + err.Error())
		}
	}
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of memos: "+err.Error())
	}
	s.shareGroups = share == "groups"
	if s.sourceDesign = config.Profile == abi.ProfileSourceDesign; s.sourceDesign {
		// Adds and searches with the design's parameters, without look-ups after them.
		s.readBack, s.isolationProbe, s.shareGroups, s.namePrefix = false, false, false, prefixNever
	}
	return s, nil
}

// trace starts the trace of an operation.
func (s *settings) trace(native string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: native}
}

// async reports whether an LLM processes a write after it was answered.
func (s *settings) async() bool { return s.addMode == profileAsync }

// keepsInfo reports whether the final memories contain the request's info: always in the sync profiles; after async
// extraction only on the stores whose handler copies it (mem_read_handler.py).
func (s *settings) keepsInfo() bool {
	return !s.async() || s.graphStore == "postgres" || s.graphStore == "polardb"
}

// filters reports whether the store applies a filter in search and get_memory: postgres ignores it
// (graph_dbs/postgres.py).
func (s *settings) filters() bool { return s.graphStore != "postgres" }
