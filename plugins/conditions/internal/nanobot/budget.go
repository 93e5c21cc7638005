package nanobot

import "github.com/memhost/memhost/sdk"

// TokenBudget says when a session is too long by tokens, and down to what it is brought.
type TokenBudget struct {
	Window, Output, Safety, Overhead, Rounds int64
	Ratio                                    float64
}

// DefaultBudget is Nanobot's, with an allowance for the agent's own prompt.
func DefaultBudget() TokenBudget {
	return TokenBudget{Window: 200000, Output: 8192, Safety: 1024, Overhead: 4000, Rounds: 5, Ratio: 0.5}
}

// Fields are its options in the configuration.
func (b *TokenBudget) Fields() []Field {
	return []Field{Number("context_window_tokens", &b.Window), Number("max_output_tokens", &b.Output), Number("safety_buffer_tokens", &b.Safety),
		Number("prompt_overhead_tokens", &b.Overhead), Number("max_rounds", &b.Rounds), Real("consolidation_ratio", &b.Ratio)}
}

// On tells whether there is a limit.
func (b *TokenBudget) On() bool { return b.Window > 0 }

// Limit is the size from which on work is due.
func (b *TokenBudget) Limit() int64 { return b.Window - b.Output - b.Safety }

// Target is the size down to which it goes on.
func (b *TokenBudget) Target() int64 { return int64(float64(b.Limit()) * b.Ratio) }

// Due tells whether a session of this size has work.
func (b *TokenBudget) Due(size int64) bool { return size >= b.Limit() }

// Shorten cuts whole turns off the front of a session that is due, until it has come down to the target, no turn can be cut off, or the rounds are over. size
// estimates the prompt of an agent that works on the session; cut works off the messages before end, and tells whether to go on.
func (b *TokenBudget) Shorten(c *sdk.Call, s *Session, size func() (int64, error), cut func(end int64) (more bool, err error)) error {
	if !b.On() {
		return nil
	}
	n, err := size()
	if err != nil || !b.Due(n) {
		return err
	}
	for range b.Rounds {
		if n <= b.Target() {
			return nil
		}
		messages, _, err := s.Read(c, s.Pointer, s.Messages)
		if err != nil {
			return err
		}
		tokens := make([]int64, len(messages))
		for i := range messages {
			tokens[i] = messages[i].Tokens(c)
		}
		at, _ := Boundary(messages, tokens, max(1, n-b.Target()))
		if at == 0 {
			return nil
		}
		if more, err := cut(s.Pointer + int64(at)); err != nil || !more {
			return err
		}
		if n, err = size(); err != nil {
			return err
		}
	}
	return nil
}

// Boundary is the index of the first user message behind the first one up to which at least wanted tokens are, with the tokens before it; the last user
// message where there are fewer; 0 where there is none. So no turn is split.
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
