package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// What was forgotten is kept as rules without text, so that it is not recorded, imported or filled in again.

// tableForgotten holds what was forgotten. It keeps no text and no digest of one.
//
//	person(16) 'e' event id       forgottenRule with at alone
//	person(16) 'r' its own JSON   forgottenRule: events of a session, or of a range of time
//	person(16) 'r' all            forgottenRule: all events until then
//
// A person is the hash of run and persona, and of the agent where the request's scope has one. So what was forgotten
// stays so with another provider, and in the scope's next generation.
const tableForgotten state.Table = "forgotten"

const (
	forgottenEvent = 'e'
	forgottenRules = 'r'
)

// forgottenRule says which events were forgotten.
type forgottenRule struct {
	// At is when; RFC 3339. An event of the session that happened later is a new one.
	At      string `json:"at"`
	Session string `json:"session,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// All: every event that happened until then.
	All bool `json:"all,omitempty"`

	at, from, to time.Time
}

// ruleOf is the rule of a request by session or time; nil for one by ids.
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

// covers reports whether the rule is about an event. One whose time cannot be read is not.
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

// person is the first part of a key of tableForgotten. Without an agent it is for all of the person's, and with the run
// "", which no run is called, for all runs.
func person(runID, personaID string, agent ...string) []byte {
	key := (&scopeName{runID: runID, personaID: personaID}).key()
	if len(agent) > 0 {
		key = (&scopeName{provider: "agent", runID: runID, personaID: personaID, agentID: agent[0]}).key()
	}
	return key[:]
}

// noteForgotten keeps what a request forgets, before anything is removed.
func (o *operation) noteForgotten(ctx context.Context, r *abi.ForgetRequest) error {
	h := o.slot.host
	whose := person(r.Scope.RunID, r.Scope.PersonaID)
	if r.Scope.AgentID != "" {
		whose = person(r.Scope.RunID, r.Scope.PersonaID, r.Scope.AgentID)
	}
	now := h.now()
	var b state.Batch
	for _, id := range r.EventIDs {
		value, err := json.Marshal(&forgottenRule{At: now.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			return err
		}
		b.PutRecord(tableForgotten, append(append(slices.Clone(whose), forgottenEvent), id...), value)
	}
	rule, err := ruleOf(r, now)
	if err != nil {
		return err
	}
	if rule != nil {
		name, err := json.Marshal([]string{rule.Session, rule.From, rule.To})
		if err != nil {
			return err
		}
		value, err := json.Marshal(rule)
		if err != nil {
			return err
		}
		b.PutRecord(tableForgotten, append(append(slices.Clone(whose), forgottenRules), name...), value)
	}
	if b.Len() == 0 {
		return nil
	}
	b.PutRecord(tableShared, []byte(sharedForgetful), []byte{1})
	h.forgetful.Store(true)
	return o.keep(ctx, &b)
}

// readForgetful finds out whether anything was ever forgotten.
func (h *Host) readForgetful(ctx context.Context) error {
	any, err := h.store.Records(ctx, tableForgotten, nil, nil, 1)
	h.forgetful.Store(len(any) > 0)
	return stateError(err)
}

// wasForgotten reports whether an event was forgotten. Where nothing ever was it costs nothing.
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

// errForgotten is the answer to an event that was forgotten.
func errForgotten(op, eventID string) *abi.Error {
	e := abi.NewError(abi.CodeConflict, fmt.Sprintf("event_id: %.80q was forgotten: it is not recorded again", eventID)).
		WithReason("forgotten").WithHint("leave it out; something new to remember has an event_id of its own")
	e.Operation = op
	return e
}
