package score

var _ = register(metric{
	Entry: Entry{Name: "recall_pairs@tokens", Group: "sensitivity", Unit: "share", Better: "more", Attribution: true,
		What: "recall@tokens where showing the message next to the evidence counts too, as with group=pair: how much of a " +
			"figure at that level is the neighbour's; it has no verdict"},
	applies: (*probe).hasPairs, none: "the pack's events are not single messages of pairs",
	measure: func(m *measurement) float64 { return float64(m.servedOf(m.pairs)) / float64(len(m.pairs)) },
	examples: []example{
		{"the message before one of the evidence", items{{"I live in Porto, near the old market.", "e1"}}, 0.5},
		{"one message of the evidence", items{{"My sister Rui lives with me.", "e3"}}, 0.5},
	},
})
