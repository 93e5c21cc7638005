// Package budget converts a token budget to a number of items. If the budget has max_tokens and nothing limits the
// items, the host chooses how many to ask the backend for, and asks once more if all of them fit and the backend may
// have more:
//
//	budget 800 tokens, 40 an item   asks for 20: 12 come            done: the backend has no more
//	                                asks for 20: 20 come, 18 fit    done: the budget is full
//	                                asks for 20: 20 come in 500     asks for 32
//
// The second number is at most twice the first, so that at most twice the budget is fetched. The context always shows a
// single answer of the backend, in its order.
package budget

import (
	"fmt"

	"github.com/memhost/memhost/abi"
)

// Items describes what limits the number of items that a provider asks its backend for.
type Items struct {
	// Limit is the limit in the module's manifest that turns max_tokens into a number of items; nil if none applies.
	Limit *abi.NativeLimit
	// Set is true if the configuration limits the items itself.
	Set bool
	// ByBudget is true if the host may choose the number, as under the profile best.
	ByBudget bool
}

// First is how many items to ask for, based on the declared tokens per item; 0 if that is left to the provider.
func (i Items) First(b *abi.ContextBudget) int64 {
	if i.Limit == nil || i.Set || !i.ByBudget || b.MaxItems != nil || b.MaxTokens == nil {
		return 0
	}
	return i.belowCeiling(*b.MaxTokens / i.Limit.TokensPerItem)
}

// belowCeiling clamps n between 1 and the declared ceiling.
func (i Items) belowCeiling(n int64) int64 {
	if i.Limit.Ceiling > 0 {
		n = min(n, i.Limit.Ceiling)
	}
	return max(1, n)
}

// More is how many items to ask for in a second request, based on the tokens that the first items took; 0 if another
// request is no use. count counts the tokens of a text.
func (i Items) More(b *abi.ContextBudget, first int64, result *abi.RetrieveResult, count func([]byte) int64) int64 {
	if first == 0 || !allShown(result) {
		return 0
	}
	asked := first
	if use, ok := result.Trace.BudgetApplied["max_items"]; ok && use.Sent != nil {
		asked = *use.Sent // for one kind of item, if the provider asks for several
	}
	if receivedItems(result) < asked {
		return 0
	}
	tokens := count([]byte(result.FormattedContext))
	times := min(2, float64(*b.MaxTokens)/float64(max(1, tokens)))
	more := i.belowCeiling(int64(times * float64(first)))
	if more <= first {
		return 0
	}
	return more
}

// allShown reports whether everything that the backend returned fit the budget.
func allShown(r *abi.RetrieveResult) bool {
	return r.Trace != nil && r.FormattedContext != "" && (r.Trace.Truncated == nil || !*r.Trace.Truncated)
}

// receivedItems is how many items the backend returned, of the kind that the request limits.
func receivedItems(r *abi.RetrieveResult) int64 {
	if use, ok := r.Trace.BudgetApplied["max_items"]; ok && use.Received != nil {
		return *use.Received
	}
	return int64(len(r.Evidence))
}

// Explain fills in the host's part of a retrieval's budget_applied, and warns if something other than the budget
// limited the context. items is how many items were finally asked for, 0 if that was left to the provider; tokens is
// the size of the context.
func (i Items) Explain(b *abi.ContextBudget, items int64, result *abi.RetrieveResult, tokens int64) {
	t := result.Trace
	asked := map[string]*int64{"max_tokens": b.MaxTokens, "min_tokens": b.MinTokens, "max_items": b.MaxItems}
	if items > 0 {
		asked["max_items"] = &items
	}
	for name, use := range t.BudgetApplied {
		use.Asked, use.Ceiling = asked[name], nil
		if name == "max_items" {
			if i.Limit != nil && i.Limit.Ceiling > 0 {
				use.Ceiling = &i.Limit.Ceiling
			}
			if use.Received == nil {
				received := int64(len(result.Evidence))
				use.Received = &received
			}
		}
		t.BudgetApplied[name] = use
	}
	if why := i.unused(b, items, result, tokens); why != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: %d of %d tokens: %s", abi.WarnBudgetUnused, tokens,
			*b.MaxTokens, why))
	}
}

// unused names what limited a context although the budget has room for one more item of the same size; "" if nothing
// did, or if the caller limited the items.
func (i Items) unused(b *abi.ContextBudget, items int64, result *abi.RetrieveResult, tokens int64) string {
	use, ok := result.Trace.BudgetApplied["max_items"]
	if !ok || use.Sent == nil || b.MaxTokens == nil || b.MaxItems != nil || !allShown(result) {
		return ""
	}
	received := receivedItems(result)
	if received < *use.Sent || received == 0 || tokens+tokens/received >= *b.MaxTokens {
		return ""
	}
	switch limit := i.Limit; {
	case limit == nil:
		return fmt.Sprintf("the provider asks for %d items whatever the budget is", *use.Sent)
	case i.Set:
		return fmt.Sprintf("the configuration asks for %d items (%s)", *use.Sent, limit.Configured)
	case *use.Sent == limit.Ceiling:
		return fmt.Sprintf("%s gives at most %d items: %s", limit.Route, limit.Ceiling, limit.Because)
	case items == 0:
		return fmt.Sprintf("memory.profile source-design asks for %d items whatever max_tokens is", *use.Sent)
	default:
		return fmt.Sprintf("the items were shorter than the %d tokens that the manifest declares; %d were asked for "+
			"in the end", limit.TokensPerItem, *use.Sent)
	}
}
