package nanobot

import (
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
)

// TokenBudget says when a session is too long by tokens, and down to what it is brought.
type TokenBudget struct {
	Window, Output, Safety, Overhead, Rounds int64
	Ratio                                    float64
}

// DefaultBudget is Nanobot's, with an allowance for the agent's own prompt.
func DefaultBudget() TokenBudget {
	return TokenBudget{Window: 200000, Output: 8192, Safety: 1024, Overhead: 4000, Rounds: 5, Ratio: 0.5}
}

// members are its options in the configuration.
func (b *TokenBudget) members() []object.Member {
	return []object.Member{object.Optional("context_window_tokens", &b.Window),
		object.Optional("max_output_tokens", &b.Output),
		object.Optional("safety_buffer_tokens", &b.Safety), object.Optional("prompt_overhead_tokens",
			&b.Overhead), object.Optional("max_rounds", &b.Rounds),
		object.Optional("consolidation_ratio", &b.Ratio)}
}

// On reports whether there is a limit.
func (b *TokenBudget) On() bool { return b.Window > 0 }

// Limit is the size from which on work is due.
func (b *TokenBudget) Limit() int64 { return b.Window - b.Output - b.Safety }

// Target is the size down to which it goes on.
func (b *TokenBudget) Target() int64 { return int64(float64(b.Limit()) * b.Ratio) }

// shorten works whole turns off the front of a session that is due, until it has come down to the target, no turn can
// be cut off, or the rounds are over.
func shorten(m Memory, s *Session, u *model.Usage) error {
	b := m.Common()
	if !due(m, s) {
		return nil
	}
	for range b.Tokens.Rounds {
		over := size(m, s) - b.Tokens.Target()
		if over <= 0 {
			return nil
		}
		messages, _ := s.Read(b.State, s.Pointer, s.Messages)
		tokens := make([]int64, len(messages))
		for i := range messages {
			tokens[i] = messages[i].tokens(b.Call)
		}
		at, _ := Boundary(messages, tokens, over)
		if at == 0 {
			return nil
		}
		if again, failed := m.Archive(s, s.Pointer+int64(at), u); failed != nil || !again {
			return failed
		}
	}
	return nil
}

// Boundary is the index of the first user message after the first one up to which at least wanted tokens are, with the
// tokens before it; the last user message where there are fewer; 0 if there is none. So no turn is split.
func Boundary(messages []Message, tokens []int64, wanted int64) (at int, removed int64) {
	sum := int64(0)
	for i := range messages {
		if i > 0 && messages[i].Role == "user" {
			at, removed = i, sum
			if removed >= wanted {
				return at, removed
			}
		}
		sum += tokens[i]
	}
	return at, removed
}
