package nanobot

import (
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
)

// TokenBudget decides by tokens when a session is too long, and how far to shorten it.
type TokenBudget struct {
	Window, Output, Safety, Overhead, Rounds int64
	Ratio                                    float64
}

// DefaultBudget is Nanobot's budget, with an allowance for the agent's own prompt.
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

// Limit is the size at which work becomes due.
func (b *TokenBudget) Limit() int64 { return b.Window - b.Output - b.Safety }

// Target is the size to which a session is shortened.
func (b *TokenBudget) Target() int64 { return int64(float64(b.Limit()) * b.Ratio) }

// shorten archives whole turns from the front of a due session until it reaches the target, no more turns can be
// archived, or the rounds are used up.
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

// Boundary returns the index of a user message, so that no turn is split, and the number of tokens before it. It is the
// first user message after the first one with at least wanted tokens before it; the last user message if there are
// fewer tokens; 0 if there is none.
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
