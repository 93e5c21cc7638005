package score

import "github.com/memhost/memhost/eval/simulate"

var _ = register(metric{
	Entry: Entry{Name: "abstained", Group: "behaviour", Unit: "share", Better: "more",
		What: "sessions whose first answer says that the agent does not know, by a list of phrases, of those about something that " +
			"nobody said"},
	applies: (*probe).neverMentioned, none: "every probe can be answered", absent: noAgent,
	behave: func(c *conversation) float64 { return yes(simulate.Abstains(c.first)) },
	conversations: []exampleConversation{
		{"it says so", "shoe size", []string{"I do not know your shoe size."}, 1},
		{"it makes one up", "shoe size", []string{"It is 43."}, 0},
	},
})
