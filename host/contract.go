package host

import (
	"context"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
)

// Contract is what an agent can ask of a memory slot. A Slot implements it, and so does a client of a slot's HTTP door.
// Every error is an *abi.Error.
type Contract interface {
	// SetupScope makes a scope ready. It is optional: the first write does it.
	SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error)
	// RecordEvent delivers a turn once. The same event again answers with the first receipt and duplicate set; with
	// other content it is conflict.
	RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error)
	// RecordEvents delivers several turns, each with its own receipt or error: in order within a scope, different
	// people's side by side.
	RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error)
	// Retrieve asks for context. An outage is an error, never an empty result.
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	// FormatContext formats an earlier result again.
	FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error)
	// ResetScope erases a scope's memory and starts its next generation. Refused while read-only.
	ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error)
	// Health asks the provider for its condition.
	Health(ctx context.Context) (*abi.BackendHealth, error)
	// SetMode makes slot or scope read-only or writable, Mode reports the slot's present mode.
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
	// Forget removes some of a scope's memory, from the archive too, and keeps it from being recorded again. The
	// receipt names what may remain. Where the provider lacks it the host does its part, and the receipt says partial
	// or unsupported; by native_ids it is an error then. Refused while read-only. Asked again it goes on.
	Forget(ctx context.Context, request *abi.ForgetRequest) (*abi.ForgetReceipt, error)
}

// through runs one operation of the contract at the slot's outer border: the recording and OnExchange get exactly what
// a caller asked and got.
func through[R, A abi.Encodable](ctx context.Context, s *Slot, name string, request R,
	do func(ctx context.Context) (A, error)) (answer A, err error) {
	h, once := s.host, do
	do = func(ctx context.Context) (A, error) { return withServing(ctx, s, once) }
	if h.begin == nil && h.options.OnExchange == nil || s.following != nil {
		return do(ctx)
	}
	if h.begin != nil {
		inside, end, failed := h.begin(ctx, name, request)
		if failed != nil {
			return answer, failed
		}
		ctx = inside
		defer func() { end(answer, err) }()
	}
	began, at, a := time.Now(), h.now(), new(account)         // a cassette counts how often its clock is read
	if h.options.OnExchange == nil || accountOf(ctx) != nil { // an operation inside another is a part of that
		return do(ctx)
	}
	answer, err = do(context.WithValue(ctx, accountKey{}, a))
	x := &Exchange{Operation: name, Origin: OriginOf(ctx), At: at, Latency: time.Since(began), Request: request,
		clean: s.redact}
	if err != nil {
		x.Error, x.Trace = abi.AsError(err), a.trace(name, x.Latency)
	} else {
		x.Answer = answer
	}
	h.options.OnExchange(x)
	return answer, err
}

// request is what an agent asks: a type of the contract with its own rules.
type request interface {
	abi.Encodable
	Validate() error
}

// answerOf is a pointer to a type of answer.
type answerOf[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

// run is an operation of the contract that enters the guest once: validate, begin, do, end. do fills the answer.
func run[T any, A answerOf[T]](ctx context.Context, s *Slot, name string, r request,
	do func(ctx context.Context, o *operation, answer A) error) (A, error) {
	return through(ctx, s, name, r, func(ctx context.Context) (answer A, err error) {
		if err := r.Validate(); err != nil {
			return nil, inOperation(name, err)
		}
		ctx, o, err := s.begin(ctx, name)
		if err != nil {
			return nil, err
		}
		defer o.end(&err)
		if s.following == nil {
			o.origin = OriginOf(ctx)
		}
		answer = new(T)
		if err = do(ctx, o, answer); err != nil {
			return nil, err
		}
		return answer, nil
	})
}

// Exchange is one operation of the contract as its caller saw it: for a log of the run.
type Exchange struct {
	Operation string
	// Origin is what WithOrigin said; empty where nobody did.
	Origin string
	// At is when it began, by the host's clock; Latency is how long it took.
	At      time.Time
	Latency time.Duration
	Request abi.Encodable
	// Answer is nil where Error is set.
	Answer abi.Encodable
	Error  *abi.Error
	// Trace is what the host knows of an operation that failed: scope, native calls, times. Nil when the guest was not
	// entered. An answer carries its own trace.
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

// account collects what the calls of an operation cost, for an operation that fails and so has no trace of its own.
type account struct {
	mu      sync.Mutex
	last    *operation
	io      []abi.IO
	backend time.Duration
	inGuest time.Duration
	counted map[*operation]int // how many native calls of it have been counted
}

type accountKey struct{}

func accountOf(ctx context.Context) *account {
	a, _ := ctx.Value(accountKey{}).(*account)
	return a
}

// add counts one entry into a guest. A call that enters several times, as a reset does, counts its native calls once
// each.
func (a *account) add(o *operation) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counted == nil {
		a.counted = map[*operation]int{}
	}
	seen := a.counted[o]
	a.counted[o] = len(o.IO)
	for _, io := range o.IO[seen:] {
		a.io = append(a.io, io)
		a.backend += time.Duration(io.MS * float64(time.Millisecond))
	}
	a.last, a.inGuest = o, a.inGuest+o.Guest
}

// trace is what the host knows of an operation that failed.
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

// OriginPage is the origin of what a person asked from the slot's page in the browser.
const OriginPage = "page"

type originKey struct{}

// WithOrigin says where the operations of ctx come from, for Observation and Exchange: one short word of the caller's,
// as OriginPage. The slot treats all operations alike.
func WithOrigin(ctx context.Context, origin string) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// OriginOf is what WithOrigin said; "" where nobody did.
func OriginOf(ctx context.Context) string {
	origin, _ := ctx.Value(originKey{}).(string)
	return origin
}
