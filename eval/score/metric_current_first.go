package score

var _ = register(metric{
	Entry: Entry{Name: "current_first", Group: "validity", Unit: "share", Better: "more",
		What: "probes with earlier values whose present value is shown, and no earlier one before it"},
	applies: (*probe).hasStale, none: noStale, agrees: "in_order", otherwise: DependsOnOrder,
	measure: func(m *measurement) float64 {
		v := m.shownValues()
		return yes(v.current >= 0 && (v.stale < 0 || v.current < v.stale))
	},
	examples: []example{
		{"the present value above the earlier one", items{{"Lagos, with her sister", ""}, {"Porto", ""}}, 1},
		{"below it", items{{"Porto", ""}, {"Lagos, with her sister", ""}}, 0},
	},
})
