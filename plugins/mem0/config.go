package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// defaultTopK is the default number of memories that a search requests: mem0's own default.
const defaultTopK = 20

// settings is the config block; manifest.json documents each field.
type settings struct {
	config *abi.GuestConfig
	// found is the server's surface, once an operation of this instance has determined it.
	found *surface

	api, auth       string
	infer           bool
	topK            int64
	threshold       float64
	rerank          bool
	rerankPool      int64
	rerankOnError   string
	procedural      bool
	explain         bool
	latestOnly      bool
	sendAgentID     bool
	scopeAgent      bool // the scope's agent is sent with adds and searches
	backdate        bool
	observationDate string
	instructions    string
	namePrefix      bool
	nestedMetadata  bool
	maxChars        int64
	verifyWrites    bool
	addTimeoutS     int64
	settleMS        int64
	exactSearch     string
	deepHealth      bool
	feedback        string
	showExpired     bool
	expirationFrom  string // a key of an event's metadata
	// categories and dataSchema are sent with the platform's adds, as configured.
	categories, dataSchema abi.Raw

	authorized bool // the operator has set a key
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the effective block, which the host has validated and merged over the schema's defaults.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, authorized: slices.Contains(config.Secrets, "api_key")}
	err := wire.Read(config.Config, "api", &s.api, "auth", &s.auth, "infer", &s.infer, "top_k", &s.topK,
		"threshold", &s.threshold, "rerank", &s.rerank, "rerank_pool", &s.rerankPool,
		"rerank_on_error", &s.rerankOnError, "procedural", &s.procedural, "explain", &s.explain,
		"latest_only", &s.latestOnly, "send_agent_id", &s.sendAgentID, "backdate", &s.backdate,
		"observation_date", &s.observationDate, "custom_instructions", &s.instructions, "name_prefix", &s.namePrefix,
		"nested_metadata", &s.nestedMetadata, "max_chars_per_message", &s.maxChars, "verify_writes", &s.verifyWrites,
		"add_timeout_s", &s.addTimeoutS, "settle_ms", &s.settleMS, "exact_search", &s.exactSearch,
		"deep_health", &s.deepHealth, "feedback", &s.feedback,
		"show_expired", &s.showExpired, "expiration_from", &s.expirationFrom,
		"custom_categories", &s.categories, "structured_data_schema", &s.dataSchema)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+": "+err.Error())
	}
	if s.topK == 0 {
		s.topK = defaultTopK
	}
	if config.Profile == abi.ProfileSourceDesign {
		// Add and search with the design's parameters: no look-up after an add, no explanation of scores.
		s.verifyWrites, s.explain, s.scopeAgent = false, false, true
	}
	if s.procedural && !s.infer {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+
			": procedural: a procedural memory is written by an LLM; it needs infer: true")
	}
	return s, nil
}
