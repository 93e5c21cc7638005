package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	nanobot.Settings
	// strict: a consolidation that lacks one of its two texts, or would blank the memory, counts as failed.
	strict bool
	// rawAfter is after how many failures messages go into the log as they are; 0: they are offered again for ever.
	rawAfter int64
	// memoryChars bounds MEMORY.md, in characters.
	memoryChars int64
	agentEdits  bool
	prompts     *promptSet
}

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{strict: true, memoryChars: 64000, agentEdits: true}
	failures, onFailure, prompts := int64(3), "", ""
	var err error
	s.Settings, err = nanobot.ParseSettings(config, model.PolicyWindow, nil, object.Optional("strict_payload", &s.strict),
		object.Optional("on_failure", &onFailure), object.Optional("max_failures",
			&failures), object.Optional("max_memory_chars", &s.memoryChars),
		object.Optional("agent_edits", &s.agentEdits), object.Optional("prompts", &prompts))
	s.prompts = &ownPrompts
	if prompts == "nanobot" || prompts == "" && config.Profile == abi.ProfileSourceDesign {
		s.prompts = &nanobotPrompts
	}
	if onFailure == "raw_after_n" {
		s.rawAfter = failures
	}
	return s, err
}

// memory is the two files, in one operation.
type memory struct {
	nanobot.Base
	settings *settings
}

func open(c *sdk.Call) (nanobot.Memory, error) {
	s, err := sdk.Settings(c, parseSettings)
	if err != nil {
		return nil, err
	}
	return &memory{nanobot.NewBase(c, &s.Settings), s}, nil
}
