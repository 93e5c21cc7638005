package main

import "slices"

// apply replays one event of a commit on a view. It returns a warning if a forget matches nothing.
func (v *view) apply(e *event, k *commit, m *meta) (warning string) {
	switch e.Type {
	case typeAdd:
		v.applyAdd(e, k, m)
	case typeModify:
		v.applyModify(e, k, m)
	case typeForget:
		return v.applyForget(e, k, m)
	default:
		v.applyObserve(e, k, m)
	}
	return ""
}

// write stores an entry that a commit has changed.
func (v *view) write(e *entry, k *commit, m *meta) {
	e.CommitID, e.UpdatedAt = k.ID, k.Timestamp
	for _, id := range m.EventIDs {
		if !slices.Contains(e.SourceEvents, id) {
			e.SourceEvents = append(e.SourceEvents, id)
		}
	}
	e.SourceEvents = e.SourceEvents[max(0, len(e.SourceEvents)-maxSources):]
	if m.ConversationID != "" {
		e.ConversationID = m.ConversationID
	}
	v.put(e)
}

func newEntry(e *event) *entry {
	made := &entry{Lineage: e.ID, CreatedAt: e.Timestamp}
	made.take(e)
	return made
}

// applyAdd adds a new fact, confirms an active one, or revives a forgotten one.
func (v *view) applyAdd(e *event, k *commit, m *meta) {
	is := v.get(e.ID)
	switch {
	case is == nil:
		is = newEntry(e)
	case is.active():
		is.Confirmations++
		is.Confidence = max(is.Confidence, e.Confidence)
	default:
		is.ForgottenAt = ""
		is.take(e)
	}
	v.write(is, k, m)
}

// applyModify gives a new value to the lineage of the parent, or to the only active fact with the same subject and
// predicate. If there is none, it adds a fact, marked as such.
func (v *view) applyModify(e *event, k *commit, m *meta) {
	is := v.target(&e.identity)
	if is != nil {
		is.take(e)
		is.Revisions++
		v.setOwner(e.ID, is.Lineage)
	} else {
		if is = v.get(e.ID); is == nil {
			is = newEntry(e)
		}
		is.OrphanModify = true
	}
	is.ForgottenAt = ""
	v.write(is, k, m)
}

// target returns the entry to which a modify applies, nil if there is none or more than one.
func (v *view) target(e *identity) *entry {
	if e.ParentID != "" {
		if lineage := v.owner(e.ParentID); lineage != "" {
			return v.must(lineage)
		}
	}
	if same := v.facts(e.Subject, e.Predicate); len(same) == 1 {
		return same[0]
	}
	return nil
}

// forgets returns the entries to which a forget applies.
func (v *view) forgets(e *identity) []*entry {
	if e.ParentID != "" {
		is := v.entryOf(e.ParentID)
		if is == nil || !is.active() {
			return nil
		}
		return []*entry{is}
	}
	same := v.facts(e.Subject, e.Predicate)
	if e.Object == "" {
		return same
	}
	return slices.DeleteFunc(same, func(is *entry) bool { return is.Object != e.Object })
}

func (v *view) applyForget(e *event, k *commit, m *meta) (warning string) {
	targets := v.forgets(&e.identity)
	if len(targets) == 0 {
		return "forget_miss: event " + e.ID + " forgets what is not there"
	}
	for _, is := range targets {
		is.ForgottenAt = k.Timestamp
		v.write(is, k, m)
		v.setOwner(e.ID, is.Lineage)
	}
	return ""
}

// applyObserve counts an observation, which never overrides a fact.
func (v *view) applyObserve(e *event, k *commit, m *meta) {
	is := v.get(e.ID)
	if is == nil {
		is = newEntry(e)
	}
	is.ForgottenAt = ""
	is.Count++
	v.write(is, k, m)
}
