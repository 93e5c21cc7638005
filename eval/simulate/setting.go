// Package simulate plays the user of a test session: the person wants what their preference in force says, and reacts
// to the agent's answers.
//
// A user never says the preference before the agent has acted: otherwise a test session measures how well an agent
// repeats its prompt.
package simulate

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// Setting is the situation that a conversation is about.
type Setting struct {
	ProbeID, PersonaID           string
	Scenario, Context, Attribute string
	// Now is when the conversation takes place by the pack's clock, RFC 3339; empty if the pack gives no time.
	Now string
	// Opening is what the user says first.
	Opening string
	// Value is the preference in force; empty if nothing is known, in which case a good agent says so.
	Value string
	// Stale has the values that Value has replaced in this context, oldest first. Elsewhere has the present and former
	// values of the attribute in other contexts. None of them equals Value.
	Stale, Elsewhere []string
	// Differs is true if another context has a different value in force at this time: such sessions count for CS.
	Differs bool
	// Preference is the source of Value; nil if nothing is known.
	Preference *pack.Preference
}

// NewSetting derives the setting of a probe from all preferences of its persona.
func NewSetting(probe *pack.Probe, preferences pack.Preferences) *Setting {
	s := &Setting{ProbeID: probe.ProbeID, PersonaID: probe.PersonaID, Scenario: probe.Scenario, Context: probe.Context,
		Attribute: probe.Attribute, Now: probe.AsOf, Opening: cmp.Or(probe.Opening, probe.Query)}
	now, err := abi.ParseTime(probe.AsOf)
	if err != nil || probe.Attribute == "" {
		return s
	}
	s.Preference = preferences.InForce(probe.Attribute, probe.Context, now)
	if s.Preference == nil {
		return s
	}
	s.Value = s.Preference.Value
	for _, p := range preferences.Before(s.Preference, now) {
		if !SameValue(p.Value, s.Value) {
			s.Stale = append(s.Stale, p.Value)
		}
	}
	for _, p := range preferences.Elsewhere(s.Preference, now) {
		if !SameValue(p.Value, s.Value) {
			s.Elsewhere = append(s.Elsewhere, p.Value)
			s.Differs = s.Differs || p.Holds(now)
		}
	}
	return s
}

// Changed reports whether the value in force has replaced another one: such sessions count for PET.
func (s *Setting) Changed() bool { return len(s.Stale) > 0 }

// Use says which value of an attribute an answer uses.
type Use string

// The uses. An answer that names both the value in force and another one leaves the choice to the user: it is
// UseSeveral.
const (
	UseCurrent   Use = "current"
	UseStale     Use = "stale"     // a former value of this context, but not the one in force
	UseElsewhere Use = "elsewhere" // only a value of another context
	UseSeveral   Use = "several"
	UseNone      Use = "none"
)

// UseOf returns which of the setting's values a text names, as whole words and ignoring case. A former value that is
// named together with one of another context counts as stale.
func (s *Setting) UseOf(text string) Use {
	stale, elsewhere := names(text, s.Stale), names(text, s.Elsewhere)
	switch current := s.Value != "" && Names(text, s.Value); {
	case current && (stale || elsewhere):
		return UseSeveral
	case current:
		return UseCurrent
	case stale:
		return UseStale
	case elsewhere:
		return UseElsewhere
	}
	return UseNone
}

func names(text string, values []string) bool {
	for _, value := range values {
		if Names(text, value) {
			return true
		}
	}
	return false
}

// SameValue reports whether two values are equal, ignoring case and the kind of white space.
func SameValue(a, b string) bool { return plain(a) == plain(b) }

// Names reports whether a text contains a value as whole words, ignoring case and the kind of white space.
func Names(text, value string) bool {
	text, value = plain(text), plain(value)
	if value == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], value)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(value):])
		if !ofWord(before) && !ofWord(after) {
			return true
		}
		_, width := utf8.DecodeRuneInString(text[at:])
		from = at + width
	}
}

func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func ofWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
