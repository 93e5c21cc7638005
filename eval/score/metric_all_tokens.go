package score

var _ = register(metric{
	Entry: Entry{Name: "all@tokens", Group: "budgeted", Unit: "share", Better: "more", Attribution: true,
		What: "probes of which the context shows every gold group, as in recall@tokens"},
	applies: (*probe).hasEvidence, none: noEvidence, agrees: "content", otherwise: DependsOnAttribution,
	measure: func(m *measurement) float64 { return yes(m.served() == len(m.groups)) },
	examples: []example{
		{"one of two messages", items{{"We moved, and I live in Lagos now.", "e2"}}, 0},
		{"both", items{{"We moved, and I live in Lagos now.", "e2"}, {"My sister Rui lives with me.", "e3"}}, 1},
	},
})
