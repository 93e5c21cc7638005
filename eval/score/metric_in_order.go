package score

var _ = register(metric{
	Entry: Entry{Name: "in_order", Group: "budgeted", Unit: "share", Better: "more",
		What: "gold groups of which shown text holds three quarters of a message in runs of four words, and of the words " +
			"that only this message holds, whatever items claim: verdicts on content and answer_shown need it to agree"},
	applies: (*probe).hasWords, none: "no evidence has content words",
	measure: func(m *measurement) float64 {
		shown := m.scan().shown
		total, n := 0.0, 0
		for _, group := range m.groups {
			best, there := 0.0, false
			for _, id := range group {
				if e := m.persona.events[id]; e != nil {
					for i := range e.said {
						best, there = max(best, yes(e.said[i].inOrder(shown...) >= shownShare)), true
					}
				}
			}
			if there {
				total += best
				n++
			}
		}
		return total / float64(n)
	},
	examples: []example{
		{"one of two messages", items{{"We moved, and I live in Lagos now.", ""}}, 0.5},
		{"its words, sorted", items{{"and i in lagos live moved now we", ""}}, 0},
		{"a beginning that is too short", items{{"We moved, and I live", ""}}, 0},
	},
})
