package score

import "math"

var _ = register(metric{
	Entry: Entry{Name: "stale_age_days", Group: "validity", Unit: "days",
		What: "how long ago the oldest value that is shown unflagged was superseded, over the probes that show one"},
	applies: (*probe).hasStale, none: noStale, absent: "no stale value was shown unflagged",
	measure: func(m *measurement) float64 { return m.shownValues().age },
	examples: []example{
		{"a value that was superseded ten days before the question", items{{"I live in Porto, near the old market.", "e1"}}, 10},
		{"no such value", items{{"We moved, and I live in Lagos now.", "e2"}}, math.NaN()},
	},
})
