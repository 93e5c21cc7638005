package score

import (
	"math"
	"slices"
)

var _ = register(metric{
	Entry: Entry{Name: "unsupported", Group: "derived", Unit: "share",
		What: "gold groups that shown items name without showing the words, of those that they name"},
	applies: (*probe).hasEvidence, none: noEvidence, absent: "no shown item names evidence",
	measure: func(m *measurement) float64 {
		named := 0
		for _, group := range m.groups {
			named += int(yes(m.namedEvent(group)))
		}
		if named == 0 {
			return math.NaN()
		}
		return float64(named-m.served()) / float64(named)
	},
	examples: []example{
		{"two are named, and one of them is shown", items{{"We moved, and I live in Lagos now.", "e2"}, {".", "e3"}}, 0.5},
		{"nothing is named", items{{"We moved, and I live in Lagos now.", ""}}, math.NaN()},
	},
})

// namedEvent reports whether a shown item names one of the events, whatever its text.
func (m *measurement) namedEvent(ids []string) bool {
	return slices.ContainsFunc(m.items, func(x item) bool {
		return x.shown() && slices.ContainsFunc(x.sources, func(id string) bool { return slices.Contains(ids, id) })
	})
}
