package main

import (
	"slices"
	"strings"
)

// apply replays one event of a commit on a view. It returns a warning where a forget meets nothing.
func apply(v *view, e *event, k *commit, m *meta) (warning string, err error) {
	switch e.Type {
	case typeAdd:
		return "", applyAdd(v, e, k, m)
	case typeModify:
		return "", applyModify(v, e, k, m)
	case typeForget:
		return applyForget(v, e, k, m)
	}
	return "", applyObserve(v, e, k, m)
}

// touch notes the commit that changed an entry.
func (e *entry) touch(k *commit, m *meta) {
	e.CommitID, e.UpdatedAt = k.ID, k.Timestamp
	for _, id := range m.EventIDs {
		if !slices.Contains(e.SourceEvents, id) {
			e.SourceEvents = append(e.SourceEvents, id)
		}
	}
	if more := len(e.SourceEvents) - maxSources; more > 0 {
		e.SourceEvents = e.SourceEvents[more:]
	}
	if m.ConversationID != "" {
		e.ConversationID = m.ConversationID
	}
}

func newEntry(e *event) *entry {
	made := &entry{Lineage: e.ID, CreatedAt: e.Timestamp}
	made.take(e)
	return made
}

// applyAdd: a new fact; one that is active is confirmed; one that was forgotten is there again.
func applyAdd(v *view, e *event, k *commit, m *meta) error {
	is, err := v.get(e.ID)
	if err != nil {
		return err
	}
	switch {
	case is == nil:
		is = newEntry(e)
	case is.ForgottenAt == "":
		is.Confirmations++
		is.Confidence = max(is.Confidence, e.Confidence)
	default:
		is.ForgottenAt = ""
		is.take(e)
	}
	is.touch(k, m)
	return v.put(is)
}

// applyModify: another value for the lineage of the parent, or for the only active fact with its subject and predicate; else a fact of its own, marked.
func applyModify(v *view, e *event, k *commit, m *meta) error {
	lineage, err := target(v, &e.identity)
	if err != nil {
		return err
	}
	var is *entry
	if lineage == "" {
		if is, err = v.get(e.ID); err != nil {
			return err
		}
		if is == nil {
			is = newEntry(e)
		}
		is.OrphanModify, is.ForgottenAt = true, ""
	} else {
		if is, err = v.get(lineage); err != nil {
			return err
		}
		is.take(e)
		is.Revisions++
		is.ForgottenAt = ""
		if err := v.own(e.ID, lineage); err != nil {
			return err
		}
	}
	is.touch(k, m)
	return v.put(is)
}

// target is the lineage that a modify means, "" where there is none, or more than one.
func target(v *view, e *identity) (string, error) {
	if e.ParentID != "" {
		if lineage, err := v.owner(e.ParentID); err != nil || lineage != "" {
			return lineage, err
		}
	}
	same, err := v.facts(e.Subject, e.Predicate)
	if err != nil || len(same) != 1 {
		return "", err
	}
	return same[0], nil
}

// forgets are the lineages that a forget means.
func forgets(v *view, e *identity) ([]string, error) {
	if e.ParentID != "" {
		lineage, err := v.owner(e.ParentID)
		if err != nil || lineage == "" {
			return nil, err
		}
		is, err := v.get(lineage)
		if err != nil || is == nil || is.ForgottenAt != "" {
			return nil, err
		}
		return []string{lineage}, nil
	}
	same, err := v.facts(e.Subject, e.Predicate)
	if err != nil || e.Object == "" {
		return same, err
	}
	var exact []string
	for _, lineage := range same {
		is, err := v.get(lineage)
		if err != nil {
			return nil, err
		}
		if is.Object == e.Object {
			exact = append(exact, lineage)
		}
	}
	return exact, nil
}

func applyForget(v *view, e *event, k *commit, m *meta) (string, error) {
	lineages, err := forgets(v, &e.identity)
	if err != nil {
		return "", err
	}
	if len(lineages) == 0 {
		return "forget_miss: event " + e.ID + " forgets what is not there", nil
	}
	for _, lineage := range lineages {
		is, err := v.get(lineage)
		if err != nil {
			return "", err
		}
		is.ForgottenAt = k.Timestamp
		is.touch(k, m)
		if err := v.put(is); err != nil {
			return "", err
		}
		if err := v.own(e.ID, lineage); err != nil {
			return "", err
		}
	}
	return "", nil
}

// applyObserve counts. An observation never overrides a fact.
func applyObserve(v *view, e *event, k *commit, m *meta) error {
	is, err := v.get(e.ID)
	if err != nil {
		return err
	}
	if is == nil {
		is = newEntry(e)
	}
	is.ForgottenAt = ""
	is.Count++
	is.touch(k, m)
	return v.put(is)
}

// fold is how subjects and predicates are compared.
func fold(s string) string { return lower(strings.TrimSpace(s)) }
