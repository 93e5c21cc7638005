package sdk

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Labels returns which of the labels scenario, context and attribute a request sets, and its filters, in byte order.
// With filters.cross_context true the context is not used as a filter, so it is left out.
func Labels(r *abi.RetrieveRequest) []string {
	var names []string
	if r.Scenario != "" {
		names = append(names, "scenario")
	}
	if r.Context != "" && !CrossContext(r) {
		names = append(names, "context")
	}
	if r.Attribute != "" {
		names = append(names, "attribute")
	}
	for _, name := range abi.SortedKeys(r.Filters) {
		if name != "cross_context" {
			names = append(names, name)
		}
	}
	return names
}

// CrossContext reports whether a request asks not to be filtered by its context.
func CrossContext(r *abi.RetrieveRequest) bool {
	return len(r.Filters) > 0 && string(r.Filters["cross_context"]) == "true"
}

// Filters returns a trace's filters_applied if all labels are applied in the same way.
func Filters(labels []string, how abi.FilterMode) map[string]string {
	filters := make(map[string]string, len(labels))
	for _, name := range labels {
		filters[name] = string(how)
	}
	return filters
}

// Report sets the trace's token_count, truncated and budget_shortfall (in tokens), and budget_applied for the fields
// that the formatter applies. BudgetApplied is never nil afterwards.
func (f Fitted) Report(t *abi.Trace, budget abi.ContextBudget) {
	t.TokenCount, t.FrameTokens, t.Truncated = Ptr(f.Tokens), Ptr(f.FrameTokens), Ptr(f.Truncated)
	t.BudgetApplied = map[string]abi.BudgetUse{}
	if budget.MaxTokens != nil {
		t.BudgetApplied["max_tokens"] = abi.BudgetUse{How: "formatter", Shown: Ptr(f.Tokens - f.FrameTokens)}
	}
	if budget.MaxItems != nil {
		t.BudgetApplied["max_items"] = abi.BudgetUse{How: "formatter"}
	}
	if budget.MinTokens != nil {
		t.BudgetApplied["min_tokens"] = abi.BudgetUse{How: "advisory"}
		if short := *budget.MinTokens - f.Tokens; short > 0 {
			t.BudgetShortfall = &short
		}
	}
}

// Put sets a member of a map, which it creates if it is nil.
//
//	sdk.Put(&trace.Details, "items_shown", sdk.Number(3))   details: {"items_shown":3}
func Put[T any](members *map[string]T, name string, value T) {
	if *members == nil {
		*members = map[string]T{}
	}
	(*members)[name] = value
}

// Text returns s as a JSON string, for the free fields of a trace.
func Text(s string) abi.Raw {
	var e wirejson.Encoder
	e.Str(s)
	return e.Bytes()
}

// Number returns n as a JSON number, for the free fields of a trace.
func Number(n int64) abi.Raw { return strconv.AppendInt(nil, n, 10) }

// Itoa formats n in decimal: Itoa(-7) is "-7".
func Itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
