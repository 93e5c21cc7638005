package host

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
)

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

// retrieve enters the guest for a retrieval. Where the budget has max_tokens and nothing limits the items, it says how
// many items to ask the backend for, and asks once more where all of them fitted and the backend may have more:
//
//	budget 800 tokens, 40 an item   asks for 20: 12 come            done: the backend has no more
//	                                asks for 20: 20 come, 18 fit    done: the budget is full
//	                                asks for 20: 20 come in 500     asks for 32
//
// The second number is at most twice the first, so that at most twice the budget is fetched. What is shown is always
// one answer of the backend, in its order.
func (o *operation) retrieve(ctx context.Context, r *abi.RetrieveRequest, result *abi.RetrieveResult) error {
	o.items = o.provider.itemsOf(&r.Budget)
	if err := o.read(ctx, r.Scope, r, result); err != nil {
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
