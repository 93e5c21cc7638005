package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/state"
)

// What was forgotten is stored as rules without text, so that it is not recorded, imported or backfilled again.

// tableForgotten holds what was forgotten. It contains neither texts nor digests of texts.
//
//	person(16) 'e' event id       forgottenRule with only at
//	person(16) 'r' its own JSON   forgottenRule: events of a session, or of a time range
//	person(16) 'r' all            forgottenRule: all events up to at
//
// A person is the hash of run and persona, and of the agent if the request's scope has one. It does not depend on
// provider or generation, so forgotten events stay forgotten after a swap or a reset.
const tableForgotten state.Table = "forgotten"

const (
	forgottenEvent = 'e'
	forgottenRules = 'r'
)

// forgottenRule says which events were forgotten.
type forgottenRule struct {
	// At is the time of forgetting; RFC 3339. Later events of the session are not covered.
	At      string `json:"at"`
	Session string `json:"session,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// All covers every event that happened before At.
	All bool `json:"all,omitempty"`
	// By is the key of the rule by which the archive found this event; empty for an event that a request named. It lets
	// the rule be applied to a provider after the archive has dropped the event.
	By string `json:"by,omitempty"`

	at, from, to time.Time
}

// ruleOf returns the rule of a request by session or time; nil for a request by ids.
func ruleOf(r *abi.ForgetRequest, now time.Time) (*forgottenRule, error) {
	if r.SessionID == "" && r.From == "" {
		return nil, nil
	}
	rule := &forgottenRule{At: now.UTC().Format(time.RFC3339Nano), Session: r.SessionID, From: r.From, To: r.To}
	return rule, rule.parse()
}

// parse reads the times.
func (r *forgottenRule) parse() (err error) {
	if r.at, err = abi.ParseTime(r.At); err != nil || r.From == "" {
		return err
	}
	if r.from, err = abi.ParseTime(r.From); err == nil {
		r.to, err = abi.ParseTime(r.To)
	}
	return err
}

// covers reports whether the rule applies to an event. It does not apply to an event whose time cannot be parsed.
func (r *forgottenRule) covers(e *abi.MemoryEvent) bool {
	at, err := abi.ParseTime(e.Timestamp)
	switch {
	case err != nil:
		return false
	case r.All:
		return !at.After(r.at)
	case r.Session != "":
		return e.SessionID == r.Session && !at.After(r.at)
	}
	return r.From != "" && !at.Before(r.from) && !at.After(r.to)
}

// person is the first part of a key of tableForgotten. Without an agent it covers all agents of the person. The run id
// "", which no run has, covers all runs.
func person(runID, personaID string, agent ...string) []byte {
	key := (&scopeName{runID: runID, personaID: personaID}).key()
	if len(agent) > 0 {
		key = (&scopeName{provider: "agent", runID: runID, personaID: personaID, agentID: agent[0]}).key()
	}
	return key[:]
}

// personOfScope returns the person of a request's scope.
func personOfScope(scope abi.MemoryScope) []byte {
	if scope.AgentID != "" {
		return person(scope.RunID, scope.PersonaID, scope.AgentID)
	}
	return person(scope.RunID, scope.PersonaID)
}

// key is the rule's part of its key.
func (r *forgottenRule) key() string {
	name, _ := json.Marshal([]string{r.Session, r.From, r.To}) // strings can always be marshaled
	return string(name)
}

// noteForgotten stores what a request forgets, before anything is removed.
func (o *operation) noteForgotten(ctx context.Context, r *abi.ForgetRequest) error {
	h := o.slot.host
	now := h.now()
	var b state.Batch
	err := putForgotten(&b, r.Scope, r.EventIDs, &forgottenRule{At: now.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return err
	}
	rule, err := ruleOf(r, now)
	if err != nil {
		return err
	}
	if rule != nil {
		value, err := json.Marshal(rule)
		if err != nil {
			return err
		}
		b.PutRecord(tableForgotten, append(append(personOfScope(r.Scope), forgottenRules), rule.key()...), value)
	}
	if b.Len() == 0 {
		return nil
	}
	h.noteForgetful(&b)
	return o.keep(ctx, &b)
}

// noteForgetful records in a batch that something was forgotten.
func (h *Host) noteForgetful(b *state.Batch) {
	b.PutRecord(tableShared, []byte(sharedForgetful), []byte{1})
	h.forgetful.Store(true)
}

// putForgotten records in a batch that events of a scope are forgotten.
func putForgotten(b *state.Batch, scope abi.MemoryScope, ids []string, rule *forgottenRule) error {
	value, err := json.Marshal(rule)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b.PutRecord(tableForgotten, append(append(personOfScope(scope), forgottenEvent), id...), value)
	}
	return nil
}

// forgottenIDs returns the events that a request forgets: those that it names, and those that its rule finds in the
// archive or found there earlier.
func (h *Host) forgottenIDs(ctx context.Context, r *abi.ForgetRequest) ([]string, error) {
	if len(r.EventIDs) > 0 {
		return slices.Clone(r.EventIDs), nil
	}
	prefix := append(personOfScope(r.Scope), forgottenEvent)
	key := (&forgottenRule{Session: r.SessionID, From: r.From, To: r.To}).key()
	var ids []string
	err := h.eachRecord(ctx, tableForgotten, prefix, func(kv state.KeyValue) error {
		var found forgottenRule
		if json.Unmarshal(kv.Value, &found) == nil && found.By == key {
			ids = append(ids, string(kv.Key[len(prefix):]))
		}
		return nil
	})
	return ids, err
}

// readForgetful reads whether anything was ever forgotten.
func (h *Host) readForgetful(ctx context.Context) error {
	any, err := h.store.Records(ctx, tableForgotten, nil, nil, 1)
	h.forgetful.Store(len(any) > 0)
	return stateError(err)
}

// forgetStored removes matching events of a person from the archive and from the events given for a backfill, and
// returns them. note, which may be nil, is called before they are removed; if it fails, nothing is removed.
func (h *Host) forgetStored(ctx context.Context, personID string, matches func(*abi.MemoryEvent) bool,
	note func([]*abi.MemoryEvent) error) ([]*abi.MemoryEvent, error) {
	gone, err := h.archive.Forget(ctx, personID, matches, note)
	given, failed := h.given.Forget(ctx, personID, matches, note)
	return append(gone, given...), archive.Graver(err, failed) // damage in one does not keep the other from being cleared
}

// wasForgotten reports whether an event was forgotten. It costs nothing until something is forgotten.
func (h *Host) wasForgotten(ctx context.Context, e *abi.MemoryEvent) (bool, error) {
	if !h.forgetful.Load() {
		return false, nil
	}
	for _, whose := range [][]byte{person(e.RunID, e.UserID), person(e.RunID, e.UserID, e.AgentID),
		person("", e.UserID)} {
		stored, err := h.store.Record(ctx, tableForgotten, append(append(slices.Clone(whose), forgottenEvent),
			e.EventID...))
		if err != nil || stored != nil {
			return stored != nil, stateError(err)
		}
		covered := false
		err = h.eachRecord(ctx, tableForgotten, append(slices.Clone(whose), forgottenRules), func(r state.KeyValue) error {
			var rule forgottenRule
			if json.Unmarshal(r.Value, &rule) != nil || rule.parse() != nil {
				return abi.NewError(abi.CodeUnavailable, "state: a record of what was forgotten is damaged").
					WithReason("state")
			}
			covered = covered || rule.covers(e)
			return nil
		})
		if err != nil || covered {
			return covered, err
		}
	}
	return false, nil
}

// errForgotten rejects an event that was forgotten.
func errForgotten(op, eventID string) *abi.Error {
	e := abi.NewError(abi.CodeConflict, fmt.Sprintf("event_id: %.80q was forgotten: it is not recorded again", eventID)).
		WithReason("forgotten").WithHint("leave it out; something new to remember has an event_id of its own")
	e.Operation = op
	return e
}
