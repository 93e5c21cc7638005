package convert

import (
	"time"

	"github.com/memhost/memhost/abi"
)

// Said is one message of a conversation that has been read already: who said what, and when. A zero At is a message
// without a time.
type Said struct {
	Role abi.Role
	Text string
	At   time.Time
	// Joins: a user's message that belongs to the turn before it.
	Joins bool
}

// Events cuts a whole conversation into turns and makes an event of each, in order. Scope, Start and Step are those of
// the options; metadata goes into every event. The same conversation gets the same ids and times each time, also when
// turns have been added at its end.
//
// Errors: *LineError with the line given, for a conversation that no slot would take.
func Events(o Options, sessionID string, said []Said, metadata map[string]abi.Raw, line int) ([]Item, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &conversation{runID: o.RunID, userID: o.UserID, agentID: o.AgentID, sessionID: sessionID, start: o.Start,
		metadata: metadata}
	for _, s := range said {
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
