package main

import (
	"github.com/memhost/memhost/abi/jsontext"
)

// entry is what a lineage of events comes to on a branch: a fact, or an observation.
type entry struct {
	identity
	// Lineage is the id of the root event; EventID that of the event that gives the present value.
	Lineage, EventID string
	Confidence       int64 // in thousandths
	Source, Evidence string
	CreatedAt        string // when the root event was first seen
	UpdatedAt        string // of the commit that last touched it
	ForgottenAt      string // "" while it is active
	CommitID         string
	ConversationID   string
	SourceEvents     []string // of the slot, the newest maxSources
	Revisions        int64
	Confirmations    int64
	Count            int64 // how often an observation was made
	OrphanModify     bool

	// line is what stands in the prompt.
	line string
	// at is where it stands in the view, fact its key in the index of facts; "" for none.
	at, fact string
}

// maxSources bounds the list of an entry's sources: an observation may be made without end. The commits have them all.
const maxSources = 16

func (e *entry) observed() bool { return e.Type == typeObserve }

// take gives the entry the value of an event.
func (e *entry) take(v *event) {
	e.identity, e.EventID = v.identity, v.ID
	e.Confidence, e.Source, e.Evidence = v.Confidence, v.Source, v.Evidence
}

// encode is the entry as an answer shows it.
func (e *entry) encode() []byte { return e.appendTo(make([]byte, 0, 700)) }

func (e *entry) appendTo(b []byte) []byte {
	b = appendField(b, '{', "id", e.EventID)
	b = appendField(b, ',', "lineage_id", e.Lineage)
	b = appendField(b, ',', "event_type", e.Type)
	b = appendField(b, ',', "subject", e.Subject)
	b = appendField(b, ',', "predicate", e.Predicate)
	b = appendField(b, ',', "object", e.Object)
	b = appendField(b, ',', "scope", e.Scope)
	b = appendField(b, ',', "topic", e.Topic)
	b = appendField(b, ',', "sensitivity", e.Sensitivity)
	text := func(name, value string) {
		if value != "" {
			b = appendField(b, ',', name, value)
		}
	}
	number := func(name string, n int64) {
		if n != 0 {
			b = jsontext.AppendInt(append(appendString(append(b, ','), name), ':'), n)
		}
	}
	text("parent_id", e.ParentID)
	b = appendShare(b, ",\"confidence\":", e.Confidence)
	text("source", e.Source)
	text("evidence", e.Evidence)
	text("created_at", e.CreatedAt)
	text("updated_at", e.UpdatedAt)
	text("forgotten_at", e.ForgottenAt)
	text("commit_id", e.CommitID)
	text("conversation_id", e.ConversationID)
	if len(e.SourceEvents) > 0 {
		b = append(b, `,"source_event_ids":`...)
		for i, id := range e.SourceEvents {
			b = appendString(append(b, "[,"[min(i, 1)]), id)
		}
		b = append(b, ']')
	}
	number("revisions", e.Revisions)
	number("confirmations", e.Confirmations)
	number("count", e.Count)
	if e.OrphanModify {
		b = append(b, `,"orphan_modify":true`...)
	}
	return append(b, '}')
}

// decodeEntry reads an entry that encode wrote.
func decodeEntry(data []byte) (*entry, error) {
	e := new(entry)
	return e, readObject(data, e.read)
}

func (e *entry) read(d *jsontext.Decoder, key string) (err error) {
	to := e.field(key)
	if to != nil {
		*to, err = d.Str()
		return err
	}
	switch key {
	case "id":
		to = &e.EventID
	case "lineage_id":
		to = &e.Lineage
	case "source":
		to = &e.Source
	case "evidence":
		to = &e.Evidence
	case "created_at":
		to = &e.CreatedAt
	case "updated_at":
		to = &e.UpdatedAt
	case "forgotten_at":
		to = &e.ForgottenAt
	case "commit_id":
		to = &e.CommitID
	case "conversation_id":
		to = &e.ConversationID
	case "confidence":
		e.Confidence, err = readShare(d)
		return err
	case "source_event_ids":
		e.SourceEvents, err = readTexts(d)
		return err
	case "revisions":
		e.Revisions, err = d.Int64()
		return err
	case "confirmations":
		e.Confirmations, err = d.Int64()
		return err
	case "count":
		e.Count, err = d.Int64()
		return err
	case "orphan_modify":
		e.OrphanModify, err = d.Bool()
		return err
	default:
		return d.Skip()
	}
	*to, err = d.Str()
	return err
}
