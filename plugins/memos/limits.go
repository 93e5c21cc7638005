package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// limits are the limits of a search for the four groups. There is no overall limit, and up to twice as many tool
// memories are returned, because schemas and trajectories are searched separately.
type limits struct{ text, pref, tool, skill int64 }

// maxSearchItems is the maximum requested from one search, whatever max_items says.
const maxSearchItems = 500

// limitsFor are the groups' limits of a search. As many items as the budget has room for are requested from the text
// group, or with share: groups from each group, because it is not known beforehand which groups have anything.
// sdk.Shares then divides the budget among the groups that returned items.
//
//	max_items 5, or room for 5 in max_tokens     text 5, and 6 preferences, 6 tools, 3 skills
//	neither                                      text 10, and 6 preferences, 6 tools, 3 skills
//	share: groups, max_items 5                   5 of each group that is switched on
func (b *backend) limitsFor(budget abi.ContextBudget) limits {
	n := b.ItemsFor(budget, 0)
	if budget.MaxItems == nil && n == 0 {
		return b.limits
	}
	n = min(max(1, n), maxSearchItems)
	l := b.limits
	l.text = n
	if b.shareGroups {
		for _, group := range []*int64{&l.pref, &l.tool, &l.skill} {
			if *group > 0 {
				*group = n
			}
		}
	}
	return l
}

// formatBudget returns the budget for the formatter: max_items already limited the text group in the request.
func (s *settings) formatBudget(budget abi.ContextBudget) abi.ContextBudget {
	if budget.MaxItems != nil && *budget.MaxItems > 0 && !s.shareGroups {
		budget.MaxItems = nil
	}
	return budget
}

// shares returns the items' groups, and each group's share of a budget: in proportion to its configured limit, with at
// least half for the text group. With the limits 10, 6, 6, 3: 15 to 6 to 6 to 3.
func (l limits) shares(items []*item) (groups []int, weights []int64) {
	groups = make([]int, len(items))
	for i, m := range items {
		groups[i] = max(0, slices.Index(groupNames, m.group))
	}
	return groups, []int64{max(l.text, l.pref+l.tool+l.skill), l.pref, l.tool, l.skill} // as in groupNames
}

// first returns the n items that max_items selects by the groups' shares, in their own order; all without n.
func (l limits) first(items []*item, n *int64) []*item {
	if n == nil || int64(len(items)) <= *n {
		return items
	}
	groups, weights := l.shares(items)
	places := sdk.Shares(groups, make([]int64, len(items)), weights)[:*n]
	slices.Sort(places)
	kept := make([]*item, len(places))
	for at, i := range places {
		kept[at] = items[i]
	}
	return kept
}

// fields returns the limits for POST /product/search. A limit of 0 switches a group off. The adapter's published design
// names three of the fields; the server has defaults for the others.
func (l limits) fields(sourceDesign bool) wire.Object {
	if sourceDesign {
		return wire.Object{"top_k", l.text, "include_preference", true, "search_tool_memory", l.tool > 0}
	}
	return wire.Object{"top_k", l.text, "pref_top_k", l.pref, "tool_mem_top_k", l.tool, "skill_mem_top_k", l.skill,
		"include_preference", l.pref > 0, "search_tool_memory", l.tool > 0, "include_skill_memory", l.skill > 0}
}

// report adds a search's limits to a trace. The number sent for max_items is top_k, which counts text memories; the
// others are in effective.
func (q *query) report(t *abi.Trace) {
	l := q.limits
	t.Effective = wire.Object{"search_mode", q.searchMode, "session_id", "soft", "top_k", l.text}.Map()
	if !q.sourceDesign {
		t.Effective = wire.Object{"search_mode", q.searchMode, "dedup", q.dedup, "session_id", "soft", "top_k", l.text,
			"pref_top_k", l.pref, "tool_mem_top_k", l.tool, "skill_mem_top_k", l.skill,
			"share", wire.If(q.shareGroups, "groups")}.Map()
	}
	received := int64(0)
	for _, m := range q.items {
		if q.shareGroups || m.group == groupNames[0] {
			received++
		}
	}
	sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "native", Sent: sdk.Ptr(l.text), Received: &received})
}
