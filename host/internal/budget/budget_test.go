package budget_test

import (
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/budget"
	"github.com/stretchr/testify/require"
)

func number(n int64) *int64 { return &n }

// asker has a limit of 40 tokens per item and 100 items.
func asker(set, byBudget bool) budget.Items {
	return budget.Items{Set: set, ByBudget: byBudget, Limit: &abi.NativeLimit{Route: "search", Field: "top_k",
		Ceiling: 100, TokensPerItem: 40, Because: "the server refuses more", Configured: "/top_k"}}
}

// count counts one token for each four bytes.
func count(text []byte) int64 { return int64(len(text)) / 4 }

// answer is a retrieval with a context of this many tokens, after this many items were received and requested.
func answer(tokens, received, sent int64, truncated bool) *abi.RetrieveResult {
	t := &abi.Trace{Truncated: &truncated}
	t.BudgetApplied = map[string]abi.BudgetUse{"max_items": {How: "native", Sent: &sent, Received: &received}}
	return &abi.RetrieveResult{FormattedContext: strings.Repeat("abcd", int(tokens)), Trace: t}
}

func TestMaxTokensBecomeANumberOfItems(t *testing.T) {
	i := asker(false, true)
	for tokens, items := range map[int64]int64{1: 1, 39: 1, 800: 20, 8000: 100, 1 << 62: 100} {
		require.Equal(t, items, i.First(&abi.ContextBudget{MaxTokens: &tokens}), tokens)
	}
	require.Zero(t, i.First(&abi.ContextBudget{}), "no budget of tokens")
	require.Zero(t, i.First(&abi.ContextBudget{MaxTokens: number(800), MaxItems: number(3)}),
		"the caller's limit wins")
	i = asker(true, true)
	require.Zero(t, i.First(&abi.ContextBudget{MaxTokens: number(800)}), "the operator's limit wins")
	i = asker(false, false)
	require.Zero(t, i.First(&abi.ContextBudget{MaxTokens: number(800)}), "the design asks for max_items only")
}

func TestMoreItemsAreAskedForOnceWhereAllFittedAndThereMayBeMore(t *testing.T) {
	i := asker(false, true)
	b := &abi.ContextBudget{MaxTokens: number(800)}
	require.EqualValues(t, 32, i.More(b, 20, answer(500, 20, 20, false), count), "20 * 800 / 500")
	require.EqualValues(t, 40, i.More(b, 20, answer(100, 20, 20, false), count), "at most twice as many")
	require.Zero(t, i.More(b, 20, answer(500, 19, 20, false), count), "the backend has no more")
	require.Zero(t, i.More(b, 20, answer(790, 20, 20, true), count), "the budget is full")
	require.Zero(t, i.More(b, 20, answer(790, 20, 20, false), count), "no room for one more")
	require.EqualValues(t, 32, i.More(b, 20, answer(500, 11, 11, false), count),
		"what a provider asked for of one kind counts, where it asks for several")
	require.Zero(t, i.More(b, 100, answer(500, 100, 100, false), count), "the ceiling")
}

func TestTheTraceSaysWhatEndedTheContext(t *testing.T) {
	b := &abi.ContextBudget{MaxTokens: number(8000)}
	traced := func(set, byBudget bool, items int64, result *abi.RetrieveResult) *abi.Trace {
		asker(set, byBudget).Explain(b, items, result, int64(len(result.FormattedContext)/4))
		return result.Trace
	}
	trace := traced(false, true, 100, answer(3000, 100, 100, false))
	require.Equal(t, []string{"budget_unused: 3000 of 8000 tokens: search gives at most 100 items: the server " +
		"refuses more"},
		trace.Warnings)
	use := trace.BudgetApplied["max_items"]
	require.Equal(t, abi.BudgetUse{How: "native", Sent: number(100), Asked: number(100), Received: number(100),
		Ceiling: number(100)}, use)
	require.Equal(t, []string{"budget_unused: 1271 of 8000 tokens: the configuration asks for 20 items (/top_k)"},
		traced(true, true, 0, answer(1271, 20, 20, false)).Warnings)
	require.Equal(t, []string{"budget_unused: 1271 of 8000 tokens: memory.profile source-design asks for 20 items " +
		"whatever max_tokens is"}, traced(false, false, 0, answer(1271, 20, 20, false)).Warnings)
	require.Empty(t, traced(false, true, 100, answer(3000, 60, 100, false)).Warnings, "there is no more")
	require.Empty(t, traced(false, true, 100, answer(7990, 80, 80, false)).Warnings,
		"one more would not fit")
}
