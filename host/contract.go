package host

import (
	"context"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
)

// The methods of Contract. Each goes through the slot's outer border: what is recorded, and what OnExchange is told, is exactly what a caller asked and got.

// SetupScope implements Contract.
func (s *Slot) SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error) {
	return through(ctx, s, abi.OpSetupScope, &scope, s.setupOf)
}

// RecordEvent implements Contract.
func (s *Slot) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return through(ctx, s, abi.OpRecordEvent, event, s.recordEvent)
}

// RecordEvents implements Contract. An event that is wrong gets its own error and stops no other.
func (s *Slot) RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	return through(ctx, s, abi.OpRecordEvents, batch, s.recordEvents)
}

// Retrieve implements Contract. The host counts the tokens of the formatted context itself and refuses one that exceeds max_tokens or that is not exactly one
// memory-context element.
func (s *Slot) Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return through(ctx, s, abi.OpRetrieve, r, s.retrieve)
}

// FormatContext implements Contract.
func (s *Slot) FormatContext(ctx context.Context, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return through(ctx, s, abi.OpFormatContext, r, s.formatContext)
}

// ResetScope implements Contract.
func (s *Slot) ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error) {
	return through(ctx, s, abi.OpResetScope, &scope, s.resetOf)
}

// Health implements Contract.
func (s *Slot) Health(ctx context.Context) (*abi.BackendHealth, error) {
	h, err := through(ctx, s, abi.OpHealth, new(abi.Empty), s.healthOf)
	if err != nil {
		return nil, err
	}
	if w := s.host.tape.warning(); w != "" {
		h.Warnings = append(h.Warnings, w)
	}
	if more := s.host.options.HealthWarnings; more != nil {
		h.Warnings = append(h.Warnings, more()...)
	}
	return h, nil
}

// SetMode implements Contract. The mode is kept in the data folder before it is answered.
func (s *Slot) SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	return through(ctx, s, abi.OpSetMode, mode, s.setMode)
}

// Readiness implements Contract. It looks until the answer is no longer pending or the request's time is over; time over is reported as pending.
func (s *Slot) Readiness(ctx context.Context, r *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	return through(ctx, s, abi.OpReadiness, r, s.readiness)
}

// Inventory implements Contract.
func (s *Slot) Inventory(ctx context.Context, r *abi.InventoryRequest) (*abi.Inventory, error) {
	return through(ctx, s, abi.OpInventory, r, s.inventory)
}

// Provenance implements Contract.
func (s *Slot) Provenance(ctx context.Context, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return through(ctx, s, abi.OpProvenance, r, s.provenance)
}

// NativeQuery implements Contract. Each one is logged: it is for diagnosis.
func (s *Slot) NativeQuery(ctx context.Context, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return through(ctx, s, abi.OpNativeQuery, r, s.nativeQuery)
}

// NativeMutation implements Contract.
func (s *Slot) NativeMutation(ctx context.Context, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return through(ctx, s, abi.OpNativeMutation, r, s.nativeMutation)
}

// ApplyFeedback implements Contract.
func (s *Slot) ApplyFeedback(ctx context.Context, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return through(ctx, s, abi.OpApplyFeedback, r, s.applyFeedback)
}

// The operations whose request is not what the work is done with.

func (s *Slot) setupOf(ctx context.Context, scope *abi.MemoryScope) (*abi.SetupReceipt, error) {
	return s.setupScope(ctx, *scope)
}

func (s *Slot) resetOf(ctx context.Context, scope *abi.MemoryScope) (*abi.ResetReceipt, error) {
	return s.resetScope(ctx, *scope)
}

func (s *Slot) healthOf(ctx context.Context, _ *abi.Empty) (*abi.BackendHealth, error) {
	return s.askHealth(ctx)
}

// through runs one operation of the contract at the slot's outer border.
func through[R, A abi.Encodable](ctx context.Context, s *Slot, name string, request R, do func(context.Context, R) (A, error)) (answer A, err error) {
	h := s.host
	if h.tape == nil && h.options.OnExchange == nil {
		return do(ctx, request)
	}
	ctx, end, err := h.tape.begin(ctx, name, request)
	if err != nil {
		return answer, err
	}
	began, at := time.Now(), h.now()
	var a *account
	if h.options.OnExchange != nil && accountOf(ctx) == nil { // an operation inside another is a part of that
		a = new(account)
		ctx = context.WithValue(ctx, accountKey{}, a)
	}
	answer, err = do(ctx, request)
	if end != nil {
		end(answer, err)
	}
	if a != nil {
		x := &Exchange{Operation: name, At: at, Latency: time.Since(began), Request: request, clean: s.redact}
		if err != nil {
			x.Error = abi.AsError(err)
			x.Trace = a.trace(name, x.Latency)
		} else {
			x.Answer = answer
		}
		h.options.OnExchange(x)
	}
	return answer, err
}

// Exchange is one operation of the contract as its caller saw it: for a log of the run.
type Exchange struct {
	Operation string
	// At is when it began, by the host's clock; Latency is how long it took.
	At      time.Time
	Latency time.Duration
	Request abi.Encodable
	// Answer is nil where Error is set.
	Answer abi.Encodable
	Error  *abi.Error
	// Trace tells of an operation that failed what the host knows: scope, native calls, times. Nil where the guest was not entered; answers carry their own.
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

// account gathers what the calls of an operation cost, for when it fails and has no trace of its own.
type account struct {
	mu      sync.Mutex
	call    *call // the last one
	io      []abi.IO
	backend time.Duration
	inGuest time.Duration
	counted map[*call]int // how many native calls of it have been counted
}

type accountKey struct{}

func accountOf(ctx context.Context) *account {
	a, _ := ctx.Value(accountKey{}).(*account)
	return a
}

// add counts one entry into a guest. A call that enters several times, as a reset does, counts its native calls once each.
func (a *account) add(c *call) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counted == nil {
		a.counted = map[*call]int{}
	}
	seen := a.counted[c]
	a.counted[c] = len(c.io)
	for _, io := range c.io[seen:] {
		a.io = append(a.io, io)
		a.backend += time.Duration(io.MS * float64(time.Millisecond))
	}
	a.call, a.inGuest = c, a.inGuest+c.guest
}

// trace is what the host knows of an operation that failed.
func (a *account) trace(name string, took time.Duration) *abi.Trace {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.call == nil {
		return nil
	}
	p := a.call.provider
	return &abi.Trace{Operation: name, BackendName: p.name, ConditionKind: p.kind, Scope: a.call.scope, Generation: a.call.generation, Tokenizer: p.tokens.Name(),
		IO: a.io, LatencyMS: ms(took), BackendMS: ms(a.backend), PluginMS: ms(max(0, a.inGuest-a.backend)), HostMS: ms(max(0, took-a.inGuest))}
}
