package pack

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// Finding is one problem in a pack.
type Finding struct {
	// Rule is the stable name of the problem: dangling_evidence, time_backwards, doubled_id, canary_not_unique,
	// evidence_after_probe, unknown_licence, ...
	Rule string `json:"rule"`
	// Fatal findings prevent an evaluation; others are warnings.
	Fatal bool   `json:"fatal"`
	Where string `json:"where"`
	What  string `json:"what"`
}

// CanaryKind is the kind of a probe that looks for a marker that only occurs in one persona's events.
const CanaryKind = "canary"

// Lint looks for problems that would make a comparison wrong. It reads one persona at a time.
//
// Errors: those of reading. Problems in the pack are Findings, not errors.
func Lint(p *Pack) ([]Finding, error) {
	l := &linter{probes: map[string]bool{}, canaries: map[string]string{}}
	if source := p.Manifest.Source; source != nil && (source.Licence == "" || source.Licence == "unknown") {
		l.add("unknown_licence", false, ManifestFile,
			"the source's licence is unknown: do not pass on the pack, nor a report with text")
	}
	for _, persona := range p.Manifest.Personas {
		if err := l.persona(p, persona); err != nil {
			return nil, err
		}
	}
	if l.answerable > 0 && l.evidence == 0 {
		l.add("no_evidence", false, ProbesFile, "none of %d answerable probes names evidence: recall and content cannot be "+
			"measured, only answer_shown and judged answers", l.answerable)
	}
	for _, persona := range p.Manifest.Personas {
		if err := l.foreignCanaries(p, persona.PersonaID); err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

type linter struct {
	found    []Finding
	probes   map[string]bool   // ids so far
	canaries map[string]string // canary text -> persona
	// answerable counts answerable probes, evidence those of them that name evidence.
	answerable, evidence int
}

func (l *linter) add(rule string, fatal bool, where, what string, args ...any) {
	l.found = append(l.found, Finding{rule, fatal, where, fmt.Sprintf(what, args...)})
}

func (l *linter) persona(p *Pack, persona Persona) error {
	sessionOf := map[string]int{} // event id -> session
	var last time.Time
	session := 0
	for e, err := range p.Events(persona.PersonaID) {
		if err != nil {
			return err
		}
		where := fmt.Sprintf("persona %s, event %s", persona.PersonaID, e.EventID)
		if _, again := sessionOf[e.EventID]; again {
			l.add("doubled_id", true, where, "the persona has another event of this id")
		}
		sessionOf[e.EventID] = e.SessionIndex
		if e.SessionIndex != session && e.SessionIndex != session+1 {
			l.add("session_order", true, where, "session %d follows session %d", e.SessionIndex, session)
		}
		session = e.SessionIndex
		if err := e.MemoryEvent("lint").Validate(); err != nil {
			l.add("event", true, where, "%s", abi.AsError(err).Message)
			continue
		}
		at, err := abi.ParseTime(e.Timestamp)
		if err == nil && at.Before(last) {
			l.add("time_backwards", true, where, "it is at %s, the event before it at %s", e.Timestamp,
				last.Format(time.RFC3339))
		}
		last = at
	}
	if session != persona.Sessions {
		l.add("counts", true, "persona "+persona.PersonaID, "%d sessions were found, %s says %d", session, ManifestFile,
			persona.Sessions)
	}
	if err := l.probesOf(p, persona, sessionOf); err != nil {
		return err
	}
	return l.preferencesOf(p, persona, sessionOf)
}

func (l *linter) probesOf(p *Pack, persona Persona, sessionOf map[string]int) error {
	before := 0
	for probe, err := range p.Probes(persona.PersonaID) {
		if err != nil {
			return err
		}
		where := "probe " + probe.ProbeID
		if l.probes[probe.ProbeID] {
			l.add("doubled_id", true, where, "the pack has another probe of this id")
		}
		l.probes[probe.ProbeID] = true
		if strings.TrimSpace(probe.Query) == "" {
			l.add("empty_query", true, where, "it asks nothing")
		}
		if probe.AfterSession < before || probe.AfterSession < 1 || probe.AfterSession > persona.Sessions {
			l.add("probe_order", true, where, "it is asked after session %d of %d, the probe before it after %d",
				probe.AfterSession, persona.Sessions, before)
		}
		before = probe.AfterSession
		if probe.Gold.Answerable {
			l.answerable++
			if len(probe.Gold.Evidence) > 0 {
				l.evidence++
			}
		}
		if probe.Gold.Answerable && len(probe.Gold.Answers) == 0 && len(probe.Gold.Evidence) == 0 {
			l.add("no_gold", false, where, "it is answerable, but has neither answers nor evidence: no metric can "+
				"use it")
		}
		if !probe.Gold.Answerable && len(probe.Gold.Answers) > 0 {
			l.add("answers_unanswerable", false, where, "it has gold.answers, and gold.answerable is not true: it counts as a "+
				"question whose answer was never said, so no metric uses them")
		}
		ids := slices.Concat(probe.Gold.Evidence...)
		for _, stale := range probe.Gold.Stale {
			ids = append(ids, stale.EventID)
		}
		for _, id := range ids {
			switch session, known := sessionOf[id]; {
			case !known:
				l.add("dangling_evidence", true, where, "its evidence %q is no event of persona %s", id,
					persona.PersonaID)
			case session > probe.AfterSession:
				l.add("evidence_after_probe", true, where,
					"its evidence %q is in session %d, it is asked after session %d",
					id, session, probe.AfterSession)
			}
		}
		if probe.Kind == CanaryKind {
			for _, text := range slices.Concat(probe.Gold.Answers...) {
				if owner, taken := l.canaries[strings.ToLower(text)]; taken && owner != persona.PersonaID {
					l.add("canary_not_unique", true, where, "persona %s has the canary %q, too", owner, text)
				}
				l.canaries[strings.ToLower(text)] = persona.PersonaID
			}
		}
	}
	return nil
}

// foreignCanaries looks for canaries in the events of other personas.
func (l *linter) foreignCanaries(p *Pack, personaID string) error {
	if len(l.canaries) == 0 {
		return nil
	}
	for e, err := range p.Events(personaID) {
		if err != nil {
			return err
		}
		for i := range e.Messages {
			if e.Messages[i].Content == nil {
				continue
			}
			text := strings.ToLower(*e.Messages[i].Content)
			for canary, owner := range l.canaries {
				if owner != personaID && strings.Contains(text, canary) {
					l.add("canary_not_unique", true, fmt.Sprintf("persona %s, event %s", personaID, e.EventID),
						"it holds the canary %q of persona %s", canary, owner)
				}
			}
		}
	}
	return nil
}

// preferencesOf checks a persona's preferences against its events and probes.
func (l *linter) preferencesOf(p *Pack, persona Persona, sessionOf map[string]int) error {
	list, err := p.Preferences(persona.PersonaID)
	if err != nil || list == nil {
		return err
	}
	for i := range list {
		pref := &list[i]
		where := fmt.Sprintf("persona %s, preference %s %q", persona.PersonaID, pref.Attribute, pref.Value)
		from, err := abi.ParseTime(pref.From)
		until, untilErr := abi.ParseTime(pref.Until)
		switch {
		case pref.Attribute == "" || strings.TrimSpace(pref.Value) == "":
			l.add("preference", true, where, "it needs an attribute and a value")
		case err != nil:
			l.add("preference", true, where, "from: %q is not a time in RFC 3339", pref.From)
		case pref.Until != "" && untilErr != nil:
			l.add("preference", true, where, "until: %q is not a time in RFC 3339", pref.Until)
		case pref.Until != "" && !from.Before(until):
			l.add("preference", true, where, "it ends at %s, and begins at %s", pref.Until, pref.From)
		case len(pref.Evidence) == 0:
			l.add("preference", true, where, "it names no event that says it")
		}
		for _, id := range pref.Evidence {
			if _, known := sessionOf[id]; !known {
				l.add("dangling_evidence", true, where, "its evidence %q is no event of persona %s", id, persona.PersonaID)
			}
		}
		for j := range list[:i] {
			other := &list[j]
			if other.Attribute == pref.Attribute && other.Context == pref.Context && (other.Holds(from) || pref.holdsFrom(other)) {
				l.add("preference_overlap", true, where, "%q holds at the same time in the same context", other.Value)
			}
		}
	}
	return l.preferenceProbes(p, persona, list)
}

// holdsFrom reports whether the preference is in force when another one starts.
func (p *Preference) holdsFrom(other *Preference) bool {
	from, err := abi.ParseTime(other.From)
	return err == nil && p.Holds(from)
}

// preferenceProbes requires that a probe's gold is the preference in force, and that its opening does not name it.
func (l *linter) preferenceProbes(p *Pack, persona Persona, list Preferences) error {
	for probe, err := range p.Probes(persona.PersonaID) {
		if err != nil {
			return err
		}
		now, err := abi.ParseTime(probe.AsOf)
		if err != nil || probe.Attribute == "" {
			continue
		}
		where, inForce := "probe "+probe.ProbeID, list.InForce(probe.Attribute, probe.Context, now)
		switch answers := slices.Concat(probe.Gold.Answers...); {
		case inForce == nil:
			if probe.Gold.Answerable {
				l.add("preference_not_gold", true, where, "it is answerable, and no preference %s is in force", probe.Attribute)
			}
		case !slices.ContainsFunc(answers, func(a string) bool { return strings.EqualFold(a, inForce.Value) }):
			l.add("preference_not_gold", true, where, "the preference in force is %q, and no answer of the probe",
				inForce.Value)
		case strings.Contains(strings.ToLower(probe.Opening+"\n"+probe.Query), strings.ToLower(inForce.Value)):
			l.add("opening_names_preference", true, where, "the user would say %q before the agent has acted", inForce.Value)
		}
	}
	return nil
}
