package score

import "github.com/memhost/memhost/eval/simulate"

var _ = register(
	metric{
		Entry: Entry{Name: "cs", Group: "behaviour", Unit: "share", Better: "more", Headline: true,
			What: "context sensitivity, memhost's reading: sessions whose first answer uses the value of this context and names no " +
				"other, of those whose attribute has another value in another context at that time and has not changed in this one"},
		applies: (*probe).ofContexts, none: "the pack has no preference that differs between contexts", absent: noAgent,
		behave: func(c *conversation) float64 { return yes(c.use == simulate.UseCurrent) },
		conversations: []exampleConversation{
			{"this context's value", "editor at work", []string{"I have opened Vim."}, 1},
			{"another context's", "editor at work", []string{"I have opened Nano."}, 0},
			{"both: the choice is left to the person", "editor at work", []string{"Vim or Nano?"}, 0},
			{"right only after a correction", "editor at work", []string{"Nano.", "Vim."}, 0},
			{"no answer", "editor at work", nil, 0},
		},
	},
	metric{
		Entry: Entry{Name: "cs_other_context", Group: "behaviour", Unit: "share", Better: "less",
			What: "sessions of cs whose first answer uses a value of another context"},
		applies: (*probe).ofContexts, none: "the pack has no preference that differs between contexts", absent: noAgent,
		unless: "cs", otherwise: DependsOnSilence,
		behave: func(c *conversation) float64 { return yes(c.use == simulate.UseElsewhere) },
		conversations: []exampleConversation{
			{"another context's", "editor at work", []string{"I have opened Nano."}, 1},
			{"none", "editor at work", []string{"Which one?"}, 0},
		},
	},
)
