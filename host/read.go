package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
)

// request is what an agent asks: a type of the contract with its own rules.
type request interface {
	abi.Encodable
	Validate() error
}

// answerOf is a pointer to a type with which a guest answers.
type answerOf[T any] interface {
	*T
	abi.Decodable
}

// run is the shape of every operation that is asked for by one request: validate, begin, enter, complete the answer. enter is read, or change for what may
// write; complete may be nil.
func run[T any, A answerOf[T]](s *Slot, name string, r request, enter func(*operation, A) error, complete func(*operation, A) error) (answer A, err error) {
	if err := r.Validate(); err != nil {
		return nil, inOperation(name, err)
	}
	o, err := s.begin(name)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	answer = new(T)
	if err = enter(o, answer); err != nil {
		return nil, err
	}
	if complete != nil {
		if err = complete(o, answer); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// retrieve is Retrieve. The host counts the tokens of the formatted context itself and refuses one that exceeds max_tokens or that is not exactly one
// memory-context element.
func (s *Slot) retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return run(s, abi.OpRetrieve, r, func(o *operation, result *abi.RetrieveResult) error {
		o.call.readOnly = o.provider.testSession(r.SessionID)
		return o.read(ctx, r.Scope, r, result)
	}, func(o *operation, result *abi.RetrieveResult) error {
		count, err := o.checkContext(result.FormattedContext, r.Budget)
		result.Trace = o.trace(result.Trace)
		result.Trace.TokenCount = &count
		return err
	})
}

// formatContext is FormatContext.
func (s *Slot) formatContext(ctx context.Context, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return run(s, abi.OpFormatContext, r, func(o *operation, result *abi.FormatResult) error {
		return o.read(ctx, r.Scope, r, result)
	}, func(o *operation, result *abi.FormatResult) (err error) {
		result.TokenCount, err = o.checkContext(result.FormattedContext, r.Budget)
		return err
	})
}

// read enters an operation that only reads a scope.
func (o *operation) read(ctx context.Context, scope abi.MemoryScope, in abi.Encodable, out abi.Decodable) error {
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return err
	}
	if err := o.at(ctx, sc, errReadState); err != nil {
		return err
	}
	return o.enter(ctx, in, out)
}

// change enters an operation that may change a scope, in its turn. skipped answers for it while the slot is read-only.
func (o *operation) change(ctx context.Context, scope abi.MemoryScope, in abi.Encodable, out abi.Decodable, skipped func()) error {
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return err
	}
	if !o.provider.has(o.call.op) {
		return o.provider.unsupported(o.call.op)
	}
	if o.call.readOnly || !o.slot.mode.beginWrite(sc.key) {
		skipped()
		return o.at(ctx, sc, nil)
	}
	defer o.slot.mode.endWrite(sc.key)
	o.admitted = true
	yields := slices.Contains(o.provider.module.Manifest.YieldsScope, o.call.op)
	if yields { // of the operations that let writes pass one runs at a time: what one works off the next need not
		if err := sc.takeWork(ctx, o.call.op); err != nil {
			return err
		}
		defer sc.endWork()
	}
	if err := sc.takeTurn(ctx, o.call.op); err != nil {
		return err
	}
	err = func() error {
		if err := o.slot.ensureSetUp(ctx, o.provider, sc); err != nil {
			return err
		}
		return o.at(ctx, sc, nil)
	}()
	if err != nil || !yields {
		defer sc.endTurn()
		if err == nil {
			err = o.enter(ctx, in, out)
		}
		if err != nil {
			return err
		}
		return o.commitState(ctx)
	}
	// Other writes of the scope pass while it runs. What it wrote counts if nobody was quicker, and if the generation is still the same.
	sc.endTurn()
	if err := o.enter(ctx, in, out); err != nil {
		return err
	}
	if err := sc.takeTurn(context.WithoutCancel(ctx), o.call.op); err != nil {
		return err
	}
	defer sc.endTurn()
	if now := sc.generation.Load(); now != o.call.generation {
		return abi.NewError(abi.CodeConflict, fmt.Sprintf("the scope was reset meanwhile: it is in generation %d, this began in %d", now, o.call.generation)).WithReason("generation")
	}
	return o.commitState(ctx)
}

// askHealth is Health.
func (s *Slot) askHealth(ctx context.Context) (*abi.BackendHealth, error) {
	v, err := s.use(abi.OpHealth)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.health(ctx, v.provider)
}

// health asks a provider, serving or not.
func (s *Slot) health(ctx context.Context, p *Provider) (health *abi.BackendHealth, err error) {
	o := s.beginOn(p, abi.OpHealth)
	defer o.end(&err)
	health = new(abi.BackendHealth)
	if err = o.enter(ctx, new(abi.Empty), health); err != nil {
		return nil, err
	}
	switch health.Status {
	case abi.HealthOK, abi.HealthDegraded, abi.HealthUnavailable:
	default:
		return nil, p.breach(abi.OpHealth, fmt.Sprintf("status %q is none of ok, degraded, unavailable", health.Status))
	}
	if health.BackendName == "" {
		health.BackendName = p.name
	}
	health.Warnings = append(health.Warnings, p.module.Warnings...)
	health.LatencyMS = ms(s.host.tape.elapsed(time.Since(o.began)))
	return health, nil
}

// beginOn opens an operation on a provider that the caller already holds, which is therefore not closed even when it has been retired, or that does not
// serve yet.
func (s *Slot) beginOn(p *Provider, name string) *operation {
	p.inFlight.Add(1)
	return &operation{slot: s, provider: p, began: time.Now(), call: &call{op: name, provider: p}}
}

// Capabilities implements Contract.
func (s *Slot) Capabilities(context.Context) (*abi.Capabilities, error) {
	v, err := s.use("capabilities")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	c := v.capabilities
	return &c, nil
}

// Manifest implements Contract.
func (s *Slot) Manifest(ctx context.Context) (*abi.RunManifest, error) {
	v, err := s.use("manifest")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.manifestOf(ctx, v)
}

// inventory is Inventory.
func (s *Slot) inventory(ctx context.Context, r *abi.InventoryRequest) (*abi.Inventory, error) {
	return run(s, abi.OpInventory, r, func(o *operation, inventory *abi.Inventory) error {
		return o.read(ctx, r.Scope, new(abi.Empty), inventory)
	}, func(o *operation, inventory *abi.Inventory) error {
		inventory.Trace = o.trace(inventory.Trace)
		return nil
	})
}

// provenance is Provenance.
func (s *Slot) provenance(ctx context.Context, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return run(s, abi.OpProvenance, r, func(o *operation, provenance *abi.Provenance) error {
		return o.read(ctx, r.Scope, r, provenance)
	}, func(o *operation, provenance *abi.Provenance) error {
		provenance.Trace = o.trace(provenance.Trace)
		return nil
	})
}

// nativeQuery is NativeQuery. Each one is logged: it is for diagnosis.
func (s *Slot) nativeQuery(ctx context.Context, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return run(s, abi.OpNativeQuery, r, func(o *operation, result *abi.NativeQueryResult) error {
		return o.read(ctx, r.Scope, r, result)
	}, func(o *operation, result *abi.NativeQueryResult) error {
		if log := o.provider.logger; log.IsInfo() {
			log.Info("native query", "name", r.Name, "run_id", r.Scope.RunID, "persona_id", r.Scope.PersonaID)
		}
		result.Name, result.Trace = r.Name, o.trace(result.Trace)
		return nil
	})
}

// nativeMutation is NativeMutation.
func (s *Slot) nativeMutation(ctx context.Context, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return run(s, abi.OpNativeMutation, r, func(o *operation, receipt *abi.MutationReceipt) error {
		return o.change(ctx, r.Scope, r, receipt, func() { receipt.Status = string(abi.StatusSkippedReadOnly) })
	}, func(o *operation, receipt *abi.MutationReceipt) error {
		receipt.Trace = o.trace(receipt.Trace)
		return nil
	})
}

// applyFeedback is ApplyFeedback.
func (s *Slot) applyFeedback(ctx context.Context, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return run(s, abi.OpApplyFeedback, r, func(o *operation, receipt *abi.FeedbackReceipt) error {
		if o.provider.module.has(abi.OpApplyFeedback) && !o.provider.config.Feedback {
			return abi.NewError(abi.CodeUnsupported, "feedback is off").WithReason("feedback_off").WithHint("set memory.feedback: true; the run manifest then says feedback_enabled")
		}
		o.call.readOnly = o.provider.testSession(r.SessionID)
		return o.change(ctx, r.Scope, r, receipt, func() { receipt.Status = string(abi.StatusSkippedReadOnly) })
	}, func(o *operation, receipt *abi.FeedbackReceipt) error {
		receipt.FeedbackID, receipt.Trace = r.FeedbackID, o.trace(receipt.Trace)
		return nil
	})
}
