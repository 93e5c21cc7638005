package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	for name, c := range map[string]struct {
		sections       []int
		sizes, weights []int64
		want           []int
	}{
		"two sections in turn":                    {[]int{0, 0, 1, 1}, []int64{5, 5, 5, 5}, []int64{1, 1}, []int{0, 2, 1, 3}},
		"twice the share":                         {[]int{0, 0, 0, 1, 1}, []int64{5, 5, 5, 5, 5}, []int64{2, 1}, []int{0, 1, 3, 2, 4}},
		"an empty section leaves its share":       {[]int{1, 1, 1}, []int64{5, 5, 5}, []int64{9, 1}, []int{0, 1, 2}},
		"a large item waits for its share":        {[]int{0, 1, 1, 1}, []int64{30, 10, 10, 10}, []int64{1, 1}, []int{1, 2, 0, 3}},
		"without sizes places are shared":         {[]int{0, 1, 0}, []int64{0, 0, 0}, []int64{1, 1}, []int{0, 1, 2}},
		"a section without a share comes last":    {[]int{0, 0, 1}, []int64{1, 1, 1}, []int64{0, 1}, []int{2, 0, 1}},
		"nothing":                                 {nil, nil, []int64{1, 1}, []int{}},
		"one section is in the order of its rank": {[]int{0, 0, 0}, []int64{9, 1, 5}, []int64{1}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, sdk.Shares(c.sections, c.sizes, c.weights)) })
	}
}

// TestNoSectionIsStarved checks, for all sizes, that each item is in the order once, and that a section's items keep
// their order. If an item is passed over for one of another section, its section would have exceeded its share with it.
func TestNoSectionIsStarved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 9), 1, 4).Draw(t, "weights")
		sections := rapid.SliceOfN(rapid.IntRange(0, len(weights)-1), 0, 30).Draw(t, "sections")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 50), len(sections), len(sections)).Draw(t, "sizes")
		used, last := make([]int64, len(weights)), slices.Repeat([]int{-1}, len(weights))
		order := sdk.Shares(sections, sizes, weights)
		for _, i := range order {
			s := sections[i]
			require.Greater(t, i, last[s], "in the order of its section")
			last[s], used[s] = i, used[s]+sizes[i]
			for other := range weights {
				waits := slices.IndexFunc(sections[last[other]+1:], func(x int) bool { return x == other })
				if waits >= 0 {
					with := used[other] + sizes[last[other]+1+waits]
					require.LessOrEqual(t, used[s]*weights[other], with*weights[s])
				}
			}
		}
		slices.Sort(order)
		for at, i := range order {
			require.Equal(t, at, i)
		}
		require.Len(t, order, len(sections))
	})
}

func TestFitSharesShowsWhatItKeepsInOrder(t *testing.T) {
	blocks := []sdk.Block{{Item: 0, Heading: "## facts", Text: "one"}, {Item: 1, Heading: "## facts", Text: "two"},
		{Item: 2, Heading: "## facts", Text: "six"}, {Item: 3, Heading: "## notes", Text: "ten"}}
	c := sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope)
	fitted := element.FitShares(c, blocks, []int{0, 0, 0, 1}, []int64{1, 1}, abi.ContextBudget{MaxItems: new(int64(3))})
	require.Equal(t, element.Wrap("## facts\none\ntwo\n## notes\nten\n"), fitted.Text)
	evidence := []abi.Evidence{{Rank: 1}, {Rank: 2}, {Rank: 3}, {Rank: 4}}
	fitted.Mark(evidence, 0)
	require.Nil(t, evidence[2].Shown)
	require.Equal(t, int64(strings.Index(fitted.Text, "ten")), evidence[3].Shown.Start)
}
