package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// A reset erases a scope's memory and leaves the archive as it is. What was archived before it is therefore not given
// to a follower, and a follower that has it resets the scope too.

// tableErased holds the last reset of each scope: number of the reset(8) -> erasure.
const tableErased state.Table = "erased"

// erasure is a reset of a scope while events are archived.
type erasure struct {
	RunID     string `json:"run_id"`
	PersonaID string `json:"persona_id"`
	AgentID   string `json:"agent_id,omitempty"`
	// UpTo is the number of the last archived event before the reset.
	UpTo int64 `json:"up_to"`

	number int64
}

func (e *erasure) scope() abi.MemoryScope {
	return abi.MemoryScope{RunID: e.RunID, PersonaID: e.PersonaID, AgentID: e.AgentID}
}

// covers reports whether an archived event was erased by the reset.
func (e *erasure) covers(number int64, event *abi.MemoryEvent) bool {
	return number <= e.UpTo && event.RunID == e.RunID && event.UserID == e.PersonaID &&
		(e.AgentID == "" || event.AgentID == e.AgentID)
}

// noteErased keeps that a scope is reset. The caller holds the scope's turn, so that no event of it is being archived.
func (h *Host) noteErased(ctx context.Context, scope abi.MemoryScope) error {
	if !h.archives() {
		return nil
	}
	h.erasing.Lock()
	defer h.erasing.Unlock()
	all, err := h.erasures(ctx)
	if err != nil {
		return err
	}
	var b state.Batch
	number := int64(1)
	for _, e := range all {
		number = e.number + 1
		if e.scope() == bareScope(scope) {
			b.DeleteRecord(tableErased, numberKey(e.number))
		}
	}
	a := &h.archive
	a.mu.Lock()
	upTo := a.next - 1
	a.mu.Unlock()
	value, err := json.Marshal(&erasure{RunID: scope.RunID, PersonaID: scope.PersonaID, AgentID: scope.AgentID,
		UpTo: upTo})
	if err != nil {
		return err
	}
	b.PutRecord(tableErased, numberKey(number), value)
	return h.commit(ctx, &b)
}

// bareScope is a scope without its namespace.
func bareScope(s abi.MemoryScope) abi.MemoryScope {
	s.BackendNamespace = ""
	return s
}

// erasures lists the last reset of each scope, in the order in which they were made.
func (h *Host) erasures(ctx context.Context) (list []erasure, err error) {
	err = h.eachRecord(ctx, tableErased, nil, func(r state.KeyValue) error {
		var e erasure
		if len(r.Key) != 8 || json.Unmarshal(r.Value, &e) != nil {
			return abi.NewError(abi.CodeUnavailable, "state: the record of a reset is damaged").WithReason("state")
		}
		e.number = numberOfKey(r.Key)
		list = append(list, e)
		return nil
	})
	return list, err
}

// wasErased reports whether a reset erased an archived event.
func wasErased(list []erasure, number int64, event *abi.MemoryEvent) bool {
	return slices.ContainsFunc(list, func(e erasure) bool { return e.covers(number, event) })
}
