package host

import (
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/report"
)

// Retrieve implements Contract. The host counts the tokens of the formatted context itself. It rejects a context that
// exceeds max_tokens or is not a memory-context element, and escapes tags of the element inside it.
func (s *Slot) Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	began := time.Now()
	result, err := s.retrieve(ctx, r)
	if err == nil {
		s.followers.retrieved(ctx, r, result, time.Since(began))
	}
	return result, err
}

// retrieve runs a retrieval and checks the provider's answer against the contract.
func (s *Slot) retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return operate(ctx, s, abi.OpRetrieve, r, func(ctx context.Context, o *operation, result *abi.RetrieveResult) error {
		o.forSession(r.SessionID)
		sc, err := o.provider.scopeOf(r.Scope)
		if err != nil {
			return err
		}
		if err = o.at(ctx, sc); err != nil {
			return err
		}
		// Read the ledger first: events that arrive during the retrieval then count as outstanding.
		complete, err := o.completeness(ctx)
		if err != nil {
			return err
		}
		items, err := o.fetch(ctx, r, complete.AsOf, result)
		if err != nil {
			return err
		}
		tokens, changed, err := o.checkContext(&result.FormattedContext, result.Evidence, r.Budget)
		result.Trace = o.trace(result.Trace)
		if changed.tags > 0 {
			result.Trace.Warnings = append(result.Trace.Warnings, changed.warning())
		}
		complete.Report(result.Trace)
		result.Trace.TokenCount = &tokens
		o.provider.items.Explain(&r.Budget, items, result, tokens)
		return err
	})
}

// fetch enters the guest for a retrieval, and once more if the budget has room for more items (package budget). It
// returns how many items were finally asked for; 0 if that was left to the provider. now is the operation's time,
// passed in because a cassette counts how often the clock is read.
func (o *operation) fetch(ctx context.Context, r *abi.RetrieveRequest, now string, result *abi.RetrieveResult) (
	items int64, err error) {
	envelope := &abi.Envelope{Now: now, Items: o.provider.items.First(&r.Budget), Body: abi.Marshal(r)}
	if err := o.enterWith(ctx, envelope, result); err != nil {
		return 0, err
	}
	more := o.provider.items.More(&r.Budget, envelope.Items, result, o.provider.tokens.Count)
	if more == 0 {
		return envelope.Items, nil
	}
	ctx, cancel := context.WithDeadline(ctx, o.Deadline) // one deadline for both
	defer cancel()
	envelope.Items = more
	*result = abi.RetrieveResult{}
	inGuest := o.Guest
	err = o.enterWith(ctx, envelope, result)
	o.Guest += inGuest
	return more, err
}

// FormatContext implements Contract.
func (s *Slot) FormatContext(ctx context.Context, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return operate(ctx, s, abi.OpFormatContext, r,
		func(ctx context.Context, o *operation, result *abi.FormatResult) (err error) {
			if err = o.read(ctx, r.Scope, r, result); err != nil {
				return err
			}
			var changed contextChanges
			result.TokenCount, changed, err = o.checkContext(&result.FormattedContext, result.Evidence, r.Budget)
			result.Truncated = result.Truncated || changed.removedLines > 0
			return err
		})
}

// Inventory implements Contract.
func (s *Slot) Inventory(ctx context.Context, r *abi.InventoryRequest) (*abi.Inventory, error) {
	return operate(ctx, s, abi.OpInventory, r, func(ctx context.Context, o *operation, inventory *abi.Inventory) error {
		if err := o.read(ctx, r.Scope, new(abi.Empty), inventory); err != nil {
			return err
		}
		inventory.Trace = o.trace(inventory.Trace)
		return nil
	})
}

// Provenance implements Contract.
func (s *Slot) Provenance(ctx context.Context, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return operate(ctx, s, abi.OpProvenance, r, func(ctx context.Context, o *operation, provenance *abi.Provenance) error {
		if err := o.read(ctx, r.Scope, r, provenance); err != nil {
			return err
		}
		provenance.Trace = o.trace(provenance.Trace)
		return nil
	})
}

// NativeQuery implements Contract. Each one is logged: it is for diagnosis.
func (s *Slot) NativeQuery(ctx context.Context, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return operate(ctx, s, abi.OpNativeQuery, r, func(ctx context.Context, o *operation,
		result *abi.NativeQueryResult) error {
		if err := o.provider.queries.check(r.Name, r.Params); err != nil {
			return err
		}
		if err := o.read(ctx, r.Scope, r, result); err != nil {
			return o.provider.queries.explain(err, r.Name)
		}
		if log := o.provider.logger; log.IsInfo() {
			log.Info("native query", "name", r.Name, "run_id", r.Scope.RunID, "persona_id", r.Scope.PersonaID)
		}
		result.Name, result.Trace = r.Name, o.trace(result.Trace)
		return nil
	})
}

// read runs an operation that only reads a scope.
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

// contextChanges is what checkContext changed in a formatted context.
type contextChanges struct {
	tags         int // tags of the element inside the text, each escaped with a backslash
	removedLines int // removed at the end
}

func (c contextChanges) warning() string {
	w := fmt.Sprintf("%s: %d tags inside the memory-context element", answercheck.WarnContextEscaped, c.tags)
	if c.removedLines > 0 {
		w += fmt.Sprintf("; %d lines at the end were removed to fit max_tokens", c.removedLines)
	}
	return w
}

// checkContext checks what every plugin guarantees about a formatted context: it is empty or one element for this
// provider and scope, and it fits the budget. It escapes the element's tags inside the text. If the text only fits
// without the backslashes, it removes lines at the end. It returns the text's tokens and what it changed.
func (o *operation) checkContext(text *string, evidence []abi.Evidence, budget abi.ContextBudget) (tokens int64,
	changed contextChanges, err error) {
	if wrong := answercheck.NotOneElement(*text); wrong != "" {
		return 0, changed, o.badContext(wrong)
	}
	if wrong := answercheck.WrongElement(*text, o.provider.name, o.provider.backendName, o.memoryScope()); wrong != "" {
		return 0, changed, o.contractBreach(wrong)
	}
	fits := func(text string) bool {
		tokens = 0
		if text != "" {
			tokens = o.provider.tokens.Count([]byte(text))
		}
		return budget.MaxTokens == nil || tokens <= *budget.MaxTokens
	}
	if !fits(*text) {
		return 0, changed, o.badContext(fmt.Sprintf("has %d tokens (%s), max_tokens is %d", tokens,
			o.provider.tokens.Name(), *budget.MaxTokens))
	}
	*text, changed.tags = answercheck.EscapeInside(*text, evidence)
	if changed.tags > 0 && !fits(*text) {
		*text, changed.removedLines = answercheck.CutToFit(*text, evidence, fits)
		fits(*text) // counts the remaining tokens
	}
	return tokens, changed, nil
}

// Health implements Contract.
func (s *Slot) Health(ctx context.Context) (*abi.BackendHealth, error) {
	h, err := perform(ctx, s, abi.OpHealth, new(abi.Empty), func(ctx context.Context) (*abi.BackendHealth, error) {
		v, err := s.take(abi.OpHealth)
		if err != nil {
			return nil, err
		}
		defer v.provider.release()
		if _, err := s.readMode(ctx, v.provider, nil); err != nil {
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

// health runs the health check of a provider, serving or not.
//
// answered is the HTTP status of the last native call; 0 if there was no answer.
func (s *Slot) health(ctx context.Context, p *Provider) (health *abi.BackendHealth, answered int64, err error) {
	ctx, o := s.beginOn(ctx, p, abi.OpHealth)
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
	health.Warnings = append(health.Warnings, s.host.storeWarnings...)
	if s.host.archiveWarning != "" {
		health.Warnings = append(health.Warnings, s.host.archiveWarning)
	}
	if failing := stateError(s.host.fleet.Failing()); failing != nil {
		if health.Status == abi.HealthOK {
			health.Status = abi.HealthDegraded
		}
		health.Warnings = append(health.Warnings, joinHints(
			"store_failing: the last write could not be kept: "+failing.Error(), abi.AsError(failing).Hint))
	}
	health.LatencyMS = ms(s.host.clock.Measured(time.Since(o.began)))
	return health, answered, nil
}

// Capabilities implements Contract.
func (s *Slot) Capabilities(ctx context.Context) (*report.Capabilities, error) {
	if err := s.loadServing(ctx); err != nil {
		return nil, inOperation("capabilities", err)
	}
	v, err := s.take("capabilities")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	c := v.capabilities
	return &c, nil
}

// Manifest implements Contract.
func (s *Slot) Manifest(ctx context.Context) (*report.RunManifest, error) {
	if err := s.loadServing(ctx); err != nil {
		return nil, inOperation("manifest", err)
	}
	v, err := s.take("manifest")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.manifestOf(ctx, v)
}
