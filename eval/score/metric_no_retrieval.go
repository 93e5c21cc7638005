package score

var _ = register(metric{
	Entry: Entry{Name: "no_retrieval", Group: "behaviour", Unit: "share",
		What: "sessions in which the agent retrieved nothing before its first answer; they count in the other figures as it answered"},
	applies: (*probe).talkedAbout, none: "the pack has no preferences", absent: noAgent,
	behave:        func(c *conversation) float64 { return yes(!c.retrieved()) },
	conversations: []exampleConversation{{"an agent that answers from its model alone", "town", []string{"To Lagos."}, 1}},
})
