package host

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// modeState is the read-only wall of a slot. It is the host's own: no guest can raise, lower or pass it.
type modeState struct {
	mu   sync.RWMutex
	slot modeRecord
	// scopes are read-only by themselves.
	scopes map[scopeKey]modeRecord
	// inFlight counts the writes under way, of each scope that has any. ended is closed and made new when one ends.
	inFlight map[scopeKey]int64
	ended    chan struct{}
	// setting is held by the one SetMode that runs.
	setting sync.Mutex
}

// modeRecord is what the store keeps of a mode, so that it survives a restart.
type modeRecord struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	Since    string `json:"since"`
}

// Keys of tableModes: the slot's own mode, and that of a scope.
const (
	modeOfSlot  = "slot"
	modeOfScope = "scope:"
)

// loadMode reads the modes that an earlier process left.
func (s *Slot) loadMode(ctx context.Context) error {
	m := &s.mode
	m.slot.Since = s.host.stamp()
	m.scopes, m.inFlight, m.ended = map[scopeKey]modeRecord{}, map[scopeKey]int64{}, make(chan struct{})
	err := s.host.eachRecord(ctx, tableModes, nil, func(r state.KeyValue) error {
		var record modeRecord
		if err := json.Unmarshal(r.Value, &record); err != nil {
			return abi.WrapError(abi.CodeUnavailable, "state: the record of the mode is damaged", err).WithReason("state")
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

// isReadOnly tells whether a scope may not be written now. Nil asks for the slot as a whole.
func (m *modeState) isReadOnly(sc *scopeState) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.slot.ReadOnly || sc != nil && m.scopes[sc.key].ReadOnly
}

// refusal is the error for what a read-only mode keeps from being done, of the slot or of one scope.
func (m *modeState) refusal(words string) *abi.Error {
	if m.isReadOnly(nil) {
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only: "+words).WithHint("set the mode first: memhost mode write")
	}
	return abi.NewError(abi.CodeReadOnly, "the scope is read-only: "+words).WithHint("set its mode first: memhost mode write, with the scope's --run and --user")
}

// sessionPattern turns patterns with * and ? into one expression; nil when there are none.
func sessionPattern(patterns []string) *regexp.Regexp {
	if len(patterns) == 0 {
		return nil
	}
	alternatives := make([]string, len(patterns))
	for i, p := range patterns {
		quoted := regexp.QuoteMeta(p)
		alternatives[i] = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
	}
	return regexp.MustCompile(`(?s)^(?:` + strings.Join(alternatives, "|") + `)$`)
}

// testSession tells whether the configuration makes a session read-only by itself.
func (p *Provider) testSession(session string) bool {
	return p.testSessions != nil && p.testSessions.MatchString(session)
}

// beginWrite counts a write of a scope in, unless it is read-only. A write that began goes on when the mode changes: endWrite follows.
func (m *modeState) beginWrite(scope scopeKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slot.ReadOnly || m.scopes[scope].ReadOnly {
		return false
	}
	m.inFlight[scope]++
	return true
}

func (m *modeState) endWrite(scope scopeKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inFlight[scope]--; m.inFlight[scope] == 0 {
		delete(m.inFlight, scope)
	}
	close(m.ended)
	m.ended = make(chan struct{})
}

// underWay counts the writes of a scope that have not ended, of all scopes for nil, and returns what is closed when one ends.
func (m *modeState) underWay(sc *scopeState) (int64, <-chan struct{}) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if sc != nil {
		return m.inFlight[sc.key], m.ended
	}
	var all int64
	for _, n := range m.inFlight {
		all += n
	}
	return all, m.ended
}

// setMode is SetMode. The mode is kept in the data folder before it holds. Going read-only then waits for the writes under way, until ctx ends or
// Limits.ModeWait is over; the receipt counts those that still run, and names the scopes whose writes are not yet known to have arrived.
func (s *Slot) setMode(ctx context.Context, mode *abi.AdapterMode) (_ *abi.ModeReceipt, err error) {
	defer func() {
		if err != nil {
			err = inOperation(abi.OpSetMode, err)
		}
	}()
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
	if err := s.keepMode(ctx, sc, mode); err != nil {
		return nil, err
	}
	if mode.ReadOnly {
		s.mode.waitForWrites(ctx, sc, s.host.limits.ModeWait)
	}
	return s.modeReceipt(context.WithoutCancel(ctx), v.provider, sc)
}

// keepMode stores a mode and lets it hold.
func (s *Slot) keepMode(ctx context.Context, sc *scopeState, mode *abi.AdapterMode) error {
	m, key := &s.mode, []byte(modeOfSlot)
	m.mu.RLock()
	before := m.slot
	if sc != nil {
		before, key = m.scopes[sc.key], append([]byte(modeOfScope), sc.key[:]...)
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
	if b.PutRecord(tableModes, key, data); sc != nil && !record.ReadOnly {
		b = state.Batch{}
		b.DeleteRecord(tableModes, key)
	}
	if _, err := s.host.store.Commit(ctx, &b); err != nil {
		return stateError(err)
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

// waitForWrites returns when no write of the scope (of any, for nil) is under way, or the time is over.
func (m *modeState) waitForWrites(ctx context.Context, sc *scopeState, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
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
	v, err := s.use(abi.OpSetMode)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.modeReceipt(ctx, v.provider, nil)
}

// modeReceipt tells how the wall stands for a scope, or for the slot.
func (s *Slot) modeReceipt(ctx context.Context, p *Provider, sc *scopeState) (*abi.ModeReceipt, error) {
	waiting, err := s.host.notReady(ctx, p, sc)
	if err != nil {
		return nil, err
	}
	n, _ := s.mode.underWay(sc)
	s.mode.mu.RLock()
	defer s.mode.mu.RUnlock()
	r := &abi.ModeReceipt{ReadOnly: s.mode.slot.ReadOnly, Since: s.mode.slot.Since, EnforcedBy: "host", InFlight: n, NotReady: waiting}
	if sc != nil {
		scope := sc.memoryScope()
		r.Scope = &scope
		if own, ok := s.mode.scopes[sc.key]; ok && !r.ReadOnly {
			r.ReadOnly, r.Since = true, own.Since
		}
	}
	return r, nil
}

// notReady lists the scopes of a provider, or the one asked for, with writes that are not known to have arrived.
func (h *Host) notReady(ctx context.Context, p *Provider, only *scopeState) ([]abi.MemoryScope, error) {
	keys := map[scopeKey]bool{}
	err := h.eachRecord(ctx, tableUnseen, nil, func(r state.KeyValue) error {
		if len(r.Value) == len(scopeKey{}) {
			keys[scopeKey(r.Value)] = true
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
		if record == nil || record.Provider != p.name || record.Origin != p.originKey || record.Namespace != p.config.Namespace {
			continue
		}
		list = append(list, record.memoryScope())
	}
	slices.SortFunc(list, func(a, b abi.MemoryScope) int {
		return cmp.Or(strings.Compare(a.RunID, b.RunID), strings.Compare(a.PersonaID, b.PersonaID), strings.Compare(a.AgentID, b.AgentID))
	})
	return list, nil
}
