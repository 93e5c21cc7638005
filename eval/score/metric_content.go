package score

var _ = register(metric{
	Entry: Entry{Name: "content", Group: "budgeted", Unit: "share", Better: "more", Headline: true,
		What: "content words of the evidence that are inside shown text, of each group's best member; " +
			"the column evidence is its ceiling"},
	applies: (*probe).hasWords, none: "no evidence has content words", agrees: "in_order", otherwise: DependsOnOrder,
	measure: func(m *measurement) float64 { return contentShare(m.content, m.scan().found) },
	examples: []example{
		{"all words of one of two messages", items{{"We moved, and I live in Lagos now.", ""}}, 0.5},
		{"one of three content words of one, in other words", items{{"Rui is here.", ""}}, 1.0 / 6},
		{"nothing", nil, 0},
	},
})

// contentShare is the mean over groups of the share of words found, for each group's best member.
func contentShare(groups [][][]uint64, found map[uint64]bool) float64 {
	total := 0.0
	for _, group := range groups {
		best := 0.0
		for _, member := range group {
			n := 0
			for _, w := range member {
				n += int(yes(found[w]))
			}
			best = max(best, float64(n)/float64(len(member)))
		}
		total += best
	}
	return total / float64(len(groups))
}
