package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/sdk"
)

// noProfile is the warning for a scope without a profile.
const noProfile = "no_profile: the configuration has no profile for this persona_id, or only for other runs"

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// profiles are keyed by scopeKey.
	profiles map[string]*profile
}

// profile is one entry of the list.
type profile struct {
	personaID string
	// runID is empty in an entry that applies to every run of the persona.
	runID string
	text  string
	// raw is the entry as configured.
	raw abi.Raw
}

// open counts profiles for fixed.Control.
func open(c *sdk.Call) (config *abi.GuestConfig, all, ofScope int, err error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, 0, 0, err
	}
	if s.find(c.Scope) != nil {
		ofScope = 1
	}
	return s.config, len(s.profiles), ofScope, nil
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// profiles reads a list of profiles.
type profiles []*profile

func (l *profiles) begin(raw abi.Raw) func(name string) *string {
	x := &profile{raw: raw}
	*l = append(*l, x)
	return x.member
}

// parseSettings reads the block, which the host has checked against the schema.
//
// Errors: invalid_argument, also when two entries are for the same persona and run: one of them would never be shown.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	var list profiles
	err := fixed.Block(wirejson.DecodeBytes(config.Config), "profiles", list.begin)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of static_profile: "+err.Error())
	}
	s := &settings{config: config, profiles: make(map[string]*profile, len(list))}
	for i, p := range list {
		key := scopeKey(p.personaID, p.runID)
		if s.profiles[key] != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "config of static_profile: profiles["+sdk.Itoa(i)+
				"]: an earlier entry is for the same persona_id and run_id")
		}
		s.profiles[key] = p
	}
	return s, nil
}

func (p *profile) member(name string) *string {
	switch name {
	case "persona_id":
		return &p.personaID
	case "run_id":
		return &p.runID
	case "text":
		return &p.text
	}
	return nil
}

// find returns the scope's profile: the one of its run, else the one for every run, else nil.
func (s *settings) find(scope abi.MemoryScope) *profile {
	if p := s.profiles[scopeKey(scope.PersonaID, scope.RunID)]; p != nil {
		return p
	}
	return s.profiles[scopeKey(scope.PersonaID, "")]
}

// scopeKey is unambiguous, because ids do not contain U+0000.
func scopeKey(personaID, runID string) string { return personaID + "\x00" + runID }

// isOf reports whether the entry applies to the scope.
func (p *profile) isOf(scope abi.MemoryScope) bool {
	return p.personaID == scope.PersonaID && (p.runID == "" || p.runID == scope.RunID)
}
