package archive

import (
	"context"
	"encoding/json"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// A reset erases a scope's memory and removes its events from the archive. A follower that has these events resets the
// scope too, and skips any events from before the reset that may be left.

// tableErased holds the last reset of each scope: number of the reset(8) -> Erasure, JSON.
const tableErased state.Table = "erased"

// Erasure is a reset of a scope.
type Erasure struct {
	RunID     string `json:"run_id"`
	PersonaID string `json:"persona_id"`
	AgentID   string `json:"agent_id,omitempty"`
	// UpTo is the number of the last archived event before the reset.
	UpTo int64 `json:"up_to"`

	// Number numbers the resets.
	Number int64 `json:"-"`
}

// Scope is the scope that was reset.
func (e *Erasure) Scope() abi.MemoryScope {
	return abi.MemoryScope{RunID: e.RunID, PersonaID: e.PersonaID, AgentID: e.AgentID}
}

// Covers reports whether an archived event was erased by the reset.
func (e *Erasure) Covers(number int64, event *abi.MemoryEvent) bool {
	return number <= e.UpTo && event.RunID == e.RunID && event.UserID == e.PersonaID &&
		(e.AgentID == "" || event.AgentID == e.AgentID)
}

// NoteErased records that a scope is reset. The caller holds the scope's write lock, so that none of its events is
// being archived.
func (a *Archive) NoteErased(ctx context.Context, scope abi.MemoryScope) error {
	a.erasing.Lock()
	defer a.erasing.Unlock()
	all, err := a.Erasures(ctx)
	if err != nil {
		return err
	}
	var b state.Batch
	number := int64(1)
	for _, e := range all {
		number = e.Number + 1
		if e.RunID == scope.RunID && e.PersonaID == scope.PersonaID && e.AgentID == scope.AgentID {
			b.DeleteRecord(tableErased, numberKey(e.Number))
		}
	}
	a.mu.Lock()
	upTo := a.next - 1
	a.mu.Unlock()
	value, err := json.Marshal(&Erasure{RunID: scope.RunID, PersonaID: scope.PersonaID, AgentID: scope.AgentID,
		UpTo: upTo})
	if err != nil {
		return err
	}
	b.PutRecord(tableErased, numberKey(number), value)
	_, err = a.Store.Commit(context.WithoutCancel(ctx), &b)
	return state.ContractError(err)
}

// Erasures lists the last reset of each scope, in the order in which they were made.
func (a *Archive) Erasures(ctx context.Context) (list []Erasure, err error) {
	err = state.EachRecord(ctx, a.Store, tableErased, nil, func(r state.KeyValue) error {
		var e Erasure
		if len(r.Key) != 8 || json.Unmarshal(r.Value, &e) != nil {
			return abi.NewError(abi.CodeUnavailable, "state: the record of a reset is damaged").WithReason("state")
		}
		e.Number = numberOfKey(r.Key)
		list = append(list, e)
		return nil
	})
	return list, err
}
