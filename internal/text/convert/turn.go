package convert

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// sessionKey is a session within its scope.
type sessionKey struct{ run, user, session string }

// session counts what was read from a session so far.
type session struct {
	// lines and turns are the position of the next conversation. Turns are numbered per line, so that a conversation
	// that has grown keeps the ids of its earlier turns.
	lines, turns int
}

// session returns the counters of a conversation. Nil, for a line that cannot be read at all, means the session of the
// options.
func (r *Reader) session(c *conversation) *session {
	key := sessionKey{r.options.RunID, r.options.UserID, r.options.SessionID}
	if c != nil {
		key = sessionKey{c.runID, c.userID, c.sessionID}
	}
	s, ok := r.sessions[key]
	if !ok {
		s = new(session)
		r.sessions[key] = s
	}
	return s
}

func (s *session) advance(turns int) {
	s.lines++
	s.turns += turns
}

// pass counts an unreadable line as one turn, so that later lines keep their ids when it has been corrected.
func (s *session) pass() { s.advance(1) }

// events splits the conversation into turns and converts each to an event.
func (c *conversation) events(s *session, o Options) ([]Item, error) {
	var items []Item
	first := 0
	for i, turn := range cutTurns(c.messages) {
		at, err := c.timeOf(turn, s.turns+i, first, o)
		if err != nil {
			return nil, err
		}
		e := &abi.MemoryEvent{RunID: c.runID, UserID: c.userID, AgentID: c.agentID, SessionID: c.sessionID,
			TurnID: fmt.Sprintf("turn-%04d", s.turns+i+1), Timestamp: at, Scenario: c.scenario, Context: c.context,
			Attribute: c.attribute,
			Metadata:  maps.Clone(c.metadata), Messages: make([]abi.Message, len(turn))}
		item := Item{Event: e}
		for j, m := range turn {
			e.Messages[j] = m.Message
			item.Attachments += m.attachments
		}
		e.EventID = EventID(e, s.lines, i)
		if err := e.Validate(); err != nil {
			return nil, ofLine(err, first)
		}
		items = append(items, item)
		first += len(turn)
	}
	return items, nil
}

// ofLine converts a message's index in an error from its turn to its line.
func ofLine(err error, first int) error {
	e := *abi.AsError(err)
	if rest, ok := strings.CutPrefix(e.Message, "messages["); ok {
		if index, rest, ok := strings.Cut(rest, "]"); ok {
			if i, err := strconv.Atoi(index); err == nil {
				e.Message = "messages[" + strconv.Itoa(first+i) + "]" + rest
			}
		}
	}
	return &e
}

// cutTurns splits messages into turns: a turn is a user message and what follows, up to the next one. Messages before
// the first user message belong to the first turn.
func cutTurns(messages []message) [][]message {
	var turns [][]message
	begin, hasUser := 0, false
	for i, m := range messages {
		if m.Role != abi.RoleUser || m.joins {
			continue
		}
		if hasUser {
			turns = append(turns, messages[begin:i])
			begin = i
		}
		hasUser = true
	}
	return append(turns, messages[begin:])
}

// timeOf is a turn's time: that of its first message with a time, or else computed from its place in the session.
func (c *conversation) timeOf(turn []message, index, first int, o Options) (string, error) {
	for _, m := range turn {
		if m.at != "" {
			return m.at, nil
		}
	}
	if c.start.IsZero() {
		field := "messages[" + strconv.Itoa(first) + "].timestamp"
		const start = "--start 2026-03-01T09:30:00Z (--step sets the time from turn to turn)"
		if c.sessionID == "" {
			return "", invalid(field+" and session_id", "missing").
				WithHint("say which conversation it is, and when it began: --session NAME " + start)
		}
		return "", invalid(field, "missing").WithHint("say when the conversation began: " + start)
	}
	return c.start.Add(time.Duration(index) * o.Step).Format(time.RFC3339Nano), nil
}

// EventID is the id of a turn without its own id: 32 hex digits of a SHA-256 over scope, session, position (of the
// conversation in the session, and of the turn in it) and the messages. It is the same whenever and from wherever the
// same conversation is read.
func EventID(e *abi.MemoryEvent, conversation, turn int) string {
	var b []byte
	add := func(part []byte) {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	for _, part := range []string{"memhost turn 1", e.RunID, e.UserID, e.SessionID} {
		add([]byte(part))
	}
	b = binary.AppendUvarint(b, uint64(conversation))
	b = binary.AppendUvarint(b, uint64(turn))
	for i := range e.Messages {
		add(abi.Marshal(&e.Messages[i]))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
