package score

import "github.com/memhost/memhost/eval/journal"

var _ = register(metric{
	Entry: Entry{Name: "corrections_needed", Group: "behaviour", Unit: "count", Better: "less", Headline: true,
		What: "how often the person had to say what they want, of sessions with a preference in force; part of IQI, memhost's " +
			"reading. A session that the person gave up, or that the agent's failure ended, counts as the most that a person would say it"},
	applies: (*probe).hasPreference, none: "the pack has no preferences", absent: noAgent,
	scaled: true,
	behave: func(c *conversation) float64 {
		if c.Ended != journal.EndedAccepted {
			return c.most
		}
		n := 0
		for _, x := range c.Exchanges {
			n += int(yes(x.Action == journal.ActionCorrect))
		}
		return float64(n)
	},
	conversations: []exampleConversation{
		{"right at once", "town", []string{"A taxi to Lagos is on its way."}, 0},
		{"after one correction", "town", []string{"To Porto.", "To Lagos."}, 1},
		{"asked again, and then right", "town", []string{"Porto or Lagos?", "To Lagos."}, 0},
		{"always asking, and never settled", "town", []string{"Porto or Lagos?", "Porto or Lagos?", "Porto or Lagos?", "Porto or Lagos?"}, 3},
		{"never right", "town", []string{"Porto.", "Porto.", "Porto.", "Porto."}, 3},
	},
})
