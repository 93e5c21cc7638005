package main

import (
	"github.com/go-faster/jx"

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
	tailSet, failures, onFailure := false, int64(3), ""
	err := jx.DecodeBytes(config.Config).Obj(func(d *jx.Decoder, key string) (err error) {
		if d.Next() == jx.Null {
			return d.Null()
		}
		switch key {
		case "llm":
			s.llm, err = nanobot.ParseLLM(d, config.Secrets)
		case "profile":
			var profile string
			profile, err = d.Str()
			s.local = profile == "local"
		case "update_policy":
			s.policy, err = d.Str()
		case "memory_window":
			s.window, err = d.Int64()
		case "include_tail":
			tailSet = true
			s.tail, err = d.Bool()
		case "max_history_messages":
			s.maxHistory, err = d.Int64()
		case "max_context_tokens":
			s.maxTokens, err = d.Int64()
		case "strict_payload":
			s.strict, err = d.Bool()
		case "on_failure":
			onFailure, err = d.Str()
		case "max_failures":
			failures, err = d.Int64()
		case "history_search":
			var mode string
			mode, err = d.Str()
			s.search = mode == "keyword"
		case "max_memory_chars":
			s.memoryChars, err = d.Int()
		case "agent_edits":
			s.agentEdits, err = d.Bool()
		default:
			err = s.tokens.Read(d, key)
		}
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of rolling_summary: "+err.Error())
	}
	if s.policy == "" {
		s.policy = nanobot.PolicySession
		if s.local {
			s.policy = nanobot.PolicyWindow
		}
	}
	if !tailSet {
		s.tail = s.local
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
