package score

import "slices"

var _ = register(metric{
	Entry: Entry{Name: "answer_shown", Group: "answer", Unit: "share", Better: "more", Headline: true,
		What: "probes of which the context holds a member of every answers group, as whole words in any case"},
	applies: (*probe).hasAnswers, none: "no probe has answers", agrees: "in_order", otherwise: DependsOnOrder,
	measure: func(m *measurement) float64 {
		for _, group := range m.answers {
			if !slices.ContainsFunc(group, func(text *foldedText) bool { return m.find(text) >= 0 }) {
				return 0
			}
		}
		return 1
	},
	examples: []example{
		{"both answers", items{{"LAGOS", ""}, {"with her sister", ""}}, 1},
		{"one of two", items{{"Lagos", ""}}, 0},
		{"a part of a word", items{{"Lagosian sisters", ""}}, 0},
	},
})
