package nanobot

// Replay returns the part of a session's messages that can be shown to an agent again: at most the last most messages
// (0: all). It begins with a user's message if there is one, and has no tool call without its result and no result
// without its call. messages is not changed.
func Replay(messages []Message, most int) []Message {
	if most > 0 && len(messages) > most {
		messages = messages[len(messages)-most:]
	}
	for i := range messages {
		if messages[i].Role == "user" {
			messages = messages[i:]
			break
		}
	}
	kept := append([]Message(nil), messages...)
	for {
		next := dropOrphans(dropUnanswered(kept))
		if len(next) == len(kept) {
			return next
		}
		kept = next
	}
}

// dropUnanswered removes an assistant's message if one of its calls has no later result, together with its other
// results.
func dropUnanswered(messages []Message) []Message {
	gone := map[int]bool{}
	for i := range messages {
		calls := messages[i].ToolCalls
		if messages[i].Role != "assistant" || len(calls) == 0 {
			continue
		}
		results, answered := []int{}, 0
		for _, call := range calls {
			found := false
			for j := i + 1; j < len(messages); j++ {
				if messages[j].Role == "tool" && messages[j].ToolCallID == call.ID {
					results = append(results, j)
					found = true
				}
			}
			if found {
				answered++
			}
		}
		if answered < len(calls) {
			gone[i] = true
			for _, j := range results {
				gone[j] = true
			}
		}
	}
	return without(messages, gone)
}

// dropOrphans removes results with no call before them.
func dropOrphans(messages []Message) []Message {
	announced, gone := map[string]bool{}, map[int]bool{}
	for i := range messages {
		for _, call := range messages[i].ToolCalls {
			announced[call.ID] = true
		}
		if messages[i].Role == "tool" && !announced[messages[i].ToolCallID] {
			gone[i] = true
		}
	}
	return without(messages, gone)
}

func without(messages []Message, gone map[int]bool) []Message {
	if len(gone) == 0 {
		return messages
	}
	var kept []Message
	for i := range messages {
		if !gone[i] {
			kept = append(kept, messages[i])
		}
	}
	return kept
}
