package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// noProfile is the warning for a scope without a profile.
const noProfile = "no_profile: the configuration has no profile for this persona_id, or only for other runs"

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// profiles are found by scopeKey.
	profiles map[string]*profile
}

// profile is one entry of the list.
type profile struct {
	personaID string
	// runID is empty in an entry for every run of the persona.
	runID string
	text  string
	// raw is the entry as configured.
	raw abi.Raw
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the block, which the host has checked against the schema.
//
// Errors: invalid_argument, also when two entries are for the same persona and run: one of them would never be shown.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	list, err := readBlock(wirejson.DecodeBytes(config.Config))
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

// readBlock reads {"profiles": [...]}. Instead of the list there may be such an object again: the content of a file
// that holds one.
func readBlock(d *wirejson.Decoder) (list []*profile, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch {
		case key != "profiles" || d.Next() == wirejson.Null:
			return d.Skip()
		case d.Next() == wirejson.Object:
			list, err = readBlock(d)
		default:
			list, err = readProfiles(d)
		}
		return err
	})
	return list, err
}

func readProfiles(d *wirejson.Decoder) (list []*profile, err error) {
	err = d.Arr(func(d *wirejson.Decoder) error {
		p, err := readProfile(d)
		list = append(list, p)
		return err
	})
	return list, err
}

func readProfile(d *wirejson.Decoder) (*profile, error) {
	d.Next() // to where the value begins
	raw, err := d.Raw()
	if err != nil {
		return nil, err
	}
	p := &profile{raw: abi.Raw(raw)}
	return p, wirejson.DecodeBytes(raw).Obj(func(d *wirejson.Decoder, key string) error {
		var field *string
		switch key {
		case "persona_id":
			field = &p.personaID
		case "run_id":
			field = &p.runID
		case "text":
			field = &p.text
		}
		if field == nil || d.Next() == wirejson.Null {
			return d.Skip()
		}
		*field, err = d.Str()
		return err
	})
}

// find is the scope's profile: that of its run before that of every run; nil when there is neither.
func (s *settings) find(scope abi.MemoryScope) *profile {
	if p := s.profiles[scopeKey(scope.PersonaID, scope.RunID)]; p != nil {
		return p
	}
	return s.profiles[scopeKey(scope.PersonaID, "")]
}

// scopeKey is unambiguous: ids hold no U+0000.
func scopeKey(personaID, runID string) string { return personaID + "\x00" + runID }

// isOf tells whether the entry is one for the scope.
func (p *profile) isOf(scope abi.MemoryScope) bool {
	return p.personaID == scope.PersonaID && (p.runID == "" || p.runID == scope.RunID)
}
