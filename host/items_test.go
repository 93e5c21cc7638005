package host

import (
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/tokens"
	"github.com/stretchr/testify/require"
)

func number(n int64) *int64 { return &n }

// asker is a provider with a limit of 40 tokens an item, at most 100 items, and an operation on it.
func asker(t *testing.T, set bool, profile abi.Profile) (*Provider, *operation) {
	t.Helper()
	counter, err := tokens.New("bytes4")
	require.NoError(t, err)
	p := &Provider{tokens: counter, itemsSet: set, config: ProviderConfig{Profile: profile},
		itemLimit: &abi.NativeLimit{Route: "search", Field: "top_k", Ceiling: 100, TokensPerItem: 40,
			Because: "the server refuses more", Configured: "/top_k"}}
	return p, &operation{provider: p}
}

// answer is a retrieval with a context of so many tokens, and so many items behind it that were asked for as sent.
func answer(tokens, received, sent int64, truncated bool) *abi.RetrieveResult {
	t := &abi.Trace{Truncated: &truncated}
	t.BudgetApplied = map[string]abi.BudgetUse{"max_items": {How: "native", Sent: &sent, Received: &received}}
	return &abi.RetrieveResult{FormattedContext: strings.Repeat("abcd", int(tokens)), Trace: t}
}

func TestMaxTokensBecomeANumberOfItems(t *testing.T) {
	p, _ := asker(t, false, abi.ProfileBest)
	for tokens, items := range map[int64]int64{1: 1, 39: 1, 800: 20, 8000: 100, 1 << 62: 100} {
		require.Equal(t, items, p.itemsOf(&abi.ContextBudget{MaxTokens: &tokens}), tokens)
	}
	require.Zero(t, p.itemsOf(&abi.ContextBudget{}), "no budget of tokens")
	require.Zero(t, p.itemsOf(&abi.ContextBudget{MaxTokens: number(800), MaxItems: number(3)}),
		"the caller's limit wins")
	p, _ = asker(t, true, abi.ProfileBest)
	require.Zero(t, p.itemsOf(&abi.ContextBudget{MaxTokens: number(800)}), "the operator's limit wins")
	p, _ = asker(t, false, abi.ProfileSourceDesign)
	require.Zero(t, p.itemsOf(&abi.ContextBudget{MaxTokens: number(800)}), "the design asks for max_items only")
}

func TestMoreItemsAreAskedForOnceWhereAllFittedAndThereMayBeMore(t *testing.T) {
	_, o := asker(t, false, abi.ProfileBest)
	o.items = 20
	budget := &abi.ContextBudget{MaxTokens: number(800)}
	require.EqualValues(t, 32, o.moreItems(budget, answer(500, 20, 20, false)), "20 * 800 / 500")
	require.EqualValues(t, 40, o.moreItems(budget, answer(100, 20, 20, false)), "at most twice as many")
	require.Zero(t, o.moreItems(budget, answer(500, 19, 20, false)), "the backend has no more")
	require.Zero(t, o.moreItems(budget, answer(790, 20, 20, true)), "the budget is full")
	require.Zero(t, o.moreItems(budget, answer(790, 20, 20, false)), "no room for one more")
	require.EqualValues(t, 32, o.moreItems(budget, answer(500, 11, 11, false)),
		"what a provider asked for of one kind counts, where it asks for several")
	o.items = 100
	require.Zero(t, o.moreItems(budget, answer(500, 100, 100, false)), "the ceiling")
}

func TestTheTraceSaysWhatEndedTheContext(t *testing.T) {
	budget := &abi.ContextBudget{MaxTokens: number(8000)}
	traced := func(set bool, profile abi.Profile, items int64, result *abi.RetrieveResult) *abi.Trace {
		_, o := asker(t, set, profile)
		o.items = items
		o.traceBudget(budget, result, int64(len(result.FormattedContext)/4))
		return result.Trace
	}
	trace := traced(false, abi.ProfileBest, 100, answer(3000, 100, 100, false))
	require.Equal(t, []string{"budget_unused: 3000 of 8000 tokens: search gives at most 100 items: the server " +
		"refuses more"},
		trace.Warnings)
	use := trace.BudgetApplied["max_items"]
	require.Equal(t, abi.BudgetUse{How: "native", Sent: number(100), Asked: number(100), Received: number(100),
		Ceiling: number(100)}, use)
	require.Equal(t, []string{"budget_unused: 1271 of 8000 tokens: the configuration asks for 20 items (/top_k)"},
		traced(true, abi.ProfileBest, 0, answer(1271, 20, 20, false)).Warnings)
	require.Equal(t, []string{"budget_unused: 1271 of 8000 tokens: memory.profile source-design asks for 20 items " +
		"whatever max_tokens is"}, traced(false, abi.ProfileSourceDesign, 0, answer(1271, 20, 20, false)).Warnings)
	require.Empty(t, traced(false, abi.ProfileBest, 100, answer(3000, 60, 100, false)).Warnings, "there is no more")
	require.Empty(t, traced(false, abi.ProfileBest, 100, answer(7990, 80, 80, false)).Warnings,
		"one more would not fit")
}

func TestTheLimitThatCountsIsFoundByTheConfiguration(t *testing.T) {
	limits := []abi.NativeLimit{{Route: "fixed", Native: 10},
		{Route: "facts", TokensPerItem: 40, Pointer: "/infer", Equals: abi.Raw("true"), Configured: "/top_k"},
		{Route: "texts", TokensPerItem: 50, Pointer: "/infer", Equals: abi.Raw("false"), Configured: "/top_k"}}
	for block, want := range map[string]struct {
		route string
		set   bool
	}{`{"infer":true}`: {"facts", false}, `{"infer":false}`: {"texts", false},
		`{"infer":false,"top_k":5}`:   {"texts", true},
		`{"infer":true,"top_k":null}`: {"facts", false}} {
		limit, set, err := itemLimit(limits, abi.Raw(block))
		require.NoError(t, err)
		require.Equal(t, want.route, limit.Route, block)
		require.Equal(t, want.set, set, block)
	}
	limit, _, err := itemLimit(limits, abi.Raw(`{}`))
	require.NoError(t, err)
	require.Nil(t, limit)
}
