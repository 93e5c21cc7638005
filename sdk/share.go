package sdk

import (
	"slices"

	"github.com/memhost/memhost/abi"
)

// Shares returns the order in which to take items of several sections until a budget is used up, as indexes of items.
// sections[i] is the section of item i, sizes[i] its size (in tokens, bytes, or 1 to count items), and weights[s] the
// share of section s. Items of a section keep their order. When a section has no items left, the others get its share.
// An item that is larger than its section's share waits for smaller items of other sections.
//
//	4 texts and 4 notes of one size, weights 1, 1     text, note, text, note, ...
//	4 texts and 1 note, weights 1, 1                  text, note, text, text, text
//	a summary of 400 and facts of 20, weights 1, 3    60 facts, the summary, the other facts
func Shares(sections []int, sizes, weights []int64) []int {
	left := make([][]int, len(weights))
	for i, s := range sections {
		left[s] = append(left[s], i)
	}
	used, order := make([]int64, len(weights)), make([]int, 0, len(sections))
	for len(order) < len(sections) {
		next, need := -1, int64(0)
		for s := range left {
			if len(left[s]) == 0 {
				continue
			}
			// The section with the smallest used/weight, including its next item, is next (D'Hondt's method, by size).
			// Fractions are compared by cross-multiplication.
			with := used[s] + max(1, sizes[left[s][0]])
			if next < 0 || with*weights[next] < need*weights[s] {
				next, need = s, with
			}
		}
		order, left[next], used[next] = append(order, left[next][0]), left[next][1:], need
	}
	return order
}

// FitShares is FitFirst for blocks of several sections that share the budget (see Shares; a block's size is the length
// of its text). sections[i] is the section of blocks[i]. They are shown in the order of blocks, or as x.Arrange orders
// them.
func (x Context) FitShares(c *Call, blocks []Block, sections []int, weights []int64,
	budget abi.ContextBudget) Fitted {
	sizes := make([]int64, len(blocks))
	for i := range blocks {
		sizes[i] = int64(len(blocks[i].Text))
	}
	keep, arrange := make([]Block, len(blocks)), x.Arrange
	for at, i := range Shares(sections, sizes, weights) {
		keep[at] = blocks[i]
	}
	x.Arrange = func(kept []Block) []Block {
		slices.SortStableFunc(kept, func(a, b Block) int { return a.Item - b.Item })
		if arrange != nil {
			kept = arrange(kept)
		}
		return kept
	}
	return x.FitFirst(c, keep, budget)
}
