package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
)

// bench is where one clause is checked.
type bench struct {
	*rig   // the one on which most is done
	ctx    context.Context
	kit    *kit
	wire   *wire
	report *ClauseReport
	kind   abi.ConditionKind
	health abi.BackendHealth
	// capabilities are those of this configuration, declared what its manifest says does not apply to it.
	capabilities []string
	declared     []abi.NotApplicable

	mu        sync.Mutex
	rigs      []*rig
	sessions  int
	events    int
	tracedLLM *int64 // calls to language models, according to traces
	// unreachableParts are the parts, by number, that could not reach the backend.
	unreachableParts []int
	// confirmed: something was seen that a declaration of the clause can mean.
	confirmed bool
}

// rig is a slot on a data folder.
type rig struct {
	bench *bench
	dir   string
	host  *host.Host
	slot  *host.Slot
	// agentScoped: agent_id is a part of the scope.
	agentScoped bool

	mu     sync.Mutex
	scopes []abi.MemoryScope // that were written to
}

// open makes a slot on a folder. now is its clock, nil for that of the options.
func (b *bench) open(dir string, pool int, now func() time.Time) (*rig, error) {
	return b.openAs(dir, pool, now, nil)
}

// openAs is open with a changed configuration.
func (b *bench) openAs(dir string, pool int, now func() time.Time, change func(*host.ProviderConfig)) (*rig, error) {
	if now == nil {
		now = b.kit.options.Now
	}
	limits := b.kit.options.Limits
	limits.Pool = pool
	h, err := host.New(b.ctx, host.Options{DataDir: dir, CacheDir: b.kit.options.CacheDir, Durability: "process",
		OpenStore: b.kit.options.OpenStore, Logger: b.kit.options.Logger, Limits: limits,
		Now: now, Pause: b.kit.options.Pause, Intercept: b.wire.intercept, InterceptGuest: b.kit.options.guest, NoReadinessPolls: true, Engines: []host.Engine{extism.Engine()}})
	if err != nil {
		return nil, err
	}
	config := b.kit.target.Provider
	config.TestSessions = []string{testSessions}
	if change != nil {
		change(&config)
	}
	slot, err := h.Open(b.ctx, config)
	if err != nil {
		_ = h.Close(b.ctx)
		return nil, err
	}
	r := &rig{bench: b, dir: dir, host: h, slot: slot, agentScoped: config.AgentScoped}
	b.mu.Lock()
	b.rigs = append(b.rigs, r)
	b.mu.Unlock()
	return r, nil
}

func (r *rig) close() {
	if r.slot == nil {
		return
	}
	ctx := context.WithoutCancel(r.bench.ctx)
	_ = r.slot.Close(ctx)
	_ = r.host.Close(ctx)
	r.slot = nil
}

// cleanUp resets every scope that was written to, as far as possible.
func (b *bench) cleanUp() {
	b.wire.set(nil)
	for _, r := range b.rigs {
		if r.slot == nil {
			continue
		}
		parallel(len(r.scopes), 4, func(i int) { _, _ = r.slot.ResetScope(b.ctx, r.scopes[i]) })
	}
}

func (b *bench) close() {
	for _, r := range b.rigs {
		r.close()
	}
}

// scope is a scope of the kit's own: its run and persona begin with what no other run of the kit has.
func (b *bench) scope(run, persona string) abi.MemoryScope {
	return abi.MemoryScope{RunID: fmt.Sprintf("%s.%d%s", b.kit.options.RunID, b.report.Number, run), PersonaID: persona}
}

// session is a new one.
func (b *bench) session() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions++
	return "kit-session-" + strconv.Itoa(b.sessions)
}

// event is a new turn of two messages.
func (b *bench) event(s abi.MemoryScope, text string) *abi.MemoryEvent {
	b.mu.Lock()
	b.events++
	n := b.events
	b.mu.Unlock()
	id, answer := fmt.Sprintf("kit-%d-%d", b.report.Number, n), "Thank you for telling me."
	return &abi.MemoryEvent{EventID: id, RunID: s.RunID, UserID: s.PersonaID, AgentID: s.AgentID, SessionID: b.session(), TurnID: id,
		Timestamp: b.kit.options.Now().UTC().Add(time.Duration(n)*time.Second - time.Hour).Format(time.RFC3339),
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: &answer}}}
}

// record delivers an event, and remembers its scope for the cleaning.
func (r *rig) record(ctx context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s := abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID}
	if r.agentScoped {
		s.AgentID = e.AgentID
	}
	r.wrote(s)
	receipt, err := r.slot.RecordEvent(ctx, e)
	if err != nil {
		return nil, err
	}
	r.bench.noteLLMCalls(receipt.Trace)
	return receipt, malformedReceipt(receipt)
}

// malformedReceipt is the error behind a receipt that the host made uncertain because the provider's own breaks the
// contract.
func malformedReceipt(r *abi.WriteReceipt) error {
	why := new(abi.Error)
	if r.Status != abi.StatusUncertain || r.Trace == nil || abi.Unmarshal(r.Trace.Details["error"], why) != nil ||
		why.Reason != abi.ReasonContractBreach {
		return nil
	}
	return why
}

func (r *rig) wrote(s abi.MemoryScope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.scopes, s) {
		r.scopes = append(r.scopes, s)
	}
}

// ask retrieves from a new session, without a budget.
func (r *rig) ask(s abi.MemoryScope) (*abi.RetrieveResult, error) {
	return r.retrieve(&abi.RetrieveRequest{Query: r.bench.kit.target.Probe.Question, Scope: s})
}

// retrieve sends the request, from a new session if it names none.
func (r *rig) retrieve(q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	if q.SessionID == "" {
		q.SessionID = r.bench.session()
	}
	result, err := r.slot.Retrieve(r.bench.ctx, q)
	if err == nil {
		r.bench.noteLLMCalls(result.Trace)
	}
	return result, err
}

// wait waits until what was recorded in a scope can be retrieved. The outcome is set when that did not happen in time.
func (r *rig) wait(s abi.MemoryScope) *outcome {
	if !slices.Contains(r.bench.capabilities, abi.OpReadiness) {
		return nil // written is readable, or the clause finds out
	}
	within := r.bench.kit.target.ReadyWithin
	ready, err := r.slot.Readiness(r.bench.ctx, &abi.ReadinessRequest{Scope: s, TimeoutMS: within.Milliseconds()})
	var o outcome
	switch {
	case err != nil:
		o = refused("readiness", err)
	case ready.Status == abi.ReadinessPending:
		o = pending("not ready within %v (%s)", within, ready.Method)
	case ready.Status == abi.ReadinessFailed:
		o = failed("readiness says failed (%s): %v", ready.Method, ready.Warnings)
	default:
		return nil
	}
	return &o
}

// readOnly turns the slot's read-only mode on or off.
func (r *rig) readOnly(on bool) error {
	_, err := r.slot.SetMode(r.bench.ctx, &abi.AdapterMode{ReadOnly: on, Reason: "conformance kit"})
	return err
}

// noteLLMCalls adds the calls to language models that a trace reports.
func (b *bench) noteLLMCalls(t *abi.Trace) {
	if t == nil || t.Details["llm_calls"] == nil {
		return
	}
	var n int64
	if json.Unmarshal(t.Details["llm_calls"], &n) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tracedLLM != nil {
		n += *b.tracedLLM
	}
	b.tracedLLM = &n
}

func (b *bench) llmCalls() *int64 {
	if b.kit.target.LLMCalls == nil {
		return nil
	}
	n, err := b.kit.target.LLMCalls(b.ctx)
	if err != nil {
		return nil
	}
	return &n
}

func (b *bench) llmSpent(before *int64) *int64 {
	after := b.llmCalls()
	if before == nil || after == nil {
		return b.tracedLLM
	}
	spent := *after - *before
	return &spent
}
