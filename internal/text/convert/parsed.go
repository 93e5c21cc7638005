package convert

import (
	"time"

	"github.com/memhost/memhost/abi"
)

// ParsedMessage is one message of a conversation that has already been parsed. A zero At means that it has no time.
type ParsedMessage struct {
	Role abi.Role
	Text string
	At   time.Time
	// Joins means that it is a user's message, but belongs to the previous turn.
	Joins bool
}

// Events splits a whole conversation into turns and converts each to an event, in order. Scope, Start and Step come
// from the options; metadata is added to every event. The same conversation always gets the same ids and times, even
// after turns were appended to it.
//
// Errors: *LineError with the given line, for a conversation that no slot would accept.
func Events(o Options, sessionID string, messages []ParsedMessage, metadata map[string]abi.Raw, line int) ([]Item, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &conversation{runID: o.RunID, userID: o.UserID, agentID: o.AgentID, sessionID: sessionID, start: o.Start,
		metadata: metadata}
	for _, s := range messages {
		m := message{Message: abi.Message{Role: s.Role, Content: &s.Text}, joins: s.Joins}
		if !s.At.IsZero() {
			m.at = s.At.UTC().Format(time.RFC3339Nano)
		}
		c.messages = append(c.messages, m)
	}
	items, err := c.events(new(session), o)
	if err != nil {
		return nil, &LineError{line, abi.AsError(err)}
	}
	for i := range items {
		items[i].Line = line
	}
	return items, nil
}
