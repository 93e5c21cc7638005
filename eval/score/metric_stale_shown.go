package score

var _ = register(metric{
	Entry: Entry{Name: "stale_shown", Group: "validity", Unit: "share", Better: "less", Headline: true,
		What: "probes with earlier values of which one is shown"},
	applies: (*probe).hasStale, none: noStale, unless: "current_shown", otherwise: DependsOnSilence,
	measure: func(m *measurement) float64 { return yes(m.shownValues().stale >= 0) },
	examples: []example{
		{"an earlier value", items{{"I live in Porto, near the old market.", "e1"}}, 1},
		{"the present one", items{{"We moved, and I live in Lagos now.", "e2"}}, 0},
	},
})
