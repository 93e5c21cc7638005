package score

import "slices"

var _ = register(metric{
	Entry: Entry{Name: "forbidden_shown", Group: "answer", Unit: "share", Better: "less",
		What: "probes whose context holds a text that it must not"},
	applies: (*probe).hasForbidden, none: "no probe forbids a text", unless: "answer_shown", otherwise: DependsOnSilence,
	measure: func(m *measurement) float64 {
		return yes(slices.ContainsFunc(m.forbidden, func(text *foldedText) bool { return m.find(text) >= 0 }))
	},
	examples: []example{
		{"the forbidden text", items{{"The safe is behind the mirror.", ""}}, 1},
		{"nothing of it", items{{"We moved, and I live in Lagos now.", "e2"}}, 0},
	},
})
