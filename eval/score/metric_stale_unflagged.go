package score

import "math"

var _ = register(metric{
	Entry: Entry{Name: "stale_unflagged", Group: "validity", Unit: "share", Better: "less", Headline: true,
		What: "probes with earlier values of which one is shown without a legible sign that it no longer holds"},
	applies: (*probe).hasStale, none: noStale, unless: "current_shown", otherwise: DependsOnSilence,
	measure: func(m *measurement) float64 { return yes(!math.IsNaN(m.shownValues().age)) },
	examples: []example{
		{"an earlier value", items{{"I live in Porto, near the old market.", "e1"}}, 1},
		{"the present value", items{{"We moved, and I live in Lagos now.", "e2"}}, 0},
	},
})
