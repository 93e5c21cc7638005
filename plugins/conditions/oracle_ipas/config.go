package main

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/sdk"
)

// noGroundTruth is the warning for a scope without any entry.
const noGroundTruth = "no_ground_truth: the configuration has no entry for this persona_id, or only for other runs"

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// entries by persona_id, in the order of the list
	entries map[string][]*entry
}

// entry is one true value of one attribute. An empty string means that a value is not set.
type entry struct {
	personaID, runID      string
	attribute, value      string
	context, scenario     string
	validFrom, validUntil string
	from, until           time.Time // validFrom and validUntil, if set
	source                string
	// raw is the entry as configured.
	raw abi.Raw
}

// open counts entries for fixed.Control.
func open(c *sdk.Call) (config *abi.GuestConfig, all, ofScope int, err error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, 0, 0, err
	}
	return s.config, len(s.entries), len(s.of(c.Scope)), nil
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// entryList reads a list of entries.
type entryList []*entry

func (l *entryList) begin(raw abi.Raw) func(name string) *string {
	x := &entry{raw: raw}
	*l = append(*l, x)
	return x.member
}

// parseSettings reads the block. The host has checked it against the schema, except for the times.
//
// Errors: invalid_argument for an invalid time, or an end before the start; the message names the entry.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	var list entryList
	err := fixed.Block(wirejson.DecodeBytes(config.Config), "entries", list.begin)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of oracle_ipas: "+err.Error())
	}
	s := &settings{config: config, entries: map[string][]*entry{}}
	for i, e := range list {
		if err := e.readTimes(); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"config of oracle_ipas: entries["+sdk.Itoa(i)+"]."+abi.AsError(err).Message)
		}
		s.entries[e.personaID] = append(s.entries[e.personaID], e)
	}
	return s, nil
}

func (e *entry) member(name string) *string {
	switch name {
	case "persona_id":
		return &e.personaID
	case "run_id":
		return &e.runID
	case "attribute":
		return &e.attribute
	case "value":
		return &e.value
	case "context":
		return &e.context
	case "scenario":
		return &e.scenario
	case "valid_from":
		return &e.validFrom
	case "valid_until":
		return &e.validUntil
	case "source":
		return &e.source
	}
	return nil
}

// readTimes sets from and until. The message of its error begins with the field.
func (e *entry) readTimes() (err error) {
	if e.validFrom != "" {
		if e.from, err = abi.ParseTime(e.validFrom); err != nil {
			return abi.NewError(abi.CodeInvalidArgument, "valid_from: "+abi.AsError(err).Message)
		}
	}
	if e.validUntil != "" {
		if e.until, err = abi.ParseTime(e.validUntil); err != nil {
			return abi.NewError(abi.CodeInvalidArgument, "valid_until: "+abi.AsError(err).Message)
		}
	}
	if e.validFrom != "" && e.validUntil != "" && e.until.Before(e.from) {
		return abi.NewError(abi.CodeInvalidArgument, "valid_until: earlier than valid_from")
	}
	return nil
}

// isOf reports whether the entry belongs to the scope.
func (e *entry) isOf(scope abi.MemoryScope) bool {
	return e.personaID == scope.PersonaID && (e.runID == "" || e.runID == scope.RunID)
}

// of returns the scope's entries, regardless of their content and validity.
func (s *settings) of(scope abi.MemoryScope) []*entry {
	var list []*entry
	for _, e := range s.entries[scope.PersonaID] {
		if e.isOf(scope) {
			list = append(list, e)
		}
	}
	return list
}
