package conversations

import (
	"fmt"
	"maps"
	"slices"
)

// LeftOut says for people what was read and is not recorded: "3 tool calls", in a fixed order. What a person left
// behind without losing words (an attachment that is named, a time that could not be read) is not in it.
func (c *Counts) LeftOut() []string {
	var left []string
	for _, part := range []struct {
		n         int
		one, many string
	}{
		{c.Credentials, "credential", "credentials"}, {c.ToolCalls, "tool call", "tool calls"},
		{c.ToolOutputs, "tool output", "tool outputs"}, {c.Thoughts, "thought", "thoughts"},
		{c.Instructions, "instruction", "instructions"}, {c.Replaced, "replaced message", "replaced messages"},
		{c.SideConversations, "sub-agent message", "sub-agent messages"}, {c.TakenBack, "prompt taken back", "prompts taken back"},
		{c.Repeated, "repeated message", "repeated messages"}, {c.Unfinished, "unfinished turn", "unfinished turns"},
		{c.ProgramEntries, "program note", "program notes"}, {c.CutOff, "last line cut off", "last lines cut off"},
		{c.Empty, "empty conversation", "empty conversations"},
		{c.Others, "message of other sessions or agents", "messages of other sessions or agents"},
		{c.AnswersToOthers, "answer to them", "answers to them"},
	} {
		switch part.n {
		case 0:
		case 1:
			left = append(left, "1 "+part.one)
		default:
			left = append(left, fmt.Sprintf("%d %s", part.n, part.many))
		}
	}
	for _, of := range slices.Sorted(maps.Keys(c.Unknown)) {
		left = append(left, fmt.Sprintf("%d of type `%s`, which this version does not know", c.Unknown[of], of))
	}
	for _, name := range c.Derived {
		left = append(left, name+", which has facts that were drawn from conversations, not conversations")
	}
	return left
}
