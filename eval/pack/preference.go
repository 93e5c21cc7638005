package pack

import (
	"time"

	"github.com/memhost/memhost/abi"
)

// Preference is one line of preferences.jsonl: what a person wants, in one context or everywhere, from some time until
// another value replaces it.
type Preference struct {
	PersonaID string `json:"persona_id"`
	Attribute string `json:"attribute"`
	// Context is where it applies; empty means everywhere except in contexts with their own preference.
	Context string `json:"context,omitempty"`
	Value   string `json:"value"`
	// From and Until are RFC 3339. It holds from From (inclusive) to Until (exclusive); without Until it still holds.
	From  string `json:"from"`
	Until string `json:"until,omitempty"`
	// Evidence has the ids of the persona's events that state it, at least one.
	Evidence []string `json:"evidence"`
}

// Holds reports whether the preference is in force at a time.
func (p *Preference) Holds(at time.Time) bool {
	from, err := abi.ParseTime(p.From)
	return err == nil && !at.Before(from) && !p.ended(at)
}

// ended reports whether another value has replaced it at a time.
func (p *Preference) ended(at time.Time) bool {
	until, err := abi.ParseTime(p.Until)
	return p.Until != "" && err == nil && !at.Before(until)
}

// Preferences are all preferences of one person.
type Preferences []Preference

// InForce returns the preference of an attribute that applies in a context at a time: the context's own, or else the
// general one; nil if there is none.
func (l Preferences) InForce(attribute, context string, at time.Time) *Preference {
	var general *Preference
	for i := range l {
		switch p := &l[i]; {
		case p.Attribute != attribute || !p.Holds(at):
		case p.Context == context:
			return p
		case p.Context == "":
			general = p
		}
	}
	return general
}

// Before returns the earlier values of a preference: those of the same attribute and context that have ended at a time,
// in the pack's order.
func (l Preferences) Before(p *Preference, at time.Time) Preferences {
	var list Preferences
	for _, o := range l {
		if o.Attribute == p.Attribute && o.Context == p.Context && o.ended(at) {
			list = append(list, o)
		}
	}
	return list
}

// Elsewhere returns the preferences of the same attribute in other contexts that hold or held at a time, in the pack's
// order.
func (l Preferences) Elsewhere(p *Preference, at time.Time) Preferences {
	var list Preferences
	for _, o := range l {
		if o.Attribute == p.Attribute && o.Context != p.Context && (o.Holds(at) || o.ended(at)) {
			list = append(list, o)
		}
	}
	return list
}
