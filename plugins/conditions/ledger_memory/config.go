package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// llm is nil where no endpoint is configured: then what was said is kept as observations.
	llm *nanobot.LLM
	// perSession extracts when a session is over, and not event by event.
	perSession bool
	// manual leaves what was recorded waiting until memory_consolidate is asked for.
	manual bool
	// autoPersona asks the model on which branch a turn belongs.
	autoPersona bool
	// conflicts is what an extracted add that contradicts an active fact does: keep_both, replace, or what the model says (llm).
	conflicts string
	// maxTokens bounds every retrieval beside the request's own budget; nil means only that counts.
	maxTokens *int64
	// temporarySeconds is how long a temporary fact is shown.
	temporarySeconds int64
	// exposeConfidential shows what is otherwise never shown.
	exposeConfidential bool
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, maxTokens: sdk.Ptr(int64(8000)), temporarySeconds: 86400, conflicts: keepBoth}
	var profile, policy string
	err := jsontext.DecodeBytes(config.Config).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() == jsontext.Null {
			if key == "max_context_tokens" {
				s.maxTokens = nil
			}
			return d.Null()
		}
		switch key {
		case "max_context_tokens":
			*s.maxTokens, err = d.Int64()
		case "llm":
			var llm nanobot.LLM
			llm, err = nanobot.ParseLLM(d, config.Secrets)
			s.llm = &llm
		case "profile":
			profile, err = d.Str()
		case "update_policy":
			policy, err = d.Str()
		case "conflict_policy":
			s.conflicts, err = d.Str()
		case "auto_persona":
			s.autoPersona, err = d.Bool()
		case "temporary_ttl_s":
			s.temporarySeconds, err = d.Int64()
		case "expose_confidential":
			s.exposeConfidential, err = d.Bool()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return nil, wrong("config of ledger_memory", err.Error())
	}
	s.perSession = policy == nanobot.PolicySession || policy == "" && profile != "local"
	s.manual = policy == nanobot.PolicyManual
	return s, nil
}

// budget is the request's, bounded by the configuration.
func (s *settings) budget(b abi.ContextBudget) abi.ContextBudget {
	if s.maxTokens != nil && (b.MaxTokens == nil || *b.MaxTokens > *s.maxTokens) {
		b.MaxTokens = s.maxTokens
	}
	return b
}

func (s *settings) trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: operation, Consistency: "committed"}
}
