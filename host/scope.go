package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// scopeName is the full name of a scope. It does not include the module's hash, so that a new build of a module keeps
// its memory.
type scopeName struct{ provider, origin, namespace, runID, personaID, agentID string }

// scopeKey is the hash of a scopeName: the scope's key in the store and in all maps except Host.scopes.
type scopeKey [16]byte

// Tables of host records.
const (
	tableScopes     state.Table = "scopes"     // scopeKey -> scopeRecord
	tableBackground state.Table = "background" // scopeKey, export -> time of the last run, ms since 1970
	tableSmokes     state.Table = "smokes"     // smokeKey -> smokeRecord
	tableModes      state.Table = "modes"      // slot, or scope and scopeKey -> modeRecord
	// The tables of the archive are in internal/archive, those of the ledger in internal/delivery; tableForgotten is in
	// forgotten.go, tableShared in agreed.go. opstate.TableCommits counts the commits of a space's state.
)

// scopeRecord is what the store holds about a scope.
type scopeRecord struct {
	Provider   string `json:"provider"`
	Origin     string `json:"origin,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	RunID      string `json:"run_id"`
	PersonaID  string `json:"persona_id"`
	AgentID    string `json:"agent_id,omitempty"`
	Generation int64  `json:"generation"`
	// Erasing lists earlier generations that a reset has not yet removed from the backend.
	Erasing     []int64         `json:"erasing,omitempty"`
	NativeScope json.RawMessage `json:"native_scope,omitempty"`
	Since       string          `json:"since"`
}

// displayName joins the scope's ids as "run / person / agent".
func (r *scopeRecord) displayName() string {
	name := r.RunID + " / " + r.PersonaID
	if r.AgentID != "" {
		name += " / " + r.AgentID
	}
	return name
}

// scopeOfPerson returns a function that reports whether a stored scopeRecord may be a person's. It is much faster than
// decoding the record, for a search through all scopes.
func scopeOfPerson(personaID string) func(stored []byte) bool {
	name, err := json.Marshal(personaID)
	if err != nil {
		return func([]byte) bool { return true }
	}
	field := append([]byte(`"persona_id":`), name...)
	return func(stored []byte) bool { return bytes.Contains(stored, field) }
}

func (r *scopeRecord) memoryScope() abi.MemoryScope {
	return abi.MemoryScope{RunID: r.RunID, PersonaID: r.PersonaID, BackendNamespace: r.Namespace, AgentID: r.AgentID}
}

// owns reports whether a scope belongs to the provider.
func (p *Provider) owns(r *scopeRecord) bool {
	return r.Provider == p.name && r.Origin == p.originKey && r.Namespace == p.config.Namespace
}

// scopeRecordOf reads a scope's record; nil if the scope was never written.
func (h *Host) scopeRecordOf(ctx context.Context, key scopeKey) (*scopeRecord, error) {
	stored, err := h.store.Record(ctx, tableScopes, key[:])
	if err != nil {
		return nil, stateError(err)
	}
	if stored == nil {
		return nil, nil
	}
	return parseScope(stored)
}

func parseScope(stored []byte) (*scopeRecord, error) {
	r := new(scopeRecord)
	if err := json.Unmarshal(stored, r); err != nil || r.Generation < 1 {
		return nil, abi.NewError(abi.CodeUnavailable, "state: the record of the scope is damaged").WithReason("state")
	}
	return r, nil
}

// eachScope visits the records of a provider's scopes. It skips damaged records, which are reported when they are used.
func (h *Host) eachScope(ctx context.Context, p *Provider, visit func(*scopeRecord)) error {
	return h.eachRecord(ctx, tableScopes, nil, func(stored state.KeyValue) error {
		var r scopeRecord
		if json.Unmarshal(stored.Value, &r) == nil && p.owns(&r) {
			visit(&r)
		}
		return nil
	})
}

// bareScope returns a scope without its namespace.
func bareScope(s abi.MemoryScope) abi.MemoryScope {
	s.BackendNamespace = ""
	return s
}

// scopeState is what this process knows about a scope. It outlives a swap, so that the writes of both providers stay in
// order.
type scopeState struct {
	name   scopeName
	key    scopeKey
	record scopeRecord
	// Each holds an element while this process has that lock of the scope (writelock.go): for writes, for operations
	// that yield the scope, and for native calls that are not reads made by operations that are not writes.
	writing, working, calling writelock.Local

	generation atomic.Int64 // 0: not yet read from the store
	reading    sync.Mutex
	lastSpace  atomic.Pointer[spaceOfGeneration]
}

// spaceOfGeneration caches the space of a generation.
type spaceOfGeneration struct {
	generation int64
	space      state.Space
}

// space returns where the state of a generation lives. It caches the last one, since consecutive operations ask for the
// same generation.
func (s *scopeState) space(generation int64) state.Space {
	if last := s.lastSpace.Load(); last != nil && last.generation == generation {
		return last.space
	}
	space := generationSpace(s.key, generation)
	s.lastSpace.Store(&spaceOfGeneration{generation, space})
	return space
}

// generationSpace computes where the state of a scope's generation lives.
func generationSpace(key scopeKey, generation int64) state.Space {
	var room [32]byte // on the stack
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append(append(room[:0], "space\x00"...), key[:]...),
		uint64(generation)))
	return state.Space(sum[:16])
}

func (n *scopeName) key() scopeKey {
	return digestOf(n.provider, n.origin, n.namespace, n.runID, n.personaID, n.agentID)
}

// digestOf hashes the parts with their lengths, so that different lists cannot be confused.
func digestOf(parts ...string) [16]byte {
	var room [256]byte // on the stack if large enough
	b := room[:0]
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// scopeOf validates a request's scope against the configuration and returns its state.
func (p *Provider) scopeOf(scope abi.MemoryScope) (*scopeState, error) {
	if scope.BackendNamespace != "" && scope.BackendNamespace != p.config.Namespace {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("scope.backend_namespace: %q is not the configured namespace %.80q", scope.BackendNamespace,
				p.config.Namespace))
	}
	if scope.AgentID != "" && !p.config.AgentScoped {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"scope.agent_id: names an agent, but memory.agent_scoped is off").
			WithHint("leave agent_id out of the scope, or set memory.agent_scoped: true")
	}
	name := scopeName{p.name, p.originKey, p.config.Namespace, scope.RunID, scope.PersonaID, scope.AgentID}
	h := p.host
	h.scopesMu.Lock()
	defer h.scopesMu.Unlock()
	s, ok := h.scopes[name]
	if !ok {
		s = &scopeState{name: name, key: name.key(), writing: make(writelock.Local, 1),
			working: make(writelock.Local, 1), calling: make(writelock.Local, 1),
			record: scopeRecord{Provider: p.name,
				Origin: p.originKey, Namespace: p.config.Namespace, RunID: scope.RunID, PersonaID: scope.PersonaID,
				AgentID: scope.AgentID}}
		h.scopes[name] = s
	}
	return s, nil
}

// scopeOfEvent returns the scope that an event belongs to.
func (p *Provider) scopeOfEvent(e *abi.MemoryEvent) (*scopeState, error) {
	return p.scopeOf(p.memoryScopeOf(e))
}

// memoryScopeOf is the scope of an event. If agents do not have separate scopes, the agent is only a label.
func (p *Provider) memoryScopeOf(e *abi.MemoryEvent) abi.MemoryScope {
	scope := abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID}
	if p.config.AgentScoped {
		scope.AgentID = e.AgentID
	}
	return scope
}

// memoryScope is the scope as guests and traces see it.
func (s *scopeState) memoryScope() abi.MemoryScope { return s.record.memoryScope() }

// currentGeneration returns the scope's generation, which it reads from the store at first use. A scope that was never
// set up is in generation 1.
func (h *Host) currentGeneration(ctx context.Context, s *scopeState) (int64, error) {
	if g := s.generation.Load(); g > 0 {
		return g, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if g := s.generation.Load(); g > 0 {
		return g, nil
	}
	stored, err := h.scopeRecordOf(ctx, s.key)
	if err != nil {
		return 0, err
	}
	g := int64(1)
	if stored != nil {
		g, s.record.NativeScope, s.record.Since, s.record.Erasing = stored.Generation, stored.NativeScope,
			stored.Since, stored.Erasing
	}
	s.raise(g)
	return s.generation.Load(), nil
}

// save adds the scope's record, with a generation, to a batch.
func (s *scopeState) save(b *state.Batch, generation int64) error {
	r := s.record
	r.Generation = generation
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.PutRecord(tableScopes, s.key[:], data)
	return nil
}
