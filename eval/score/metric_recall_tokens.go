package score

var _ = register(metric{
	Entry: Entry{Name: "recall@tokens", Group: "budgeted", Unit: "share", Better: "more", Headline: true, Attribution: true,
		What: "gold groups of which the context shows a member: by items that name it among at most 3 source events, " +
			"and that show at least three quarters of one of its messages in order, and little else"},
	applies: (*probe).hasEvidence, none: noEvidence, agrees: "content", otherwise: DependsOnAttribution,
	measure: func(m *measurement) float64 { return float64(m.served()) / float64(len(m.groups)) },
	examples: []example{
		{"one of two messages", items{{"We moved, and I live in Lagos now.", "e2"}}, 0.5},
		{"both, in one item", items{{"We moved, and I live in Lagos now. My sister Rui lives with me.", "e2 e3"}}, 1},
		{"an item that names the message and shows something else", items{{"They moved.", "e2"}}, 0},
		{"the message, in an item that does not name it", items{{"We moved, and I live in Lagos now.", ""}}, 0},
		{"an item that names four events", items{{"We moved, and I live in Lagos now.", "e1 e2 e3 e4"}}, 0},
	},
})

// served is for how many gold groups the context shows a member.
func (m *measurement) served() int {
	return m.servedGroups.get(func() int { return m.servedOf(m.groups) })
}

// servedOf is for how many of the groups of events the context shows a member.
func (m *measurement) servedOf(groups [][]string) (n int) {
	for _, group := range groups {
		if _, shown := m.shownEvent(group); shown {
			n++
		}
	}
	return n
}
