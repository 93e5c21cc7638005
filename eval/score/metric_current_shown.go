package score

var _ = register(metric{
	Entry: Entry{Name: "current_shown", Group: "validity", Unit: "share", Better: "more", Headline: true,
		What: "probes with earlier values whose present value is shown"},
	applies: (*probe).hasStale, none: noStale, agrees: "in_order", otherwise: DependsOnOrder,
	measure: func(m *measurement) float64 { return yes(m.shownValues().current >= 0) },
	examples: []example{
		{"the present answers", items{{"Lagos, with her sister", ""}}, 1},
		{"an earlier one", items{{"Porto, with her sister", ""}}, 0},
	},
})
