package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
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
	*completeness, error) {
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
	if wrong := answercheck.NotOneElement(text); wrong != "" {
		return 0, o.badContext(wrong)
	}
	if wrong := answercheck.WrongElement(text, o.provider.name, o.provider.backendName, o.memoryScope()); wrong != "" {
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
	if s.host.storeWarning != "" {
		health.Warnings = append(health.Warnings, s.host.storeWarning)
	}
	health.LatencyMS = ms(s.host.clock.Measured(time.Since(o.began)))
	return health, answered, nil
}

// Capabilities implements Contract.
func (s *Slot) Capabilities(ctx context.Context) (*abi.Capabilities, error) {
	if err := s.loadServing(ctx); err != nil {
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
	if err := s.loadServing(ctx); err != nil {
		return nil, inOperation("manifest", err)
	}
	v, err := s.use("manifest")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	return s.manifestOf(ctx, v)
}

// itemLimit finds the limit by which max_tokens becomes a number of items: the first with tokens per item that counts
// under an effective block. set tells that the block limits the items itself.
func itemLimit(limits []abi.NativeLimit, block abi.Raw) (limit *abi.NativeLimit, set bool, err error) {
	for i := range limits {
		l := &limits[i]
		if l.TokensPerItem == 0 {
			continue
		}
		if l.Pointer != "" {
			counts, err := meets(block, l.Pointer, l.Equals)
			if err != nil {
				return nil, false, err
			}
			if !counts {
				continue
			}
		}
		if l.Configured != "" {
			set, err = meets(block, l.Configured, nil)
		}
		return l, set, err
	}
	return nil, false, nil
}

// retrieve enters the guest for a retrieval of its scope. Where the budget has max_tokens and nothing limits the items,
// it says how many items to ask the backend for, and asks once more where all of them fitted and the backend may have
// more:
//
//	budget 800 tokens, 40 an item   asks for 20: 12 come            done: the backend has no more
//	                                asks for 20: 20 come, 18 fit    done: the budget is full
//	                                asks for 20: 20 come in 500     asks for 32
//
// The second number is at most twice the first, so that at most twice the budget is fetched. What is shown is always
// one answer of the backend, in its order.
func (o *operation) retrieve(ctx context.Context, r *abi.RetrieveRequest, result *abi.RetrieveResult) error {
	o.items = o.provider.itemsOf(&r.Budget)
	if err := o.enter(ctx, r, result); err != nil {
		return err
	}
	more := o.moreItems(&r.Budget, result)
	if more == 0 {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, o.Deadline) // one deadline for both
	defer cancel()
	o.items = more
	*result = abi.RetrieveResult{}
	inGuest := o.Guest
	err := o.enter(ctx, r, result)
	o.Guest += inGuest
	return err
}

// itemsOf is how many items to ask for, by the declared tokens per item; 0 when the host leaves that to the provider.
func (p *Provider) itemsOf(b *abi.ContextBudget) int64 {
	if p.itemLimit == nil || p.itemsSet || p.config.Profile != abi.ProfileBest || b.MaxItems != nil ||
		b.MaxTokens == nil {
		return 0
	}
	return p.belowCeiling(*b.MaxTokens / p.itemLimit.TokensPerItem)
}

// belowCeiling is n, at least 1 and at most the declared ceiling.
func (p *Provider) belowCeiling(n int64) int64 {
	if p.itemLimit.Ceiling > 0 {
		n = min(n, p.itemLimit.Ceiling)
	}
	return max(1, n)
}

// moreItems is how many items to ask for once more, by the tokens that the first ones took; 0 where that is no use.
func (o *operation) moreItems(b *abi.ContextBudget, result *abi.RetrieveResult) int64 {
	if o.items == 0 || !allShown(result) {
		return 0
	}
	asked := o.items
	if use, ok := result.Trace.BudgetApplied["max_items"]; ok && use.Sent != nil {
		asked = *use.Sent // of one kind of item, where the provider asks for several
	}
	if receivedItems(result) < asked {
		return 0
	}
	tokens := o.provider.tokens.Count([]byte(result.FormattedContext))
	times := min(2, float64(*b.MaxTokens)/float64(max(1, tokens)))
	more := o.provider.belowCeiling(int64(times * float64(o.items)))
	if more <= o.items {
		return 0
	}
	return more
}

// allShown reports whether everything that came fitted the budget.
func allShown(r *abi.RetrieveResult) bool {
	return r.Trace != nil && r.FormattedContext != "" && (r.Trace.Truncated == nil || !*r.Trace.Truncated)
}

// receivedItems is how many items the backend gave, of those that the number asked for counts.
func receivedItems(r *abi.RetrieveResult) int64 {
	if use, ok := r.Trace.BudgetApplied["max_items"]; ok && use.Received != nil {
		return *use.Received
	}
	return int64(len(r.Evidence))
}

// traceBudget fills what is the host's of a retrieval's budget_applied, and warns where something other than the budget
// ended the context. tokens is what the context has.
func (o *operation) traceBudget(b *abi.ContextBudget, result *abi.RetrieveResult, tokens int64) {
	t := result.Trace
	asked := map[string]*int64{"max_tokens": b.MaxTokens, "min_tokens": b.MinTokens, "max_items": b.MaxItems}
	if o.items > 0 {
		asked["max_items"] = &o.items
	}
	for name, use := range t.BudgetApplied {
		use.Asked, use.Ceiling = asked[name], nil
		if name == "max_items" {
			if l := o.provider.itemLimit; l != nil && l.Ceiling > 0 {
				use.Ceiling = &l.Ceiling
			}
			if use.Received == nil {
				received := int64(len(result.Evidence))
				use.Received = &received
			}
		}
		t.BudgetApplied[name] = use
	}
	if why := o.unused(b, result, tokens); why != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: %d of %d tokens: %s", abi.WarnBudgetUnused, tokens,
			*b.MaxTokens, why))
	}
}

// unused names what ended a context although the budget has room for one more item like those in it; "" where nothing
// did, or where the caller limited the items.
func (o *operation) unused(b *abi.ContextBudget, result *abi.RetrieveResult, tokens int64) string {
	use, ok := result.Trace.BudgetApplied["max_items"]
	if !ok || use.Sent == nil || b.MaxTokens == nil || b.MaxItems != nil || !allShown(result) {
		return ""
	}
	received := receivedItems(result)
	if received < *use.Sent || received == 0 || tokens+tokens/received >= *b.MaxTokens {
		return ""
	}
	p := o.provider
	switch limit := p.itemLimit; {
	case limit == nil:
		return fmt.Sprintf("the provider asks for %d items whatever the budget is", *use.Sent)
	case p.itemsSet:
		return fmt.Sprintf("the configuration asks for %d items (%s)", *use.Sent, limit.Configured)
	case *use.Sent == limit.Ceiling:
		return fmt.Sprintf("%s gives at most %d items: %s", limit.Route, limit.Ceiling, limit.Because)
	case o.items == 0:
		return fmt.Sprintf("memory.profile source-design asks for %d items whatever max_tokens is", *use.Sent)
	default:
		return fmt.Sprintf("the items were shorter than the %d tokens that the manifest declares; %d were asked for "+
			"in the end", limit.TokensPerItem, *use.Sent)
	}
}
