package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// Keys of tableModes: the slot's own mode, and that of a scope.
const (
	modeOfSlot  = "slot"
	modeOfScope = "scope:"
)

// loadMode reads the modes that an earlier process left.
func (s *Slot) loadMode(ctx context.Context) error {
	m := &readOnlyMode{scopes: map[scopeKey]modeRecord{}, inFlight: map[scopeKey]int64{}, ended: make(chan struct{})}
	m.slot.Since = s.host.stamp()
	s.mode = m
	err := s.host.eachRecord(ctx, tableModes, nil, func(r state.KeyValue) error {
		record, err := parseMode(r.Value)
		if err != nil {
			return err
		}
		switch key, scope := strings.CutPrefix(string(r.Key), modeOfScope); {
		case scope && len(key) == len(scopeKey{}):
			m.scopes[scopeKey([]byte(key))] = record
		case !scope:
			m.slot = record
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.slot.ReadOnly {
		s.host.logger.Warn("the slot is read-only, as it was left", "since", m.slot.Since, "reason", m.slot.Reason)
	}
	if n := len(m.scopes); n > 0 {
		s.host.logger.Warn("scopes are read-only, as they were left", "scopes", n)
	}
	return nil
}

// parseMode reads a stored mode; an absent one is not read-only.
func parseMode(stored []byte) (record modeRecord, err error) {
	if stored == nil {
		return record, nil
	}
	if err := json.Unmarshal(stored, &record); err != nil {
		return record, abi.WrapError(abi.CodeUnavailable, "state: the record of the mode is damaged",
			err).WithReason("state")
	}
	return record, nil
}

// modeKey is the key of a scope's mode.
func modeKey(sc *scopeState) []byte { return append([]byte(modeOfScope), sc.key[:]...) }

// SetMode implements Contract. The mode is stored in the data folder before it takes effect. Going read-only then waits
// for the writes under way, until ctx ends or Limits.ModeWait is over; the receipt counts those that still run, and
// names the scopes whose writes are not yet known to have arrived.
func (s *Slot) SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	return through(ctx, s, abi.OpSetMode, mode, func(ctx context.Context) (*abi.ModeReceipt, error) {
		receipt, err := s.setMode(ctx, mode)
		if err != nil {
			return nil, inOperation(abi.OpSetMode, err)
		}
		return receipt, nil
	})
}

func (s *Slot) setMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	if err := mode.Validate(); err != nil {
		return nil, err
	}
	v, err := s.use(abi.OpSetMode)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	var sc *scopeState
	if mode.Scope != nil {
		if sc, err = v.provider.scopeOf(*mode.Scope); err != nil {
			return nil, err
		}
	}
	s.mode.setting.Lock()
	defer s.mode.setting.Unlock()
	if _, err := s.look(ctx, v.provider, sc); err != nil {
		return nil, err
	}
	scopes := []*scopeState{sc}
	if sc != nil {
		followed, err := s.followedScopes(*mode.Scope)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, followed...)
	}
	for _, one := range scopes {
		if err := s.keepMode(ctx, one, mode); err != nil {
			return nil, err
		}
	}
	if mode.ReadOnly {
		within, cancel := context.WithTimeout(ctx, s.host.limits.ModeWait)
		defer cancel()
		for _, one := range scopes[1:] {
			s.mode.waitForWrites(within, one)
		}
		if err := s.waitForWrites(ctx, v.provider, sc); err != nil {
			return nil, err
		}
	}
	return s.modeReceipt(context.WithoutCancel(ctx), v.provider, sc)
}

// keepMode stores a mode and puts it into effect.
func (s *Slot) keepMode(ctx context.Context, sc *scopeState, mode *abi.AdapterMode) error {
	m, key := s.mode, []byte(modeOfSlot)
	m.mu.RLock()
	before := m.slot
	if sc != nil {
		before, key = m.scopes[sc.key], modeKey(sc)
	}
	m.mu.RUnlock()
	record := modeRecord{ReadOnly: mode.ReadOnly, Reason: mode.Reason, Since: s.host.stamp()}
	if record.ReadOnly == before.ReadOnly && before.Since != "" {
		record.Since = before.Since
	}
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var b state.Batch
	if sc != nil && !record.ReadOnly {
		b.DeleteRecord(tableModes, key)
	} else {
		b.PutRecord(tableModes, key, data)
	}
	if err := s.host.commit(ctx, &b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case sc == nil:
		m.slot = record
	case record.ReadOnly:
		m.scopes[sc.key] = record
	default:
		delete(m.scopes, sc.key)
	}
	return nil
}

// waitForWrites waits at most Limits.ModeWait for writes of the scope (of any, for nil) that are under way, here and at
// other hosts.
func (s *Slot) waitForWrites(ctx context.Context, p *Provider, sc *scopeState) error {
	ctx, cancel := context.WithTimeout(ctx, s.host.limits.ModeWait)
	defer cancel()
	s.mode.waitForWrites(ctx, sc)
	const pause = 50 * time.Millisecond
	for {
		n, err := s.elsewhere(context.WithoutCancel(ctx), p, sc)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// elsewhere counts the writes of the scope (of any, for nil) that are under way at other hosts. Turns that hosts left
// which have ended are taken from them: those hosts commit nothing more.
func (s *Slot) elsewhere(ctx context.Context, p *Provider, sc *scopeState) (n int64, err error) {
	held, err := s.host.fleet.Held(ctx)
	if err != nil {
		return 0, stateError(err)
	}
	for _, key := range held {
		if len(key) < len(scopeKey{}) || sc != nil && !bytes.HasPrefix(key, sc.key[:]) {
			continue
		}
		ended, err := s.endTurnElsewhere(ctx, p, key)
		if err != nil {
			return 0, err
		}
		if !ended {
			n++
		}
	}
	return n, nil
}

// waitForWrites returns when no write of the scope (of any, for nil) is under way, or ctx ends.
func (m *readOnlyMode) waitForWrites(ctx context.Context, sc *scopeState) {
	for {
		n, ended := m.underWay(sc)
		if n == 0 {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// Mode implements Contract.
func (s *Slot) Mode(ctx context.Context) (*abi.ModeReceipt, error) {
	return withServing(ctx, s, func(ctx context.Context) (*abi.ModeReceipt, error) {
		v, err := s.use(abi.OpSetMode)
		if err != nil {
			return nil, err
		}
		defer v.provider.release()
		if _, err := s.look(ctx, v.provider, nil); err != nil {
			return nil, inOperation(abi.OpSetMode, err)
		}
		return s.modeReceipt(ctx, v.provider, nil)
	})
}

// modeReceipt is the present mode of a scope, or of the slot.
func (s *Slot) modeReceipt(ctx context.Context, p *Provider, sc *scopeState) (*abi.ModeReceipt, error) {
	waiting, err := s.host.notReady(ctx, p, sc)
	if err != nil {
		return nil, err
	}
	others, err := s.elsewhere(ctx, p, sc)
	if err != nil {
		return nil, err
	}
	n, _ := s.mode.underWay(sc)
	n += others
	r := s.presentMode(p, sc)
	r.InFlight, r.NotReady = n, waiting
	if !r.ReadOnly {
		return r, nil
	}
	late, err := s.host.lateWarning(ctx, sc, r.Since)
	if late != "" {
		r.Warnings = append(r.Warnings, late)
	}
	return r, err
}

// presentMode is the mode of a scope, or of the slot, without the writes.
func (s *Slot) presentMode(p *Provider, sc *scopeState) *abi.ModeReceipt {
	s.mode.mu.RLock()
	defer s.mode.mu.RUnlock()
	r := &abi.ModeReceipt{ReadOnly: s.mode.slot.ReadOnly, Since: s.mode.slot.Since, EnforcedBy: "host"}
	if !r.ReadOnly {
		r.Warnings = p.config.Warnings()
	}
	if sc != nil {
		scope := sc.memoryScope()
		r.Scope = &scope
		if own, ok := s.mode.scopes[sc.key]; ok && !r.ReadOnly {
			r.ReadOnly, r.Since, r.Warnings = true, own.Since, nil
		}
	}
	return r
}

// notReady lists the scopes of a provider, or the one asked for, with writes that are not known to have arrived.
func (h *Host) notReady(ctx context.Context, p *Provider, only *scopeState) ([]abi.MemoryScope, error) {
	keys := map[scopeKey]bool{}
	err := h.eachRecord(ctx, tableUnseen, nil, func(r state.KeyValue) error {
		if key, _, ok := parseListEntry(r.Value); ok {
			keys[key] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := []abi.MemoryScope{}
	for key := range keys {
		if only != nil && key != only.key {
			continue
		}
		record, err := h.scopeRecordOf(ctx, key)
		if err != nil {
			return nil, err
		}
		if record == nil || !p.owns(record) {
			continue
		}
		list = append(list, record.memoryScope())
	}
	slices.SortFunc(list, func(a, b abi.MemoryScope) int {
		return cmp.Or(strings.Compare(a.RunID, b.RunID), strings.Compare(a.PersonaID, b.PersonaID),
			strings.Compare(a.AgentID, b.AgentID))
	})
	return list, nil
}
