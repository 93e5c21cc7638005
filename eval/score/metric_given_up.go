package score

import "github.com/memhost/memhost/eval/journal"

var _ = register(metric{
	Entry: Entry{Name: "given_up", Group: "behaviour", Unit: "share", Better: "less",
		What: "sessions that the person gave up, that ended at the limit on turns, or in which the agent failed; they count in the other " +
			"figures as the agent answered"},
	applies: (*probe).talkedAbout, none: "the pack has no preferences", absent: noAgent,
	behave: func(c *conversation) float64 {
		return yes(c.Ended != journal.EndedAccepted)
	},
	conversations: []exampleConversation{
		{"never right", "town", []string{"Porto.", "Porto.", "Porto.", "Porto."}, 1},
		{"no answer", "town", nil, 1},
		{"right at last", "town", []string{"Porto.", "Porto.", "Porto.", "Lagos."}, 0},
	},
})
