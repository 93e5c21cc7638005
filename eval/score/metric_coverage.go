package score

import "math"

var _ = register(metric{
	Entry: Entry{Name: "coverage", Group: "retrieval", Unit: "share",
		What: "items that name 1 to 3 source events, of the items of a probe"},
	applies: everyProbe, absent: "nothing was returned",
	measure: func(m *measurement) float64 {
		if len(m.items) == 0 {
			return math.NaN()
		}
		return float64(m.ranks().named) / float64(len(m.items))
	},
	examples: []example{
		{"one of two names its source", items{{"We moved, and I live in Lagos now.", "e2"}, {"Lagos", ""}}, 0.5},
		{"nothing is returned", nil, math.NaN()},
	},
})
