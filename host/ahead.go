package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Hosts that share a store ask it for the facts before each operation (agreed.go). What the operation needs next comes
// in the same round trip: for a retrieval what the ledger lacks, for a write the ledger's entries of its events, for
// both the space's commit count. If one process owns the store, a read costs no round trip, and each is made when its
// value is needed.
//
// These records belong to the generation that the host knows. If another host has begun a new one, they are not used.

// unseenSnapshot are a space's records of delivery.TableUnseen, as they were at a time.
type unseenSnapshot struct {
	space   state.Space
	records []state.KeyValue
	asOf    time.Time
}

// lookAhead is Slot.look for an operation without a lock. It also reads how often the state of the scope's present
// space was committed, and for a retrieval what the ledger lacks.
func (o *operation) lookAhead(ctx context.Context, sc *scopeState) (readOnly bool, space state.Space, commits []byte,
	err error) {
	h := o.slot.host
	if !h.fleet.Shared() {
		return false, space, nil, nil
	}
	space = sc.space(max(1, sc.generation.Load()))
	refs := append(factsOf(sc), fleet.Ref{Table: opstate.TableCommits, Key: space[:]})
	last := len(refs) - 1
	var list *fleet.List
	if o.Op == abi.OpRetrieve {
		list = &fleet.List{Table: delivery.TableUnseen, Prefix: space[:]}
	}
	asOf := h.now()
	values, unseen, err := h.fleet.ReadAhead(ctx, refs, list)
	if err != nil {
		return false, space, nil, stateError(err)
	}
	if list != nil && len(unseen) < state.DefaultLimit {
		o.unseen = &unseenSnapshot{space, unseen, asOf}
	}
	readOnly, err = o.slot.learn(o.provider, sc, values[:last])
	return readOnly, space, values[last], err
}

// completeness counts the outstanding and the lost events of the operation's scope.
func (o *operation) completeness(ctx context.Context) (*delivery.Completeness, error) {
	ledger, space := o.slot.host.ledger, o.state.Space()
	if u := o.unseen; u != nil && u.space == space {
		return ledger.CompletenessOf(ctx, space, u.records, u.asOf)
	}
	return ledger.Completeness(ctx, space)
}

// The indexes in what aheadOf names: the count of commits, and the entry of each event. The gap is the last.
const (
	aheadCommits = iota
	aheadEntries
)

// aheadOf names the records that a write of events needs of a scope's present space. The gap comes after the entries: a
// sweep, which needs no lock, removes an entry and notes the gap in one commit.
func (s *Slot) aheadOf(sc *scopeState, events []*abi.MemoryEvent) (space state.Space, refs []fleet.Ref) {
	if !s.host.fleet.Shared() {
		return space, nil
	}
	space = sc.space(max(1, sc.generation.Load()))
	refs = []fleet.Ref{{Table: opstate.TableCommits, Key: space[:]}}
	for _, e := range events {
		refs = append(refs, fleet.Ref{Table: delivery.TableEntries, Key: delivery.Key(space, e.EventID)})
	}
	return space, append(refs, fleet.Ref{Table: delivery.TableGaps, Key: space[:]})
}

// ahead returns what was read with the operation's lock; nil if nothing was read, and after the operation's first
// commit. Holders of the lock alone record events and count commits, so until then nothing of that has happened, or the
// commit is refused (fleet.BeginAhead).
func (o *operation) ahead() [][]byte {
	if o.lock == nil || o.aheadOf != o.state.Space() {
		return nil
	}
	return o.lock.Ahead()
}
