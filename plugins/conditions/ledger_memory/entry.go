package main

import "github.com/memhost/memhost/plugins/conditions/internal/object"

// entry is the current state of a lineage of events on a branch: a fact, or an observation.
type entry struct {
	identity
	// Lineage is the id of the root event; EventID that of the event with the current value.
	Lineage, EventID string
	Confidence       share
	Source, Evidence string
	CreatedAt        string // when the root event was first seen
	UpdatedAt        string // time of the latest commit that changed it
	ForgottenAt      string // "" while it is active
	CommitID         string
	ConversationID   string
	SourceEvents     []string // events of the slot, the newest maxSources
	Revisions        int64
	Confirmations    int64
	Count            int64 // how often an observation was made
	OrphanModify     bool

	// at is its position in the view, fact its key in the index of facts; "" for none.
	at, fact string
}

// maxSources is the maximum number of an entry's sources, since an observation may repeat without limit. The commits
// list them all.
const maxSources = 16

func (e *entry) observed() bool { return e.Type == typeObserve }

func (e *entry) active() bool { return e.ForgottenAt == "" }

// take sets the entry's value from an event.
func (e *entry) take(v *event) {
	e.identity, e.EventID = v.identity, v.ID
	e.Confidence, e.Source, e.Evidence = v.Confidence, v.Source, v.Evidence
}

func (e *entry) members() []object.Member {
	list := append([]object.Member{object.Always("id", &e.EventID), object.Always("lineage_id", &e.Lineage)},
		e.identity.members()...)
	return append(list, object.Optional("parent_id", &e.ParentID), object.Always("confidence", &e.Confidence),
		object.Optional("source", &e.Source),
		object.Optional("evidence", &e.Evidence), object.Optional("created_at", &e.CreatedAt),
		object.Optional("updated_at",
			&e.UpdatedAt),
		object.Optional("forgotten_at", &e.ForgottenAt), object.Optional("commit_id",
			&e.CommitID), object.Optional("conversation_id", &e.ConversationID),
		object.Optional("source_event_ids", &e.SourceEvents), object.Optional("revisions",
			&e.Revisions), object.Optional("confirmations", &e.Confirmations),
		object.Optional("count", &e.Count), object.Optional("orphan_modify", &e.OrphanModify))
}

// encode returns the entry as shown in an answer.
func (e *entry) encode() []byte { return object.Encode(e.members()...) }

// decodeEntry reads an entry that encode wrote.
func decodeEntry(data []byte) (*entry, error) {
	e := new(entry)
	return e, object.DecodeStrictly(data, e.members()...)
}

// mayShow reports whether an entry may be shown at all.
func (l *ledger) mayShow(e *entry) bool {
	return e.Sensitivity != confidential || l.s.exposeConfidential
}
