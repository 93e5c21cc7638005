package nanobot

import (
	"strconv"

	"github.com/go-faster/jx"
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

// Read reads one option of the configuration; others are skipped.
func (b *TokenBudget) Read(d *jx.Decoder, key string) (err error) {
	switch key {
	case "context_window_tokens":
		b.Window, err = d.Int64()
	case "max_output_tokens":
		b.Output, err = d.Int64()
	case "safety_buffer_tokens":
		b.Safety, err = d.Int64()
	case "prompt_overhead_tokens":
		b.Overhead, err = d.Int64()
	case "max_rounds":
		b.Rounds, err = d.Int64()
	case "consolidation_ratio":
		var n jx.Num
		if n, err = d.Num(); err == nil {
			b.Ratio, err = strconv.ParseFloat(n.String(), 64)
		}
	default:
		err = d.Skip()
	}
	return err
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
