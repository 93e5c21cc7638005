package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// llm is nil if no endpoint is configured: messages are then kept as observations.
	llm *model.Endpoint
	// perSession extracts at the end of a session instead of event by event.
	perSession bool
	// manual extracts nothing until memory_consolidate is called.
	manual bool
	// autoPersona asks the model on which branch a turn belongs.
	autoPersona bool
	// conflicts says what to do with an extracted add that contradicts an active fact: keep_both, replace, or ask the
	// model (llm).
	conflicts string
	// byQuery shows the entries that share words with the query, best first, instead of the newest.
	byQuery bool
	// maxTokens bounds every retrieval in addition to the request's budget; nil: only the request's budget counts.
	maxTokens *int64
	// temporarySeconds is how long a temporary fact is shown.
	temporarySeconds int64
	// consolidateMS is how often duplicates and expired facts are forgotten automatically; 0: never.
	consolidateMS int64
	// exposeConfidential shows confidential entries, which are never shown otherwise.
	exposeConfidential bool
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, temporarySeconds: 86400, conflicts: keepBoth}
	most, minutes, profile, policy, order := int64(8000), int64(0), "", "", ""
	s.maxTokens = &most
	if config.Profile == abi.ProfileSourceDesign { // its heartbeat, every 30 minutes
		minutes, s.conflicts = 30, onLLM
	}
	err := wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch {
		case key == "max_context_tokens" && d.Next() == wirejson.Null:
			s.maxTokens = nil
			err = d.Null()
		case key == "llm" && d.Next() == wirejson.Object:
			s.llm = new(model.Endpoint)
			*s.llm, err = model.ParseEndpoint(d, config.Secrets)
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil {
		err = object.Decode(config.Config, object.Optional("max_context_tokens", &most),
			object.Optional("profile", &profile), object.Optional("update_policy", &policy),
			object.Optional("conflict_policy", &s.conflicts), object.Optional("auto_persona",
				&s.autoPersona), object.Optional("temporary_ttl_s", &s.temporarySeconds),
			object.Optional("expose_confidential", &s.exposeConfidential), object.Optional("order", &order),
			object.Optional("consolidate_minutes", &minutes))
	}
	if err != nil {
		return nil, wrong("config of ledger_memory", err.Error())
	}
	s.perSession = policy == model.PolicySession || policy == "" && profile != "local"
	s.consolidateMS = minutes * 60_000
	s.byQuery = order == "query"
	s.manual = policy == model.PolicyManual
	return s, nil
}

// budget returns the request's budget, bounded by the configuration.
func (s *settings) budget(b abi.ContextBudget) abi.ContextBudget {
	if s.maxTokens != nil && (b.MaxTokens == nil || *b.MaxTokens > *s.maxTokens) {
		b.MaxTokens = s.maxTokens
	}
	return b
}

func (s *settings) trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: operation, Consistency: "committed"}
}
