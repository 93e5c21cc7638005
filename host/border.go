package host

import (
	"context"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// This file is the slot's outer border: the steps around every operation of the contract that need only its request and
// answer. Steps that need the provider, its native calls or the guest's time are inside: begin and end in operation.go,
// once for each use of a provider.

// contractCall is an operation of the contract, as its caller requested it.
type contractCall struct {
	name    string
	request abi.Encodable
}

// A concern wraps an operation. It may refuse the operation or change its context; leave gets what the caller gets.
type concern func(ctx context.Context, a contractCall) (inside context.Context, leave func(answer abi.Encodable, err error),
	err error)

// concerns returns the concerns of every operation, outermost first:
//
//   - The recorder comes first: it records exactly what passed between slot and caller.
//   - The exchange log is inside a recording, which counts how often the clock is read.
//   - The log of decisions needs a clock that no recording counts.
//   - The gate comes last, before a provider is chosen: operations that waited at it get the new provider.
func (s *Slot) concerns() []concern {
	return []concern{s.recordExchange, s.logExchange, s.logDecision, s.passGate}
}

// perform runs an operation of the contract: through the concerns, and then through route.
func perform[A abi.Encodable](ctx context.Context, s *Slot, name string, request abi.Encodable,
	do func(ctx context.Context) (A, error)) (answer A, err error) {
	for _, enter := range s.concerns() {
		inside, leave, refused := enter(ctx, contractCall{name, request})
		if refused != nil {
			return answer, refused
		}
		ctx = inside
		defer func() { leave(answer, err) }()
	}
	return route(ctx, s, do)
}

// route runs an operation at the serving provider. If the provider was replaced in between, route loads the new one and
// runs the operation again. The operation holds the provider itself (begin), one use at a time, so that a swap waits
// for one use at most.
func route[A any](ctx context.Context, s *Slot, do func(context.Context) (A, error)) (A, error) {
	for {
		answer, err := do(ctx)
		if !isProviderChanged(err) {
			return answer, err
		}
		if err := s.loadServing(ctx); err != nil {
			return answer, err
		}
	}
}

// ignore is the leave function of a concern that has nothing to do at the end.
func ignore(abi.Encodable, error) {}

// recordExchange writes request and answer to the cassette. Operations of followers are left out.
func (s *Slot) recordExchange(ctx context.Context, a contractCall) (context.Context, func(abi.Encodable, error), error) {
	if s.host.begin == nil || s.following != nil {
		return ctx, ignore, nil
	}
	return s.host.begin(ctx, a.name, a.request)
}

// logExchange calls Options.OnExchange, unless the operation is part of another one.
func (s *Slot) logExchange(ctx context.Context, a contractCall) (context.Context, func(abi.Encodable, error), error) {
	h := s.host
	if h.options.OnExchange == nil && h.begin == nil || s.following != nil {
		return ctx, ignore, nil
	}
	began, at, costs := time.Now(), h.now(), new(account) // also read while recording: a cassette counts the reads
	if h.options.OnExchange == nil || accountOf(ctx) != nil {
		return ctx, ignore, nil
	}
	return context.WithValue(ctx, accountKey{}, costs), func(answer abi.Encodable, err error) {
		x := &Exchange{Operation: a.name, Origin: OriginOf(ctx), At: at, Latency: time.Since(began), Request: a.request,
			clean: s.redact}
		if err != nil {
			x.Error, x.Trace = abi.AsError(err), costs.trace(a.name, x.Latency)
		} else {
			x.Answer = answer
		}
		h.options.OnExchange(x)
	}, nil
}

// logDecision logs each decision about memory: a mode, a reset, a request to forget, a mutation. The line has no memory
// texts, and no names except those of the scope. Operations of followers and smoke tests are not decisions.
func (s *Slot) logDecision(ctx context.Context, a contractCall) (context.Context, func(abi.Encodable, error), error) {
	if s.following != nil || s.followers == nil {
		return ctx, ignore, nil
	}
	switch a.name {
	case abi.OpSetMode, abi.OpResetScope, abi.OpForget, abi.OpNativeMutation:
	default:
		return ctx, ignore, nil
	}
	return ctx, func(_ abi.Encodable, err error) { s.host.recordDecision(ctx, a, err) }, nil
}

// recordDecision writes the log line of a decision.
func (h *Host) recordDecision(ctx context.Context, a contractCall, err error) {
	result := "done"
	if err != nil {
		result = string(abi.CodeOf(err))
	}
	line := []any{"operation", a.name, "result", result, "door", doorOf(ctx)}
	scope := func(s abi.MemoryScope) { line = append(line, "run_id", s.RunID, "persona_id", s.PersonaID) }
	switch r := a.request.(type) {
	case *abi.AdapterMode:
		line = append(line, "read_only", r.ReadOnly)
		if r.Scope != nil {
			scope(*r.Scope)
		}
	case *abi.MemoryScope:
		scope(*r)
	case *abi.ForgetRequest:
		scope(r.Scope)
	case *abi.NativeMutation:
		line = append(line, "mutation", r.Name)
		scope(r.Scope)
	case *report.PersonaRequest:
		line = append(line, "persona_id", r.PersonaID)
	}
	h.logger.Info("decision", line...)
}

// passGate makes writes wait while another provider replaces the serving one (follower.go).
//
// Errors: timeout (busy) if ctx ends first.
func (s *Slot) passGate(ctx context.Context, a contractCall) (context.Context, func(abi.Encodable, error), error) {
	switch a.name {
	case abi.OpRecordEvent, abi.OpRecordEvents, abi.OpResetScope, abi.OpForget:
	default:
		return ctx, ignore, nil
	}
	if err := s.gate.Enter(ctx); err != nil {
		e := abi.WrapError(abi.CodeTimeout, "another provider takes over at this moment", err).WithReason("busy")
		e.Operation = a.name
		return ctx, ignore, e
	}
	return ctx, func(abi.Encodable, error) { s.gate.Leave() }, nil
}

// Exchange is one operation of the contract as its caller saw it, for a log of the run.
type Exchange struct {
	Operation string
	// Origin is what the caller set with WithOrigin; empty without it.
	Origin string
	// At is the start by the host's clock; Latency is the duration.
	At      time.Time
	Latency time.Duration
	Request abi.Encodable
	// Answer is nil if Error is set.
	Answer abi.Encodable
	Error  *abi.Error
	// Trace is what the host knows about an operation that failed: scope, native calls, times. It is nil if the guest
	// was not entered. An answer carries its own trace.
	Trace *abi.Trace

	clean func([]byte) []byte
}

// Redact removes the operator's secrets from a text about the exchange.
func (x *Exchange) Redact(text []byte) []byte { return x.clean(text) }

// redact removes the secrets of the serving provider.
func (s *Slot) redact(text []byte) []byte {
	if v := s.current.Load(); v != nil {
		return v.provider.network.Redactor().Bytes(text)
	}
	return text
}

// account collects the cost of an operation's calls, because an operation that fails has no trace of its own.
type account struct {
	mu      sync.Mutex
	last    *operation
	io      []abi.IO
	backend time.Duration
	inGuest time.Duration
	counted map[*operation]int // how many native calls of each operation were counted
}

type accountKey struct{}

func accountOf(ctx context.Context) *account {
	a, _ := ctx.Value(accountKey{}).(*account)
	return a
}

// add counts one entry into a guest. If an operation enters several times, as a reset does, its native calls are
// counted once.
func (a *account) add(o *operation) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counted == nil {
		a.counted = map[*operation]int{}
	}
	before := a.counted[o]
	a.counted[o] = len(o.IO)
	for _, io := range o.IO[before:] {
		a.io = append(a.io, io)
		a.backend += time.Duration(io.MS * float64(time.Millisecond))
	}
	a.last, a.inGuest = o, a.inGuest+o.Guest
}

// trace describes an operation that failed.
func (a *account) trace(name string, took time.Duration) *abi.Trace {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		return nil
	}
	p := a.last.provider
	return &abi.Trace{Operation: name, BackendName: p.name, ConditionKind: p.kind, Scope: a.last.memoryScope(),
		Generation: a.last.generation, Host: a.last.slot.host.name, Tokenizer: p.tokens.Name(),
		NativeOperation: routesOf(a.io), IO: a.io, LatencyMS: ms(took), BackendMS: ms(a.backend),
		PluginMS: ms(max(0, a.inGuest-a.backend)),
		HostMS:   ms(max(0, took-a.inGuest))}
}

// OriginPage is the origin of requests from the slot's page in the browser.
const OriginPage = "page"

type originKey struct{}

type doorKey struct{}

// WithDoor sets the door of the operations of ctx for the log: one short word of the caller's choice, such as "http".
func WithDoor(ctx context.Context, door string) context.Context {
	return context.WithValue(ctx, doorKey{}, door)
}

// doorOf returns the door that WithDoor set; "program" without it.
func doorOf(ctx context.Context) string {
	if door, ok := ctx.Value(doorKey{}).(string); ok {
		return door
	}
	return "program"
}

// WithOrigin sets the origin of the operations of ctx for Observation and Exchange: one short word of the caller's
// choice, such as OriginPage. The slot treats all origins alike.
func WithOrigin(ctx context.Context, origin string) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// OriginOf returns the origin that WithOrigin set; "" without it.
func OriginOf(ctx context.Context) string {
	origin, _ := ctx.Value(originKey{}).(string)
	return origin
}
