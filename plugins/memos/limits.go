package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// limits are the four groups' own limits of a search. There is none over all, and of tool memories up to twice as
// many come: schemas and trajectories are searched apart.
type limits struct{ text, pref, tool, skill int64 }

// mostItems bounds what is asked of one search, whatever max_items says.
const mostItems = 500

// limitsFor are the groups' limits for a budget. max_items, or what the host makes of max_tokens, is the text group's,
// and the other groups have their own:
//
//	max_items 5                      text 5, and 6 preferences, 6 tools, 3 skills beside them
//	66 by max_tokens                 text 45 = 66 - 6 - 2*6 - 3, so that the others have room
//	neither                          text 10
//	share: groups, max_items 5       text 2, and 1 of each other group, tools none
func (b *backend) limitsFor(budget abi.ContextBudget) limits {
	n := b.ItemsFor(budget, 0)
	switch {
	case budget.MaxItems == nil && n == 0:
		return b.limits
	case b.shareGroups:
		return b.limits.within(&n)
	}
	l := b.limits
	if budget.MaxItems == nil {
		n = max(n-l.pref-2*l.tool-l.skill, (n+1)/2)
	}
	l.text = min(max(1, n), mostItems)
	return l
}

// shown is the budget of the formatter: max_items has counted the text group when it was asked for.
func (s *settings) shown(budget abi.ContextBudget) abi.ContextBudget {
	if budget.MaxItems != nil && *budget.MaxItems > 0 && !s.shareGroups {
		budget.MaxItems = nil
	}
	return budget
}

// within shares n items out, so that the groups' limits keep the proportions of the configuration and never come to
// more than n. The text group has at least one, the least that the server takes. Without n the configuration's limits
// hold.
func (l limits) within(n *int64) limits {
	if n == nil {
		return l
	}
	left := min(*n, mostItems)
	shared := limits{text: 1}
	left--
	type share struct {
		have *int64
		want int64
		cost int64
	}
	shares := []share{{&shared.text, l.text, 1}, {&shared.pref, l.pref, 1}, {&shared.tool, l.tool, 2},
		{&shared.skill, l.skill, 1}}
	for left > 0 {
		var next *share
		for i := range shares {
			s := &shares[i]
			// The group that is furthest below its share comes next: have/want compared crosswise, so that it stays in
			// integers.
			if s.want > 0 && s.cost <= left && (next == nil || *s.have*next.want < *next.have*s.want) {
				next = s
			}
		}
		if next == nil {
			break
		}
		*next.have++
		left -= next.cost
	}
	return shared
}

// fields are the limits as POST /product/search takes them. A group with none is switched off. The design of the
// adapter names three of the fields; the server has defaults for the others.
func (l limits) fields(sourceDesign bool) wire.Object {
	if sourceDesign {
		return wire.Object{"top_k", l.text, "include_preference", true, "search_tool_memory", l.tool > 0}
	}
	return wire.Object{"top_k", l.text, "pref_top_k", l.pref, "tool_mem_top_k", l.tool, "skill_mem_top_k", l.skill,
		"include_preference", l.pref > 0, "search_tool_memory", l.tool > 0, "include_skill_memory", l.skill > 0}
}

// report says in a trace which limits a search had. What was sent for max_items is top_k, and counts text memories; the
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
