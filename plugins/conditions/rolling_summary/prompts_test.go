package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestNanobotsOwnTexts(t *testing.T) {
	of := func(profile abi.Profile, config string) *promptSet {
		s, err := parseSettings(&abi.GuestConfig{Provider: "rolling_summary", Profile: profile, Config: abi.Raw(config)})
		require.NoError(t, err)
		return s.prompts
	}
	assert.Same(t, &ownPrompts, of("", `{}`))
	assert.Same(t, &nanobotPrompts, of(abi.ProfileSourceDesign, `{}`))
	assert.Same(t, &nanobotPrompts, of("", `{"prompts":"nanobot"}`))
	assert.Same(t, &ownPrompts, of(abi.ProfileSourceDesign, `{"prompts":"memhost"}`), "what is configured goes first")

	b := module.NewRig(t, `"prompts":"nanobot","update_policy":"every_event"`)
	b.Record(b.Turn("s1", "I like oolong tea.", "assistant: Noted."))
	b.Wait()
	assert.Contains(t, b.Prompt(), "Process this conversation and call the save_memory tool with your consolidation.")
	assert.Contains(t, b.Files()[memoryFile], "oolong")
}
