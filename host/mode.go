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
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/internal/state"
)

// Keys of tableModes: the slot's own mode, and a scope's.
const (
	modeOfSlot  = "slot"
	modeOfScope = "scope:"
)

// loadMode builds the wall from the modes that an earlier process stored.
func (s *Slot) loadMode(ctx context.Context) error {
	modes := map[wall.Scope]wall.Mode{wall.Slot: {Since: s.host.stamp()}}
	err := s.host.eachRecord(ctx, tableModes, nil, func(r state.KeyValue) error {
		mode, err := parseMode(r.Value)
		if err != nil {
			return err
		}
		switch key, scope := strings.CutPrefix(string(r.Key), modeOfScope); {
		case scope && len(key) == len(wall.Scope{}):
			modes[wall.Scope([]byte(key))] = mode
		case !scope:
			modes[wall.Slot] = mode
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.wall = wall.New(modes)
	if m := modes[wall.Slot]; m.ReadOnly {
		s.host.logger.Warn("the slot is read-only, as it was left", "since", m.Since, "reason", m.Reason)
	}
	if n := s.wall.ReadOnlyScopes(); n > 0 {
		s.host.logger.Warn("scopes are read-only, as they were left", "scopes", n)
	}
	return nil
}

// parseMode reads a stored mode. Without one, the scope is not read-only.
func parseMode(stored []byte) (mode wall.Mode, err error) {
	if stored == nil {
		return mode, nil
	}
	if err := json.Unmarshal(stored, &mode); err != nil {
		return mode, abi.WrapError(abi.CodeUnavailable, "state: the record of the mode is damaged",
			err).WithReason("state")
	}
	return mode, nil
}

// modeKey is the key of a scope's mode.
func modeKey(sc *scopeState) []byte { return append([]byte(modeOfScope), sc.key[:]...) }

// SetMode implements Contract. The mode is stored in the data folder before it takes effect. Turning read-only on then
// waits for operations that were admitted before, until ctx ends or Limits.ModeWait is over. The receipt counts those
// that still run, and names the scopes whose writes are not yet known to have arrived.
func (s *Slot) SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	return perform(ctx, s, abi.OpSetMode, mode, func(ctx context.Context) (*abi.ModeReceipt, error) {
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
	v, err := s.take(abi.OpSetMode)
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
	s.settingMode.Lock()
	defer s.settingMode.Unlock()
	if _, err := s.readMode(ctx, v.provider, sc); err != nil {
		return nil, err
	}
	scopes := []*scopeState{sc}
	if sc != nil {
		followed, err := s.followers.scopes(*mode.Scope)
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
		if err := s.waitForPermits(ctx, v.provider, scopes); err != nil {
			return nil, err
		}
	}
	receipt, err := s.modeReceipt(context.WithoutCancel(ctx), v.provider, scopes)
	if err == nil && mode.ReadOnly && receipt.InFlight > 0 {
		receipt.Complete = new(bool)
	}
	return receipt, err
}

// keepMode stores a mode and applies it.
func (s *Slot) keepMode(ctx context.Context, sc *scopeState, mode *abi.AdapterMode) error {
	key := []byte(modeOfSlot)
	if sc != nil {
		key = modeKey(sc)
	}
	record := wall.Mode{ReadOnly: mode.ReadOnly, Reason: mode.Reason, Since: s.host.stamp()}
	before := s.wall.Mode(sc.wallKey())
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
	s.wall.Set(map[wall.Scope]wall.Mode{sc.wallKey(): record})
	return nil
}

// wallKeys are the keys of scopes at the wall.
func wallKeys(scopes []*scopeState) []wall.Scope {
	keys := make([]wall.Scope, len(scopes))
	for i, sc := range scopes {
		keys[i] = sc.wallKey()
	}
	return keys
}

// waitForPermits waits at most Limits.ModeWait until no admitted operation of the scopes is running, here or at other
// hosts. A nil scope means all.
func (s *Slot) waitForPermits(ctx context.Context, p *Provider, scopes []*scopeState) error {
	ctx, cancel := context.WithTimeout(ctx, s.host.limits.ModeWait)
	defer cancel()
	s.wall.Wait(ctx, wallKeys(scopes)...)
	const pause = 50 * time.Millisecond
	for {
		n, err := s.elsewhere(context.WithoutCancel(ctx), p, scopes[0])
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

// elsewhere counts the admitted operations of a scope (nil means all) that run at other hosts. Locks of hosts that have
// ended are revoked: those hosts commit nothing more.
func (s *Slot) elsewhere(ctx context.Context, p *Provider, sc *scopeState) (n int64, err error) {
	held, err := s.host.fleet.Held(ctx)
	if err != nil {
		return 0, stateError(err)
	}
	for _, key := range held {
		if len(key) < len(scopeKey{}) || sc != nil && !bytes.HasPrefix(key, sc.key[:]) {
			continue
		}
		ended, err := s.takeOver(ctx, p, key)
		if err != nil {
			return 0, err
		}
		if !ended {
			n++
		}
	}
	return n, nil
}

// Mode implements Contract.
func (s *Slot) Mode(ctx context.Context) (*abi.ModeReceipt, error) {
	return route(ctx, s, func(ctx context.Context) (*abi.ModeReceipt, error) {
		v, err := s.take(abi.OpSetMode)
		if err != nil {
			return nil, err
		}
		defer v.provider.release()
		if _, err := s.readMode(ctx, v.provider, nil); err != nil {
			return nil, inOperation(abi.OpSetMode, err)
		}
		return s.modeReceipt(ctx, v.provider, []*scopeState{nil})
	})
}

// modeReceipt is the present mode of a scope, or of the slot if it is nil. Further scopes belong to followers: their
// running operations count, too.
func (s *Slot) modeReceipt(ctx context.Context, p *Provider, scopes []*scopeState) (*abi.ModeReceipt, error) {
	sc := scopes[0]
	waiting, err := s.host.notReady(ctx, p, sc)
	if err != nil {
		return nil, err
	}
	others, err := s.elsewhere(ctx, p, sc)
	if err != nil {
		return nil, err
	}
	r := s.presentMode(p, sc)
	r.InFlight, r.NotReady = s.wall.InFlight(wallKeys(scopes)...)+others, waiting
	if !r.ReadOnly {
		return r, nil
	}
	late, err := s.host.lateWarning(ctx, sc, r.Since)
	if late != "" {
		r.Warnings = append(r.Warnings, late)
	}
	return r, err
}

// presentMode is the mode of a scope or of the slot, without the count of running operations.
func (s *Slot) presentMode(p *Provider, sc *scopeState) *abi.ModeReceipt {
	mode := s.wall.Mode(wall.Slot)
	r := &abi.ModeReceipt{ReadOnly: mode.ReadOnly, Since: mode.Since, EnforcedBy: "host"}
	if !r.ReadOnly {
		r.Warnings = p.config.Warnings()
	}
	if sc != nil {
		scope := sc.memoryScope()
		r.Scope = &scope
		if own := s.wall.Mode(sc.wallKey()); own.ReadOnly && !r.ReadOnly {
			r.ReadOnly, r.Since, r.Warnings = true, own.Since, nil
		}
	}
	return r
}

// notReady lists the scopes of a provider (or only the given one) with writes that are not known to have arrived.
func (h *Host) notReady(ctx context.Context, p *Provider, only *scopeState) ([]abi.MemoryScope, error) {
	keys := map[scopeKey]bool{}
	err := h.ledger.EachOutstanding(ctx, func(_ []byte, scope delivery.Scope, _ delivery.Outstanding) error {
		keys[scope] = true
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
