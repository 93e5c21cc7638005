package score

import "math"

var _ = register(metric{
	Entry: Entry{Name: "other_context", Group: "context", Unit: "share",
		What: "attributed items that come from another context than the one asked for, " +
			"over probes that ask for one and get any"},
	applies: (*probe).hasContext, none: "no probe asks for a context", absent: "no attributed item was returned",
	measure: func(m *measurement) float64 {
		r := m.ranks()
		if r.named == 0 {
			return math.NaN()
		}
		return float64(r.elsewhere) / float64(r.named)
	},
	examples: []example{
		{"one of two was said in another context", items{{"We moved, and I live in Lagos now.", "e2"},
			{"At home we keep two hens.", "e4"}}, 0.5},
	},
})
