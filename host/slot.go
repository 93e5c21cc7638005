package host

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
)

// Contract is what an agent can ask of a memory slot: CONTRACT section 3 as Go methods. A Slot implements it, and so does a client of a slot's HTTP
// door. Every error is an *abi.Error.
type Contract interface {
	// SetupScope makes a scope ready. It is never needed: the first write does it.
	SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error)
	// RecordEvent delivers a turn once. The same event again answers with the first receipt and duplicate set; with other content it is conflict.
	RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error)
	// RecordEvents delivers several turns, each with its own receipt or error, in order within a scope.
	RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error)
	// Retrieve asks for context. An outage is an error, never an empty result.
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	// FormatContext formats an earlier result again.
	FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error)
	// ResetScope erases a scope's memory and starts its next generation. Refused while read-only.
	ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error)
	// Health asks the provider for its condition.
	Health(ctx context.Context) (*abi.BackendHealth, error)
	// SetMode raises or lowers the read-only wall, Mode tells how it stands.
	SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error)
	Mode(ctx context.Context) (*abi.ModeReceipt, error)
	// Capabilities tells what the provider can do, Manifest what serves and since when.
	Capabilities(ctx context.Context) (*abi.Capabilities, error)
	Manifest(ctx context.Context) (*abi.RunManifest, error)

	// The operations below are capabilities: unsupported where the provider lacks them.

	Readiness(ctx context.Context, request *abi.ReadinessRequest) (*abi.BackendReadiness, error)
	Inventory(ctx context.Context, request *abi.InventoryRequest) (*abi.Inventory, error)
	Provenance(ctx context.Context, request *abi.ProvenanceRequest) (*abi.Provenance, error)
	NativeQuery(ctx context.Context, request *abi.NativeQuery) (*abi.NativeQueryResult, error)
	NativeMutation(ctx context.Context, request *abi.NativeMutation) (*abi.MutationReceipt, error)
	ApplyFeedback(ctx context.Context, request *abi.MemoryFeedback) (*abi.FeedbackReceipt, error)
}

// Slot is a memory slot: the contract, with exactly one provider behind it at any time.
type Slot struct {
	host    *Host
	current atomic.Pointer[serving]
	swapMu  sync.Mutex // one swap at a time
	loads   int64
	mode    modeState
	drains  sync.WaitGroup
}

var _ Contract = (*Slot)(nil)

// serving is a provider while it serves, with what was found out when it was loaded.
type serving struct {
	provider     *Provider
	capabilities abi.Capabilities
	manifest     abi.RunManifest
}

// Observation is one operation as the host saw it: for metrics.
type Observation struct {
	Provider, Operation string
	// Code is empty for success.
	Code                     abi.Code
	Latency, Backend, Plugin time.Duration
	IO                       []abi.IO
}

// use takes the serving provider. The caller gives it back by release; it is not closed before.
func (s *Slot) use(op string) (*serving, error) {
	for {
		v := s.current.Load()
		if v == nil {
			e := abi.NewError(abi.CodeUnavailable, "the slot is closed").WithReason("closed")
			e.Operation = op
			return nil, e
		}
		if v.provider.hold() {
			return v, nil
		}
	}
}

// operation is one operation of the contract while it runs.
type operation struct {
	slot     *Slot
	provider *Provider
	call     *call
	began    time.Time
	// admitted: the wall let this write in, and what it does until its end goes on when the mode changes meanwhile.
	admitted bool
	// scope is nil for an operation that has none.
	scope *scopeState
}

// begin takes the provider and opens the operation. op.end must follow.
func (s *Slot) begin(name string) (*operation, error) {
	began := time.Now()
	v, err := s.use(name)
	if err != nil {
		return nil, err
	}
	return &operation{slot: s, provider: v.provider, began: began, call: &call{op: name, provider: v.provider}}, nil
}

// end gives the provider back and reports the operation. err points to what the caller gets.
func (o *operation) end(err *error) {
	if *err != nil {
		e := abi.AsError(*err)
		if e.Operation == "" {
			named := *e
			named.Operation = o.call.op
			e = &named
		}
		*err = e
	}
	if observe := o.slot.host.options.Observe; observe != nil {
		observe(Observation{Provider: o.provider.name, Operation: o.call.op, Code: abi.CodeOf(*err), Latency: time.Since(o.began),
			Backend: o.call.backend, Plugin: o.pluginTime(), IO: o.call.io})
	}
	o.provider.release()
}

func (o *operation) pluginTime() time.Duration { return max(0, o.call.guest-o.call.backend) }

// at sets the scope of the operation and opens its state. refusal says, for an operation, why its state may not be written; nil when it may.
func (o *operation) at(ctx context.Context, sc *scopeState, refusal func(op string) *abi.Error) error {
	generation, err := o.slot.host.currentGeneration(ctx, sc)
	if err != nil {
		return err
	}
	o.atGeneration(sc, generation)
	o.call.state.refusal = refusal
	return nil
}

// atGeneration is at for one of the scope's generations, whose state may be written.
func (o *operation) atGeneration(sc *scopeState, generation int64) {
	o.scope, o.call.scope, o.call.generation = sc, sc.memoryScope(), generation
	o.call.state = newStateTx(o.slot.host.store, sc.space(generation), nil)
}

// commitState commits what the guest wrote so far; its later writes begin a new transaction. What the guest did in the backend is done: the commit is not the
// caller's to cancel.
func (o *operation) commitState(ctx context.Context) error {
	t := o.call.state
	t.batch.MaxSpaceBytes = o.provider.limits.StateBytes
	if t.batch.Len() > 0 {
		if _, err := o.slot.host.store.Commit(context.WithoutCancel(ctx), &t.batch); err != nil {
			return stateError(err)
		}
	}
	o.call.state = newStateTx(t.store, t.space, t.refusal)
	return nil
}

// enter runs the guest's operation with a request body.
func (o *operation) enter(ctx context.Context, body abi.Encodable, out abi.Decodable) error {
	if !o.provider.has(o.call.op) {
		return o.provider.unsupported(o.call.op)
	}
	o.call.readOnly = !o.admitted && (o.call.readOnly || o.slot.mode.isReadOnly(o.scope))
	return o.provider.enter(ctx, o.call, &abi.Envelope{Op: o.call.op, Scope: o.call.scope, Generation: o.call.generation,
		Mode: abi.EnvelopeMode{ReadOnly: o.call.readOnly}, Now: o.slot.host.stamp(), Resume: o.call.resume, Body: abi.Marshal(body)}, out)
}

// trace completes what a plugin said of an operation with what the host measured. Nil becomes a trace of the host's own.
func (o *operation) trace(t *abi.Trace) *abi.Trace {
	if t == nil {
		t = new(abi.Trace)
	}
	if t.BackendName == "" {
		t.BackendName = o.provider.name
	}
	c, total := o.call, o.slot.host.tape.elapsed(time.Since(o.began))
	t.Operation, t.ConditionKind, t.Tokenizer = c.op, o.provider.kind, o.provider.tokens.Name()
	t.Scope, t.Generation, t.IO = c.scope, c.generation, c.io
	t.ReadSideEffects = o.sideEffects(t.ReadSideEffects)
	t.LatencyMS, t.BackendMS, t.PluginMS, t.HostMS = ms(total), ms(c.backend), ms(o.pluginTime()), ms(max(0, total-c.guest))
	return t
}

// sideEffects adds what the manifest says of the routes that were used to what the plugin said.
func (o *operation) sideEffects(said []string) []string {
	for _, io := range o.call.io {
		effect := o.provider.network.SideEffects(io.Route)
		if effect == "" {
			continue
		}
		if effect = io.Route + ": " + effect; !slices.Contains(said, effect) {
			said = append(said, effect)
		}
	}
	return said
}

// errWallState is the refusal of state writes in a set-up that the wall did not admit.
func errWallState(string) *abi.Error {
	return abi.NewError(abi.CodeReadOnly, "the slot is read-only")
}

// errReadState is the refusal of state writes in an operation that only reads.
func errReadState(op string) *abi.Error {
	return abi.NewError(abi.CodeDenied, op+" only reads: state may be written in setup_scope, record_event, record_events, reset_scope, wait_until_ready, apply_feedback, native_mutation and forget")
}
