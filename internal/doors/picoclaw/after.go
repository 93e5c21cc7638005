package picoclaw

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/text/transcript"
)

// turnEnd is the kind of the event that ends a turn; completed is the status of a turn with an answer.
const (
	turnEnd   = "agent.turn.end"
	completed = "completed"
)

// runtimeEvent holds what the hook reads of a hook.runtime_event.
type runtimeEvent struct {
	Kind  string `json:"kind"`
	Time  string `json:"time"`
	Scope struct {
		AgentID    string `json:"agent_id"`
		SessionKey string `json:"session_key"`
		TurnID     string `json:"turn_id"`
		Channel    string `json:"channel"`
		ChatID     string `json:"chat_id"`
		SenderID   string `json:"sender_id"`
	} `json:"scope"`
	Payload json.RawMessage `json:"payload"`
}

// turnPayload is the payload of turnEnd.
type turnPayload struct {
	Status       string
	UserMessage  string
	FinalContent string
}

// afterTurn puts a finished turn into the box.
func (h *Hook) afterTurn(params json.RawMessage) {
	var e runtimeEvent
	if err := json.Unmarshal(params, &e); err != nil {
		h.unknown("if it ended a turn, the turn was not recorded", err)
		return
	}
	if e.Kind != turnEnd {
		return
	}
	turn := h.turns.end(turnKey{e.Scope.SessionKey, e.Scope.TurnID})
	if !ofPerson(e.Scope.SessionKey, e.Scope.SenderID) || strings.HasPrefix(e.Scope.SessionKey, cronPrefix) {
		return
	}
	var p turnPayload
	var given struct{ Status, UserMessage *string }
	err := errors.Join(json.Unmarshal(e.Payload, &p), json.Unmarshal(e.Payload, &given))
	if err == nil && (given.Status == nil || given.UserMessage == nil) {
		err = errors.New("the payload has no Status, or no UserMessage")
	}
	if err != nil {
		h.unknown("the turn was not recorded", err)
		return
	}
	if _, err := abi.ParseTime(e.Time); err != nil {
		h.unknown("the turn is recorded with the time of now", err)
		e.Time = time.Now().UTC().Format(time.RFC3339Nano)
	}
	steered := turn.steered(p.UserMessage)
	if strings.HasPrefix(p.UserMessage, systemPrefix) {
		if len(steered) == 0 {
			return // a sub-agent's result, so no person spoke
		}
		p.UserMessage, steered = steered[0], steered[1:]
	}
	if p.Status != completed || p.UserMessage == "" {
		h.log.Info("the turn was not recorded: it has no message, or no answer", "status", p.Status)
		return
	}
	if h.o.Problem != nil {
		h.log.Warn("the turn was not recorded", "error", h.o.Problem)
		return
	}
	if who := e.speaker(); !h.allowed(h.scopeOf(who), who) {
		h.log.Info("the turn was not recorded: the memory belongs to somebody else", "sender_id", who.sender)
		return
	}
	if err := h.o.Box.Add(h.event(&e, &p, steered)); err != nil {
		h.log.Error("the turn was not recorded: it could not be put on disk", "error", err, "hint",
			abi.AsError(err).Hint)
	}
}

// event is a turn as an event of the contract. The metadata records who spoke in which chat; nothing is decided by it.
func (h *Hook) event(e *runtimeEvent, p *turnPayload, steered []string) *abi.MemoryEvent {
	scope := h.scopeOf(e.speaker())
	event := &abi.MemoryEvent{EventID: eventID(e, p, steered), RunID: scope.RunID, UserID: scope.PersonaID,
		AgentID:   scope.AgentID,
		SessionID: h.sessionID(e.Scope.SessionKey), TurnID: shortID(e.Scope.TurnID + "@" + e.Time), Timestamp: e.Time,
		Metadata: map[string]abi.Raw{},
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &p.UserMessage}}}
	for i := range steered {
		event.Messages = append(event.Messages, abi.Message{Role: abi.RoleUser, Content: &steered[i]})
	}
	if words, _ := transcript.Answer(p.FinalContent); words != "" {
		event.Messages = append(event.Messages, abi.Message{Role: abi.RoleAssistant, Content: &words})
	}
	for key, value := range map[string]string{"picoclaw_agent": e.Scope.AgentID, "channel": e.Scope.Channel,
		"chat_id": e.Scope.ChatID, "sender_id": e.Scope.SenderID} {
		if value != "" {
			event.Metadata[key] = mustMarshal(value)
		}
	}
	return event
}

// eventID returns the same id for the same turn, however often it is reported. PicoClaw's own ids count from 1 in each
// process, so the time is needed to distinguish them.
func eventID(e *runtimeEvent, p *turnPayload, steered []string) string {
	parts := []string{e.Scope.AgentID, e.Scope.SessionKey, e.Scope.TurnID, e.Time, p.UserMessage, p.FinalContent}
	return "picoclaw-" + outbox.Digest(append(parts, steered...)...)
}

// maxID is the longest id that the contract allows, in bytes.
const maxID = 512

// shortID is an id, or its digest if the id is longer than the contract allows.
func shortID(id string) string {
	if len(id) > maxID {
		return outbox.Digest(id)
	}
	return id
}

// sessionID converts PicoClaw's session key to a session of the contract.
func (h *Hook) sessionID(key string) string {
	if h.o.Session != "" {
		return h.o.Session
	}
	if key == "" {
		return sideQuestion
	}
	return shortID(key)
}

// speaker returns who spoke in the turn, and where.
func (e *runtimeEvent) speaker() speaker {
	return speaker{agent: e.Scope.AgentID, session: e.Scope.SessionKey, channel: e.Scope.Channel, sender: e.Scope.SenderID}
}
