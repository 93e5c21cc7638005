package nanobot

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
