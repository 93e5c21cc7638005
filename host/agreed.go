package host

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Hosts that share a store agree on facts: the mode, the provider, and each scope's generation. Every operation starts
// by reading what other hosts have changed. If one process owns the store, Look reads nothing, because this process
// already knows the facts.

// tableShared holds facts about the slot: sharedForgetful -> 1 byte, sharedServing -> servedRecord.
const tableShared state.Table = "shared"

// sharedForgetful is 1 after anything has been forgotten, else 0.
const sharedForgetful = "forgetful"

// The indexes of the facts that factsOf returns.
const (
	factMode = iota
	factForgetful
	factServing
	factScopeMode // from here on, facts about one scope
	factScope
)

// factsOf returns the records that every operation depends on and, for a scope, those that its operations depend on.
func factsOf(sc *scopeState) []fleet.Ref {
	refs := []fleet.Ref{{Table: tableModes, Key: []byte(modeOfSlot)}, {Table: tableShared, Key: []byte(sharedForgetful)},
		servingRef()}
	if sc == nil {
		return refs
	}
	return append(refs, fleet.Ref{Table: tableModes, Key: modeKey(sc)}, fleet.Ref{Table: tableScopes, Key: sc.key[:]})
}

// ensureFacts writes the facts that all scopes share, unless they exist.
func (s *Slot) ensureFacts(ctx context.Context) error {
	mode, err := json.Marshal(s.wall.Mode(wall.Slot))
	if err != nil {
		return err
	}
	forgetful := []byte{0}
	if s.host.forgetful.Load() {
		forgetful[0] = 1
	}
	refs := factsOf(nil)
	if err := s.host.fleet.Ensure(ctx, refs[factMode], mode); err != nil {
		return stateError(err)
	}
	return stateError(s.host.fleet.Ensure(ctx, refs[factForgetful], forgetful))
}

// readMode reads what other hosts may have changed about a scope (or about the slot if sc is nil) before an operation
// of a provider.
//
// Errors: unavailable (provider_changed) if another provider serves; those of the store.
func (s *Slot) readMode(ctx context.Context, p *Provider, sc *scopeState) (readOnly bool, err error) {
	values, err := s.host.fleet.Read(ctx, factsOf(sc)...)
	if err != nil || values == nil {
		return false, stateError(err)
	}
	return s.learn(p, sc, values)
}

// learn takes over the facts that were read, and reports whether they make the scope (or the slot if sc is nil)
// read-only.
func (s *Slot) learn(p *Provider, sc *scopeState, values [][]byte) (readOnly bool, err error) {
	if values == nil {
		return false, nil
	}
	if p.served != nil && !bytes.Equal(p.served, values[factServing]) { // a provider on trial serves no callers
		return false, errProviderChanged()
	}
	if bytes.Equal(values[factForgetful], []byte{1}) {
		s.host.forgetful.Store(true)
	}
	slot, err := parseMode(values[factMode])
	if err != nil {
		return false, err
	}
	modes := map[wall.Scope]wall.Mode{wall.Slot: slot}
	if sc != nil {
		scope, err := parseMode(values[factScopeMode])
		if err != nil {
			return false, err
		}
		modes[sc.wallKey()] = scope
		generation := int64(1)
		if values[factScope] != nil {
			record, err := parseScope(values[factScope])
			if err != nil {
				return false, err
			}
			generation = record.Generation
		}
		sc.raise(generation)
	}
	s.wall.Set(modes)
	return slot.ReadOnly || modes[sc.wallKey()].ReadOnly, nil
}

// raise records a generation that was read, unless a newer one is known. Generations only grow.
func (s *scopeState) raise(generation int64) {
	for {
		known := s.generation.Load()
		if known >= generation || s.generation.CompareAndSwap(known, generation) {
			return
		}
	}
}

// learnUnderLock is learn for a write that holds the scope's lock in this process. It also learns the scope's record.
func (s *Slot) learnUnderLock(p *Provider, sc *scopeState, values [][]byte) (readOnly bool, err error) {
	if values == nil {
		return false, nil
	}
	record := new(scopeRecord)
	if stored := values[factScope]; stored != nil {
		if record, err = parseScope(stored); err != nil {
			return false, err
		}
	}
	sc.reading.Lock()
	sc.record.NativeScope, sc.record.Since, sc.record.Erasing = record.NativeScope, record.Since, record.Erasing
	sc.reading.Unlock()
	return s.learn(p, sc, values)
}
