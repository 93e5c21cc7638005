package score

import "math"

var _ = register(
	metric{
		Entry: Entry{Name: "context_tokens", Group: "cost", Unit: "tokens", Headline: true,
			What: "tokens of the formatted context"},
		applies: everyProbe, measure: func(m *measurement) float64 { return m.counted(m.trace.TokenCount) },
		examples: []example{{"by the trace's count", items{{"We moved, and I live in Lagos now.", "e2"}}, 12}},
	},
	metric{
		Entry: Entry{Name: "frame_tokens", Group: "cost", Unit: "tokens",
			What: "tokens of the context that are not items' own words"},
		applies: everyProbe, measure: func(m *measurement) float64 { return m.counted(m.trace.FrameTokens) },
		examples: []example{{"by the trace's count", items{{"We moved, and I live in Lagos now.", "e2"}}, 3}},
	},
	metric{
		Entry: Entry{Name: "shortfall", Group: "cost", Unit: "tokens",
			What: "tokens by which the context falls short of its budget, by the provider's word"},
		applies: everyProbe, measure: func(m *measurement) float64 { return m.counted(m.trace.BudgetShortfall) },
		examples: []example{{"by the trace's word", nil, 100}},
	},
)

// counted is a count from the trace; NaN if it is missing.
func (m *measurement) counted(n *int64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}
