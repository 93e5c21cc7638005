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
	llm    nanobot.LLM
	local  bool
	policy string
	// window is how many messages bring a consolidation; the last half of them stay out of it.
	window int64
	// budget by tokens, for the policy tokens.
	tokens nanobot.TokenBudget
	// tail: a retrieval shows the messages of its session that are not summarised yet.
	tail        bool
	maxHistory  int64
	maxTokens   int64
	strict      bool
	rawAfter    int64 // 0: a range that fails is tried again for ever
	search      bool
	memoryChars int
	agentEdits  bool
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, window: 100, tokens: nanobot.DefaultBudget(), maxHistory: 500, maxTokens: 8000, strict: true, memoryChars: 64000, agentEdits: true}
	failures, chars := int64(3), int64(s.memoryChars)
	var profile, onFailure, search string
	var tail jsontext.Raw
	err := nanobot.DecodeFrom(jsontext.DecodeBytes(config.Config), append(s.tokens.Fields(), nanobot.Word("profile", &profile), nanobot.Word("update_policy", &s.policy),
		nanobot.Number("memory_window", &s.window), nanobot.Number("max_history_messages", &s.maxHistory), nanobot.Number("max_context_tokens", &s.maxTokens),
		nanobot.Flag("strict_payload", &s.strict), nanobot.Word("on_failure", &onFailure), nanobot.Number("max_failures", &failures),
		nanobot.Word("history_search", &search), nanobot.Number("max_memory_chars", &chars), nanobot.Flag("agent_edits", &s.agentEdits)),
		func(d *jsontext.Decoder, key string) (err error) {
			switch key {
			case "llm":
				s.llm, err = nanobot.ParseLLM(d, config.Secrets)
			case "include_tail":
				tail, err = d.RawAppend(nil)
			default:
				err = d.Skip()
			}
			return err
		})
	s.local, s.search, s.memoryChars = profile == "local", search == "keyword", int(chars)
	s.tail = string(tail) == "true" || tail == nil && s.local
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of rolling_summary: "+err.Error())
	}
	if s.policy == "" {
		s.policy = nanobot.PolicySession
		if s.local {
			s.policy = nanobot.PolicyWindow
		}
	}
	if onFailure == "raw_after_n" {
		s.rawAfter = failures
	}
	return s, nil
}

// bySession tells whether the end of a session brings work: then all that is recorded waits for it.
func (s *settings) bySession() bool { return s.policy == nanobot.PolicySession }

// keep is how many messages stay out of a consolidation.
func (s *settings) keep() int64 {
	if s.policy == nanobot.PolicyWindow || s.policy == nanobot.PolicyManual {
		return s.window / 2
	}
	return 0
}
