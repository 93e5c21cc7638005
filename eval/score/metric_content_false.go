package score

var _ = register(metric{
	Entry: Entry{Name: "content_false", Group: "budgeted", Unit: "share", Better: "less",
		What: "the same share as content for the evidence of another cluster's probe: what content is without any memory"},
	applies: (*probe).hasFalseWords, none: "the pack has one cluster only",
	measure: func(m *measurement) float64 { return contentShare(m.foreign, m.scan().found) },
	examples: []example{
		{"one of the four content words of what somebody else said", items{{"We moved, and I live in Lagos now.", ""}}, 0.25},
	},
})
