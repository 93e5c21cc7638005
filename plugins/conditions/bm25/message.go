package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// message is one document: a message with text.
type message struct {
	eventID, sessionID, timestamp string
	// speaker is the message's name, or its role if it has no name.
	speaker, text string
}

func (m *message) members() []object.Member {
	return []object.Member{object.Always("event_id", &m.eventID), object.Always("session_id", &m.sessionID),
		object.Always("timestamp", &m.timestamp), object.Always("speaker", &m.speaker), object.Always("text", &m.text)}
}

// messagesOf returns an event's messages that have text. Tool calls have none.
func messagesOf(e *abi.MemoryEvent) []*message {
	var list []*message
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Content == nil || strings.TrimSpace(*m.Content) == "" {
			continue
		}
		speaker := m.Name
		if speaker == "" {
			speaker = string(m.Role)
		}
		list = append(list, &message{e.EventID, e.SessionID, e.Timestamp, speaker, *m.Content})
	}
	return list
}

// document returns the text that is indexed: "Caroline: I went to the lake."
func (m *message) document() string { return m.speaker + ": " + m.text }

// block is a message as shown in the prompt: "[2026-01-12T08:03:00Z] Caroline: I went to the lake.", or with the date
// only in the frames compact and minimal. The speaker is part of the text, as in the indexed document. recall also
// shows the time of day, because it shows messages in chronological order.
func (s *settings) block(m *message) sdk.Block {
	when := sdk.Day(m.timestamp)
	if s.recall {
		when = sdk.Minute(m.timestamp)
	}
	return sdk.Block{Before: "[" + sdk.UTC(m.timestamp) + "] ", Text: sdk.OneLine(m.speaker) + ": " + sdk.Indent(m.text),
		When: when}
}
