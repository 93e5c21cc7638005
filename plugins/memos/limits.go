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
			// The group that is furthest behind its share comes next: have/want compared crosswise, so that it stays in
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

// fields are the limits as POST /product/search takes them. A group with none is switched off.
func (l limits) fields() wire.Object {
	return wire.Object{"top_k", l.text, "pref_top_k", l.pref, "tool_mem_top_k", l.tool, "skill_mem_top_k", l.skill,
		"include_preference", l.pref > 0, "search_tool_memory", l.tool > 0, "include_skill_memory", l.skill > 0}
}

// report says in a trace which limits a search had. What was sent for max_items is top_k; the others stand in
// effective, and all together stay within it.
func (l limits) report(t *abi.Trace, s *settings, budget abi.ContextBudget) {
	t.Effective = wire.Object{"search_mode", s.searchMode, "dedup", s.dedup, "session_id", "soft",
		"top_k", l.text, "pref_top_k", l.pref, "tool_mem_top_k", l.tool, "skill_mem_top_k", l.skill}.Map()
	if budget.MaxItems != nil {
		sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "native", Sent: sdk.Ptr(l.text)})
	}
}
