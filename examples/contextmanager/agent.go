package contextmanager

import (
	"context"

	"github.com/memhost/memhost/abi"
)

// Model answers a prompt: the messages of a chat completion.
type Model func(ctx context.Context, prompt []Message) (string, error)

// Agent is an agent without tools: one answer to each message.
type Agent struct {
	Memory *Manager
	Model  Model
	// System is the system message, Budget the most tokens of memory in a prompt.
	System string
	Budget int64
}

// Turn answers a message of the user's.
//
// Errors: the model's. Memory that fails does not fail a turn.
func (a *Agent) Turn(ctx context.Context, session, message string) (string, error) {
	if message == "/clear" {
		a.Memory.Clear(session)
		return "A new conversation.", nil
	}
	context := a.Memory.Assemble(ctx, session, message, a.Budget)
	shown := message
	if context.Memory != "" {
		shown += "\n\n" + context.Memory
	}
	prompt := append([]Message{{abi.RoleSystem, a.System}}, context.History...)
	answer, err := a.Model(ctx, append(prompt, Message{abi.RoleUser, shown}))
	if err != nil {
		return "", err // nothing was said: nothing is ingested
	}
	for _, said := range []Message{{abi.RoleUser, message}, {abi.RoleAssistant, answer}} {
		if err := a.Memory.Ingest(ctx, session, said); err != nil {
			a.Memory.Logger.Warn("the turn was not recorded", "session", session, "error", err)
		}
	}
	return answer, nil
}
