package host

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// modeState is the read-only wall of a slot. It is the host's own: no guest can raise, lower or pass it.
type modeState struct {
	mu       sync.RWMutex
	record   modeRecord
	inFlight int64
}

// modeRecord is what the store keeps of the mode, so that it survives a restart.
type modeRecord struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	Since    string `json:"since"`
}

func modeKey() []byte { return []byte("slot") }

// loadMode reads the mode that an earlier process left.
func (s *Slot) loadMode(ctx context.Context) error {
	stored, err := s.host.store.Record(ctx, tableModes, modeKey())
	if err != nil {
		return stateError(err)
	}
	if stored == nil {
		s.mode.record.Since = s.host.stamp()
		return nil
	}
	if err := json.Unmarshal(stored, &s.mode.record); err != nil {
		return abi.WrapError(abi.CodeUnavailable, "state: the record of the mode is damaged", err).WithReason("state")
	}
	if s.mode.record.ReadOnly {
		s.host.logger.Warn("the slot is read-only, as it was left", "since", s.mode.record.Since, "reason", s.mode.record.Reason)
	}
	return nil
}

func (m *modeState) isReadOnly() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.record.ReadOnly
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

// readOnlyIn tells whether a session may not write: the slot is read-only, or the session is a test session.
func (o *operation) readOnlyIn(session string) bool {
	return o.provider.testSession(session) || o.slot.mode.isReadOnly()
}

// testSession tells whether the configuration makes a session read-only by itself.
func (p *Provider) testSession(session string) bool {
	return p.testSessions != nil && p.testSessions.MatchString(session)
}

// beginWrite counts a write in, unless the slot is read-only. A write that began goes on when the mode changes: endWrite follows.
func (m *modeState) beginWrite() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record.ReadOnly {
		return false
	}
	m.inFlight++
	return true
}

func (m *modeState) endWrite() {
	m.mu.Lock()
	m.inFlight--
	m.mu.Unlock()
}

// setMode is SetMode. The mode is kept in the data folder before it is answered.
func (s *Slot) setMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	fail := func(err error) (*abi.ModeReceipt, error) {
		e := *abi.AsError(err)
		e.Operation = abi.OpSetMode
		return nil, &e
	}
	if err := mode.Validate(); err != nil {
		return fail(err)
	}
	if mode.Scope != nil {
		return fail(abi.NewError(abi.CodeUnsupported, "scope: the mode of one scope alone is not offered; leave scope out to set the slot's").WithReason("scope_mode"))
	}
	s.mode.mu.Lock()
	defer s.mode.mu.Unlock()
	record := modeRecord{ReadOnly: mode.ReadOnly, Reason: mode.Reason, Since: s.host.stamp()}
	if record.ReadOnly == s.mode.record.ReadOnly {
		record.Since = s.mode.record.Since
	}
	data, err := json.Marshal(record)
	if err != nil {
		return fail(err)
	}
	var b state.Batch
	b.PutRecord(tableModes, modeKey(), data)
	if _, err := s.host.store.Commit(ctx, &b); err != nil {
		return fail(stateError(err))
	}
	s.mode.record = record
	return s.mode.receipt(), nil
}

// Mode implements Contract.
func (s *Slot) Mode(context.Context) (*abi.ModeReceipt, error) {
	s.mode.mu.RLock()
	defer s.mode.mu.RUnlock()
	return s.mode.receipt(), nil
}

func (m *modeState) receipt() *abi.ModeReceipt {
	return &abi.ModeReceipt{ReadOnly: m.record.ReadOnly, Since: m.record.Since, EnforcedBy: "host", InFlight: m.inFlight, NotReady: []abi.MemoryScope{}}
}
