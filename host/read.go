package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// Retrieve implements Contract. The host counts the tokens of the formatted context itself and refuses one that exceeds
// max_tokens or that is not exactly one memory-context element.
func (s *Slot) Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	began := time.Now()
	result, err := s.retrieve(ctx, r)
	if err == nil {
		s.askShadows(ctx, r, result, time.Since(began))
	}
	return result, err
}

func (s *Slot) retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return run(ctx, s, abi.OpRetrieve, r, func(ctx context.Context, o *operation, result *abi.RetrieveResult) error {
		o.forSession(r.SessionID)
		complete, err := o.readComplete(ctx, r, result)
		if err != nil {
			return err
		}
		count, err := o.checkContext(result.FormattedContext, r.Budget)
		result.Trace = o.trace(result.Trace)
		complete.tell(result.Trace)
		result.Trace.TokenCount = &count
		o.traceBudget(&r.Budget, result, count)
		return err
	})
}

// readComplete enters a retrieval. The ledger is read before: what arrives meanwhile counts as outstanding.
func (o *operation) readComplete(ctx context.Context, r *abi.RetrieveRequest, result *abi.RetrieveResult) (
	*completeness,
	error) {
	sc, err := o.provider.scopeOf(r.Scope)
	if err != nil {
		return nil, err
	}
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	complete, err := o.slot.host.completeness(ctx, o.state.Space())
	if err != nil {
		return nil, err
	}
	o.stamped = complete.asOf // a cassette counts how often its clock is read
	return complete, o.retrieve(ctx, r, result)
}

// FormatContext implements Contract.
func (s *Slot) FormatContext(ctx context.Context, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return run(ctx, s, abi.OpFormatContext, r,
		func(ctx context.Context, o *operation, result *abi.FormatResult) (err error) {
			if err = o.read(ctx, r.Scope, r, result); err == nil {
				result.TokenCount, err = o.checkContext(result.FormattedContext, r.Budget)
			}
			return err
		})
}

// Inventory implements Contract.
func (s *Slot) Inventory(ctx context.Context, r *abi.InventoryRequest) (*abi.Inventory, error) {
	return run(ctx, s, abi.OpInventory, r, func(ctx context.Context, o *operation, inventory *abi.Inventory) error {
		if err := o.read(ctx, r.Scope, new(abi.Empty), inventory); err != nil {
			return err
		}
		inventory.Trace = o.trace(inventory.Trace)
		return nil
	})
}

// Provenance implements Contract.
func (s *Slot) Provenance(ctx context.Context, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return run(ctx, s, abi.OpProvenance, r, func(ctx context.Context, o *operation, provenance *abi.Provenance) error {
		if err := o.read(ctx, r.Scope, r, provenance); err != nil {
			return err
		}
		provenance.Trace = o.trace(provenance.Trace)
		return nil
	})
}

// NativeQuery implements Contract. Each one is logged: it is for diagnosis.
func (s *Slot) NativeQuery(ctx context.Context, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return run(ctx, s, abi.OpNativeQuery, r, func(ctx context.Context, o *operation,
		result *abi.NativeQueryResult) error {
		if err := o.read(ctx, r.Scope, r, result); err != nil {
			return explainNative(err, o.provider.queries, r.Name)
		}
		if log := o.provider.logger; log.IsInfo() {
			log.Info("native query", "name", r.Name, "run_id", r.Scope.RunID, "persona_id", r.Scope.PersonaID)
		}
		result.Name, result.Trace = r.Name, o.trace(result.Trace)
		return nil
	})
}

// explainNative adds to the error of a native query or mutation what the module declares: the parameters of the one
// that was asked for, or which names there are.
func explainNative(err error, declarations []abi.NativeDecl, name string) error {
	e := *abi.AsError(err)
	wrong := e.Code == abi.CodeInvalidArgument || e.Code == abi.CodeUnsupported
	d := declared(declarations, name)
	switch {
	case !wrong || len(declarations) == 0:
		return err
	case d != nil && strings.HasPrefix(e.Message, "params"):
		e.Hint = joinHints(e.Hint, name+" takes "+cmp.Or(d.Params, "no parameters"))
	case d == nil && strings.HasPrefix(e.Message, "name:") && e.Hint == "":
		var names []string
		for i := range declarations {
			names = append(names, declarations[i].Name)
		}
		e.Hint = "there are " + strings.Join(names, ", ")
	default:
		return err
	}
	return &e
}

// read enters an operation that only reads a scope.
func (o *operation) read(ctx context.Context, scope abi.MemoryScope, in abi.Encodable, out abi.Decodable) error {
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return err
	}
	if err := o.at(ctx, sc); err != nil {
		return err
	}
	return o.enter(ctx, in, out)
}

// checkContext holds a formatted context to what every plugin promises: it is empty or exactly one element, and it
// fits. It returns its tokens.
func (o *operation) checkContext(text string, budget abi.ContextBudget) (int64, error) {
	if err := oneElement(text); err != nil {
		return 0, o.badContext(err.Error())
	}
	if wrong := o.wrongElement(text); wrong != "" {
		return 0, o.contractBreach(wrong)
	}
	count := int64(0)
	if text != "" {
		count = o.provider.tokens.Count([]byte(text))
	}
	if budget.MaxTokens != nil && count > *budget.MaxTokens {
		return 0, o.badContext(fmt.Sprintf("has %d tokens (%s), max_tokens is %d", count, o.provider.tokens.Name(),
			*budget.MaxTokens))
	}
	return count, nil
}

// oneElement checks that text is empty, or one memory-context element with nothing around it and no such tag inside.
func oneElement(text string) error {
	if text == "" {
		return nil
	}
	const open, end = "<" + abi.ContextTag + " ", "</" + abi.ContextTag + ">"
	if !strings.HasPrefix(text, open) || !strings.HasSuffix(text, end) {
		return fmt.Errorf("does not begin with %q and end with %q", open, end)
	}
	inner := text[len(open) : len(text)-len(end)]
	for i := range inner {
		bracket := abi.BracketLen(inner[i:])
		if bracket > 0 && abi.NamesContextTag(inner[i+bracket:]) {
			return fmt.Errorf("holds a second %s tag", abi.ContextTag)
		}
	}
	return nil
}

// Health implements Contract.
func (s *Slot) Health(ctx context.Context) (*abi.BackendHealth, error) {
	h, err := through(ctx, s, abi.OpHealth, new(abi.Empty), func(ctx context.Context) (*abi.BackendHealth, error) {
		v, err := s.use(abi.OpHealth)
		if err != nil {
			return nil, err
		}
		defer v.provider.release()
		if _, err := s.look(ctx, v.provider, nil); err != nil {
			return nil, err
		}
		health, _, err := s.health(ctx, v.provider)
		return health, err
	})
	if more := s.host.options.HealthWarnings; err == nil && more != nil {
		h.Warnings = append(h.Warnings, more()...)
	}
	return h, err
}

// health asks a provider, serving or not.
//
// answered is the HTTP status of the last native call, 0 where nothing answered.
func (s *Slot) health(ctx context.Context, p *Provider) (health *abi.BackendHealth, answered int64, err error) {
	o := s.beginOn(p, abi.OpHealth)
	defer o.end(&err)
	health = new(abi.BackendHealth)
	if err = o.enter(ctx, new(abi.Empty), health); err != nil {
		return nil, 0, err
	}
	if n := len(o.IO); n > 0 {
		answered = o.IO[n-1].Status
	}
	if health.BackendName == "" {
		health.BackendName = p.name
	}
	health.Warnings = append(health.Warnings, p.module.Warnings...)
	health.LatencyMS = ms(s.host.clock.Measured(time.Since(o.began)))
	return health, answered, nil
}

// Capabilities implements Contract.
func (s *Slot) Capabilities(ctx context.Context) (*abi.Capabilities, error) {
	if err := s.follow(ctx); err != nil {
		return nil, inOperation("capabilities", err)
	}
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
	if err := s.follow(ctx); err != nil {
		return nil, inOperation("manifest", err)
	}
	v, err := s.use("manifest")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.manifestOf(ctx, v)
}
