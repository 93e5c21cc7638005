package plugins

import (
	"encoding/json"
	"strings"
)

// EventCalls is how often the backend of a built-in provider asks a language model of its own for one event, as far as
// that can be known before: the backend's page in docs/backends says how it was found.
type EventCalls struct {
	// Known: there is a least number, which may be 0. Least is that number.
	Known bool
	Least int64
	// About says in a few words what is asked, how much more it is as a rule, or why there is no number.
	About string
}

// EventCallsOf returns the calls of a provider with its config block, of which it reads what decides; ok is false for a
// provider without a backend of its own.
func EventCallsOf(provider string, block []byte) (calls EventCalls, ok bool) {
	var c struct {
		URL     string `json:"url"`
		API     string `json:"api"`
		Infer   *bool  `json:"infer"`
		AddMode string `json:"add_mode"`
	}
	_ = json.Unmarshal(block, &c) // the host has checked it; another block decides nothing here
	switch provider {
	case "mem0", "simple_rag":
		infer := provider == "mem0"
		if c.Infer != nil {
			infer = *c.Infer
		}
		switch {
		case !infer:
			return EventCalls{Known: true, About: "without infer mem0 asks none"}, true
		case c.API == "platform" || strings.Contains(c.URL, "//api.mem0.ai"):
			return EventCalls{About: "what mem0's hosted platform asks cannot be seen"}, true
		}
		return EventCalls{Known: true, Least: 1, About: "mem0 extracts facts with 1 for each event"}, true
	case "graphiti":
		return EventCalls{Known: true, Least: 2, About: "Graphiti asks 2 for each event, and 3 to 10 as a rule"}, true
	case "memos":
		if c.AddMode == "sync/fast" {
			return EventCalls{Known: true, About: "in add_mode sync/fast MemOS asks none"}, true
		}
		return EventCalls{Known: true, Least: 1, About: "MemOS asks 1 for each window of an event's text, and 2 more for " +
			"preferences where these are on"}, true
	case "honcho":
		return EventCalls{About: "Honcho asks 1 for each batch of an author in a session: how many events come together " +
			"depends on their length and on the server"}, true
	}
	return EventCalls{}, false
}
