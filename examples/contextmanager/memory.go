// Package contextmanager shows memhost's slot as the context manager of a Go agent, in the shape that PicoClaw's has:
// assemble before the model is called, ingest every message after it was said, clear when the user begins anew.
//
// It is in PicoClaw's shape, and not its interface: Assemble there is given no query, since it runs before the message
// is taken in, and its summary goes into the system message. A memory wants the query, and its context belongs at the
// end of the user's message: in PicoClaw itself use the hook (docs/agents.md).
//
// Agent (agent.go) is a loop around it. Copy both and put your own model in.
package contextmanager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// Message is what an agent's messages have at least.
type Message struct {
	Role    abi.Role
	Content string
}

// Assembled is what goes into a prompt.
type Assembled struct {
	// History is the conversation of this session, oldest first.
	History []Message
	// Memory is the slot's memory-context element; empty if the memory has nothing. It belongs at the end of the user's
	// message, not into the system message: models keep to it better there, and the provider's prompt cache stays warm.
	Memory string
}

// Manager is a context manager with a memory slot behind it. The agent's own history is the window of the session; the
// slot remembers across sessions.
type Manager struct {
	// Slot is a host.Slot, or a client of one that runs elsewhere. Required.
	Slot host.Contract
	// Scope is whose memory it is. Required. It is set by the program, never by what is said in a conversation.
	Scope abi.MemoryScope
	// Wait is how long a turn waits for its memory. Required.
	Wait time.Duration
	// Logger receives a warning when a turn has no memory, or was not recorded. Required.
	Logger hclog.Logger
	// Now is the clock. Required.
	Now func() time.Time

	mu       sync.Mutex
	sessions map[string]*session
	// unsent are turns that the slot has not taken, oldest first.
	unsent []*abi.MemoryEvent
	// sending is held while they are delivered.
	sending sync.Mutex
}

// session is one conversation.
type session struct {
	// epoch counts how often it was cleared, turns what was said since.
	epoch, turns int
	history      []Message
	// open are the messages of the turn under way, from the user's on.
	open []Message
}

// id is the session's id for the slot. A cleared session is another one.
func (s *session) id(key string) string { return key + "#" + strconv.Itoa(s.epoch) }

func (m *Manager) session(key string) *session {
	if m.sessions == nil {
		m.sessions = map[string]*session{}
	}
	if m.sessions[key] == nil {
		m.sessions[key] = new(session)
	}
	return m.sessions[key]
}

// Assemble gives history and memory for the model's answer to a message that has not been ingested yet. budget bounds
// the memory, in tokens.
//
// A slot that is down or slow costs the turn its memory and nothing else: the log says so.
func (m *Manager) Assemble(ctx context.Context, key, message string, budget int64) Assembled {
	m.mu.Lock()
	s := m.session(key)
	a, id := Assembled{History: append([]Message(nil), s.history...)}, s.id(key)
	m.mu.Unlock()

	within, cancel := context.WithTimeout(ctx, m.Wait)
	defer cancel()
	result, err := m.Slot.Retrieve(within, &abi.RetrieveRequest{Query: message, Scope: m.Scope, SessionID: id,
		Budget: abi.ContextBudget{MaxTokens: &budget}})
	if err != nil {
		m.Logger.Warn("this turn has no memory", "session", key, "error", err)
		return a
	}
	a.Memory = result.FormattedContext
	return a
}

// Ingest takes a message that was said, without the memory that was shown with it. The assistant's answer ends the
// turn, and the turn is recorded.
//
// Errors: that of the slot. A turn that failed for now is sent again with the next one, under the same event id, so
// that it arrives once; it is kept in memory
// only. An agent that must not wait calls Ingest from a goroutine of its own.
func (m *Manager) Ingest(ctx context.Context, key string, message Message) error {
	m.mu.Lock()
	s := m.session(key)
	s.history = append(s.history, message)
	s.open = append(s.open, message)
	if message.Role == abi.RoleAssistant {
		s.turns++
		m.unsent = append(m.unsent, m.event(key, s))
		s.open = nil
	}
	m.mu.Unlock()
	return m.deliver(ctx)
}

// deliver sends what the slot has not taken yet.
func (m *Manager) deliver(ctx context.Context) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	for {
		m.mu.Lock()
		if len(m.unsent) == 0 {
			m.mu.Unlock()
			return nil
		}
		event := m.unsent[0]
		m.mu.Unlock()
		receipt, err := m.Slot.RecordEvent(ctx, event)
		if err != nil && abi.AsError(err).Retryable {
			return fmt.Errorf("turn %s waits: %w", event.EventID, err)
		}
		m.mu.Lock()
		m.unsent = m.unsent[1:]
		m.mu.Unlock()
		if err != nil {
			return fmt.Errorf("turn %s is lost: %w", event.EventID, err)
		}
		if receipt.Status == abi.StatusSkippedReadOnly {
			m.Logger.Info("the slot is read-only: a turn was not recorded", "event_id", event.EventID)
		}
	}
}

// event is a turn as the slot takes it. A process that starts anew counts its turns anew, so the time is part of the
// id.
func (m *Manager) event(key string, s *session) *abi.MemoryEvent {
	now := m.Now()
	e := &abi.MemoryEvent{RunID: m.Scope.RunID, UserID: m.Scope.PersonaID, AgentID: m.Scope.AgentID,
		SessionID: s.id(key),
		TurnID:    strconv.Itoa(s.turns), Timestamp: now.Format(time.RFC3339Nano)}
	e.EventID = e.SessionID + "/" + e.TurnID + "@" + strconv.FormatInt(now.UnixNano(), 10)
	for _, said := range s.open {
		e.Messages = append(e.Messages, abi.Message{Role: said.Role, Content: &said.Content})
	}
	return e
}

// Clear begins a session anew: its history is gone, and what is said from now on is another session for the slot. What
// the slot remembers stays, as it does when a person says "new chat".
func (m *Manager) Clear(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(key)
	m.sessions[key] = &session{epoch: s.epoch + 1}
}

// Forget erases the slot's memory of this scope, in all sessions. It cannot be undone.
//
// Errors: read_only while the slot is; the slot's. A reset that leaves something behind is an error, too.
func (m *Manager) Forget(ctx context.Context) error {
	receipt, err := m.Slot.ResetScope(ctx, m.Scope)
	if err != nil {
		return err
	}
	if receipt.Status != abi.ResetDone {
		return errors.New("reset " + string(receipt.Status) + ": " + fmt.Sprint(receipt.Remains))
	}
	return nil
}
