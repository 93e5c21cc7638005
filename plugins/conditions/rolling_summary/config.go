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
	// strict: a consolidation counts as failed if it lacks one of its two texts, or would empty the memory.
	strict bool
	// rawAfter is the number of failures after which messages go into the log verbatim; 0: never, they are retried.
	rawAfter int64
	// memoryChars is the maximum length of MEMORY.md, in characters.
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

// memory manages the two files, in one operation.
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
