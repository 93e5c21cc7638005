package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block. The manifest's schema says what each key means; the host has laid the defaults under
// it.
type settings struct {
	config *abi.GuestConfig
	// fixed is the one workspace for all scopes; empty means a workspace for each.
	fixed string

	context             bool
	supplements         []string
	contextTokens       int64
	maxConclusions      int64
	searchTopK          int64   // 0: as many as max_conclusions
	searchMaxDistance   abi.Raw // a number as it was written, nil for none
	includeMostFrequent bool
	limitToSession      bool
	summary             bool
	messages            bool
	queryChars          int64

	observeAssistant       bool
	maxMessageChars        int64
	workspaceConfiguration abi.Raw
	probeEmbeddings        bool
	server                 serverFacts

	// headers are of every request.
	headers map[string]string
	// version is what the server said of itself; a cache of this instance.
	version string
}

// serverFacts is what the operator knows of the server and Honcho does not tell. Nil means not known.
type serverFacts struct {
	flush       *bool
	sharedCache *bool
	batchTokens int64
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the block. The values before it are the schema's defaults.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, context: true, contextTokens: 8000, maxConclusions: 25, summary: true,
		messages:   true,
		queryChars: 2000, maxMessageChars: 25_000, server: serverFacts{batchTokens: 512},
		headers: map[string]string{"content-type": "application/json"}}
	if slices.Contains(config.Secrets, "api_key") {
		s.headers["authorization"] = "Bearer {{secret:api_key}}"
	}
	err := wire.Read(config.Config, "fixed_workspace", &s.fixed, "context", &s.context, "supplements", &s.supplements,
		"context_tokens", &s.contextTokens, "max_conclusions", &s.maxConclusions, "search_top_k", &s.searchTopK,
		"search_max_distance", &s.searchMaxDistance, "include_most_frequent", &s.includeMostFrequent,
		"limit_to_session", &s.limitToSession, "summary", &s.summary, "messages", &s.messages,
		"query_chars", &s.queryChars, "observe_assistant", &s.observeAssistant, "max_message_chars", &s.maxMessageChars,
		"workspace_configuration", &s.workspaceConfiguration, "probe_embeddings", &s.probeEmbeddings,
		"server", wire.Fields{"flush", &s.server.flush, "shared_cache", &s.server.sharedCache,
			"batch_tokens", &s.server.batchTokens})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of honcho: "+err.Error())
	}
	return s, nil
}

// trace begins the trace of an operation.
func (s *settings) trace(native string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: native}
}
