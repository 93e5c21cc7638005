package score

var _ = register(
	metric{
		Entry:   Entry{Name: "items", Group: "abstention", Unit: "count", What: "items returned"},
		applies: everyProbe,
		measure: func(m *measurement) float64 { return float64(len(m.items)) },
		examples: []example{
			{"two", items{{"We moved, and I live in Lagos now.", "e2"}, {"Lagos", ""}}, 2},
			{"none", nil, 0},
		},
	},
	metric{
		Entry: Entry{Name: "items_unanswerable", Group: "abstention", Unit: "count",
			What: "items returned for probes that cannot be answered"},
		applies: (*probe).unanswerable, none: "every probe can be answered",
		measure: func(m *measurement) float64 { return float64(len(m.items)) },
		examples: []example{
			{"one, where nobody said the answer", items{{"Her shoes are blue.", ""}}, 1},
		},
	},
)
