package simulate

import (
	"context"

	"github.com/memhost/memhost/eval/journal"
)

// Simulator plays users. It is safe for concurrent use, because personas run concurrently.
type Simulator interface {
	// Open starts a conversation. Its opening does not depend on the provider or the agent.
	//
	// Errors: those of a model's endpoint; a scripted user has none.
	Open(context.Context, *Setting) (Conversation, error)
	// Name is scripted, or the name of a model.
	Name() string
}

// Conversation is one test session of a user. It is not safe for concurrent use.
type Conversation interface {
	// Opening is what the user says first.
	Opening() string
	// React returns the user's reaction to an agent's answer, which may be empty. After accept and give_up the
	// conversation is over, and React must not be called again.
	//
	// Errors: those of a model's endpoint; a scripted user has none.
	React(ctx context.Context, answer string) (journal.Reaction, error)
}
