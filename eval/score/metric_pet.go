package score

import "github.com/memhost/memhost/eval/simulate"

var _ = register(
	metric{
		Entry: Entry{Name: "pet", Group: "behaviour", Unit: "share", Better: "more", Headline: true,
			What: "preference evolution, memhost's reading: sessions whose first answer uses the value in force and names no " +
				"other, of those whose value has changed and is the same in all contexts"},
		applies: (*probe).ofChange, none: "the pack has no preference that changes", absent: noAgent,
		behave: func(c *conversation) float64 { return yes(c.use == simulate.UseCurrent) },
		conversations: []exampleConversation{
			{"the value in force", "town", []string{"A taxi to Lagos is on its way."}, 1},
			{"a former one", "town", []string{"A taxi to Porto is on its way."}, 0},
			{"none", "town", []string{"Where to?"}, 0},
		},
	},
	metric{
		Entry: Entry{Name: "pet_stale", Group: "behaviour", Unit: "share", Better: "less", Headline: true,
			What: "sessions of pet whose first answer uses a former value, and not the one in force"},
		applies: (*probe).ofChange, none: "the pack has no preference that changes", absent: noAgent,
		unless: "pet", otherwise: DependsOnSilence,
		behave: func(c *conversation) float64 { return yes(c.use == simulate.UseStale) },
		conversations: []exampleConversation{
			{"a former one", "town", []string{"A taxi to Porto is on its way."}, 1},
			{"none", "town", []string{"Where to?"}, 0},
			{"both", "town", []string{"Lagos, no longer Porto."}, 0},
		},
	},
	metric{
		Entry: Entry{Name: "cs_and_pet", Group: "behaviour", Unit: "share", Better: "more",
			What: "the same for sessions whose value has changed and differs between contexts: neither cs nor pet counts them"},
		applies: (*probe).ofBoth, none: "the pack has no preference that changes and differs between contexts", absent: noAgent,
		behave: func(c *conversation) float64 { return yes(c.use == simulate.UseCurrent) },
		conversations: []exampleConversation{
			{"the value in force here", "lunch at work", []string{"A salad."}, 1},
			{"a former one", "lunch at work", []string{"A soup."}, 0},
		},
	},
)
