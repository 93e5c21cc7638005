package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// operation is one running operation of the contract: the guest's call and its context. It serves the guest's host
// calls (powers.go, network.go).
type operation struct {
	guest.Call
	slot     *Slot
	provider *Provider
	began    time.Time
	// ioFrom is the start of the operation; start_ms of its native calls counts from there.
	ioFrom time.Time
	// scope is nil for an operation without one; generation counts its resets.
	scope      *scopeState
	generation int64
	// state is the scope's state as the guest sees and writes it; nil without a scope.
	state *opstate.State
	// reservedWrites is this operation's share of Host.stateWrites.
	reservedWrites int64
	// lock is the write lock that the operation holds; nil without one.
	lock *writelock.Lock
	// aheadOf is the space of which records were read with the lock (ahead.go); zero for none.
	aheadOf state.Space
	// unseen is what a retrieval has read of the ledger together with the facts; nil for nothing.
	unseen *unseenSnapshot
	permission
	logged loggedBytes
	origin string // set by the caller, for observers
	// wallSkipped is how many of the operation's changes were skipped because of read-only.
	wallSkipped int
	span        Span
}

// begin takes the serving provider and opens an operation. The returned context carries its span. The caller must call
// end.
func (s *Slot) begin(ctx context.Context, name string) (context.Context, *operation, error) {
	v, err := s.take(name)
	if err != nil {
		return ctx, nil, err
	}
	ctx, o := s.operationOn(ctx, v.provider, name)
	return ctx, o, nil
}

// beginOn opens an operation on a provider that the caller already holds (so it is not closed even if it has been
// retired), or that does not serve yet. The caller must call end.
func (s *Slot) beginOn(ctx context.Context, p *Provider, name string) (context.Context, *operation) {
	p.inFlight.Add(1)
	return s.operationOn(ctx, p, name)
}

func (s *Slot) operationOn(ctx context.Context, p *Provider, name string) (context.Context, *operation) {
	o := &operation{slot: s, provider: p, began: time.Now()}
	o.ioFrom = o.began
	o.Op = name
	s.lastCall.Store(o.began.UnixNano())
	if s.following != nil {
		o.origin = s.following.origin
	}
	return o.beginSpan(ctx), o
}

// end releases the provider and reports the operation. err points to the error that the caller gets.
func (o *operation) end(err *error) {
	if *err != nil {
		if e := abi.AsError(*err); e.Operation == "" {
			*err = inOperation(o.Op, e)
		}
	}
	if observe := o.slot.host.options.Observe; observe != nil {
		observe(Observation{Provider: o.provider.name, Operation: o.Op, Origin: o.origin, Code: abi.CodeOf(*err),
			Latency: time.Since(o.began),
			Backend: o.Backend, Plugin: o.pluginTime(), IO: o.IO, Skipped: o.wallSkipped})
	}
	o.endSpan(*err)
	o.releaseWrites()
	o.provider.release()
}

// inOperation adds the operation's name to an error that was found before the operation started.
func inOperation(op string, err error) error {
	e := *abi.AsError(err)
	e.Operation = op
	return &e
}

func (o *operation) pluginTime() time.Duration { return max(0, o.Guest-o.Backend) }

// at sets the scope of the operation and opens the state of its present generation. An operation without a lock first
// reads what other hosts have changed.
func (o *operation) at(ctx context.Context, sc *scopeState) error {
	var commits []byte
	var of state.Space // that commits belongs to
	if o.lock == nil {
		var readOnly bool
		var err error
		if readOnly, of, commits, err = o.lookAhead(ctx, sc); err != nil {
			return err
		}
		o.readOnly = o.readOnly || readOnly
	}
	generation, err := o.slot.host.currentGeneration(ctx, sc)
	if err != nil {
		return err
	}
	o.atGeneration(sc, generation)
	if of == o.state.Space() {
		o.state.KnowCommits(commits)
	}
	return nil
}

// atGeneration is at for a given generation of the scope.
func (o *operation) atGeneration(sc *scopeState, generation int64) {
	o.releaseWrites()
	o.scope, o.generation = sc, generation
	o.state = opstate.New(o.slot.host.store, sc.space(generation))
}

// memoryScope is the operation's scope as guests and traces see it; the zero value if there is none.
func (o *operation) memoryScope() abi.MemoryScope {
	if o.scope == nil {
		return abi.MemoryScope{}
	}
	return o.scope.memoryScope()
}

// readRepeats is how often a read-only operation is repeated because the scope's state was written between two of its
// reads. After that it takes the scope's lock, which excludes writes.
const readRepeats = 2

// enter runs the guest's operation with a request body and decodes the answer into out. An operation that only reads
// sees a single commit of the scope's state: if a commit happens between two of its reads, the guest's first answer is
// dropped and the operation repeated, within its deadline.
//
// Errors: unsupported if the provider lacks the operation, otherwise those of Provider.enter.
func (o *operation) enter(ctx context.Context, body abi.Encodable, out abi.Decodable) error {
	return o.enterWith(ctx, &abi.Envelope{Body: abi.Marshal(body)}, out)
}

// enterWith is enter with an envelope, which has the body and the fields that only some operations use.
func (o *operation) enterWith(ctx context.Context, envelope *abi.Envelope, out abi.Decodable) error {
	if !o.provider.has(o.Op) {
		return o.provider.unsupported(o.Op)
	}
	once := func(ctx context.Context) error {
		o.guard()
		e := *envelope
		e.Op, e.Scope, e.Generation, e.Mode.ReadOnly = o.Op, o.memoryScope(), o.generation, o.readOnly
		if e.Now == "" {
			e.Now = o.slot.host.stamp()
		}
		return o.provider.enter(ctx, o, &e, out)
	}
	err := once(ctx)
	if !errors.Is(err, errStateMoved) {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, o.Deadline)
	defer cancel()
	for range readRepeats {
		if err = once(ctx); !errors.Is(err, errStateMoved) {
			return err
		}
	}
	lock, err := o.slot.lockScope(ctx, o.provider, o.scope, o.Op, writelock.ToRead)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return once(ctx)
}

// errStateMoved means that a commit happened between two state reads of an operation that only reads.
var errStateMoved = errors.New("the scope's state was written between two reads")

// enter runs one call of the guest: the envelope in, the answer out. One deadline covers the guest and its host calls.
// A call of a batch waits for its seat first.
//
// Errors: timeout if the deadline ended; internal for a trap or a breach of the ABI; rate_limited if too many calls
// wait; errStateMoved if the reads of an operation without a lock saw two commits; the guest's own errors.
func (p *Provider) enter(ctx context.Context, o *operation, envelope *abi.Envelope, out abi.Decodable) error {
	leave, err := takeSeat(ctx)
	if err != nil {
		return err
	}
	defer leave()
	o.Began = time.Now()
	o.Deadline = o.Began.Add(p.deadline(o.Op) + p.host.slack)
	if d, ok := ctx.Deadline(); ok && d.Before(o.Deadline) {
		o.Deadline = d
	}
	inside, cancel := context.WithDeadline(ctx, o.Deadline)
	defer cancel()
	inside, span := p.host.part(inside, "plugin")
	answer, isError, err := p.pool.Enter(inside, &o.Call, envelope)
	o.endEntry(span, isError, err)
	accountOf(ctx).add(o)
	if inside.Err() == nil {
		if failure := o.guarded.oneMoment(context.WithoutCancel(ctx)); failure != nil {
			return failure
		}
	}
	if err != nil {
		return err
	}
	if isError {
		e := new(abi.Error)
		if err := abi.Unmarshal(answer, e); err != nil || e.Code == "" {
			return o.contractBreach("answered an error object that cannot be read")
		}
		return p.plugin.Failed(o.Op, e)
	}
	if at := guest.InvalidUTF8(answer); at >= 0 {
		return o.contractBreach(fmt.Sprintf("the answer has the byte %#02x at %d, which is not UTF-8, after %s", answer[at],
			at, guest.Printable(string(answer[max(0, at-40):at]), 80)))
	}
	missing, err := abi.MissingField(o.Op, answer) // before the answer is decoded
	if err == nil && missing == "" {
		err = abi.UnmarshalOwned(answer, out)
	}
	switch {
	case err != nil:
		return o.contractBreach("answered what is no " + o.Op + " answer: " + abi.AsError(err).Message)
	case missing != "":
		return o.contractBreach("the answer has no " + missing)
	}
	if wrong := answercheck.Wrong(out); wrong != "" {
		return o.contractBreach(wrong)
	}
	answercheck.DropHostCodes(out)
	return nil
}

// contractBreach is the error for an answer that violates the contract.
func (o *operation) contractBreach(what string) *abi.Error {
	e := o.provider.plugin.Breach(o.Op, what).WithReason(abi.ReasonContractBreach).
		WithHint("this is a defect of the module, not of the request; ABI.md lists what an answer must have")
	return o.provider.plugin.Failed(o.Op, e)
}

// badContext is the error for a formatted context that is not exactly one element or exceeds the budget. Its reason is
// "abi".
func (o *operation) badContext(what string) *abi.Error {
	e := o.contractBreach("formatted_context " + what)
	e.Reason = "abi"
	return e
}

// trace adds the host's measurements to a plugin's trace of an operation. Nil becomes a trace of the host alone.
func (o *operation) trace(t *abi.Trace) *abi.Trace {
	if t == nil {
		t = new(abi.Trace)
	}
	t.BackendName = o.provider.name
	total := o.slot.host.clock.Measured(time.Since(o.began))
	t.Operation, t.ConditionKind, t.Tokenizer = o.Op, o.provider.kind, o.provider.tokens.Name()
	t.Scope, t.Generation, t.Host, t.IO = o.memoryScope(), o.generation, o.slot.host.name, o.IO
	t.ReadSideEffects = o.sideEffects(t.ReadSideEffects)
	if t.NativeOperation == "" {
		t.NativeOperation = routesOf(o.IO)
	}
	t.LatencyMS, t.BackendMS, t.PluginMS, t.HostMS = ms(total), ms(o.Backend), ms(o.pluginTime()),
		ms(max(0, total-o.Guest))
	return t
}

// routesOf lists the routes of native calls, each once, in the order of their first use:
//
//	episodes, delete_group, episodes      "episodes delete_group"
//	no call                               ""
func routesOf(calls []abi.IO) string {
	var routes []string
	for _, call := range calls {
		if !slices.Contains(routes, call.Route) {
			routes = append(routes, call.Route)
		}
	}
	return strings.Join(routes, " ")
}

// sideEffects adds the side effects that the manifest declares for the routes used to those that the plugin reported.
func (o *operation) sideEffects(reported []string) []string {
	for _, io := range o.IO {
		effect := o.provider.network.SideEffects(io.Route)
		if effect == "" {
			continue
		}
		if effect = io.Route + ": " + effect; !slices.Contains(reported, effect) {
			reported = append(reported, effect)
		}
	}
	return reported
}

// ms converts a duration to milliseconds, rounded down to a microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
