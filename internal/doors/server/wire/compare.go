package wire

import (
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
)

// MaxCompared is the most providers that one comparison asks.
const MaxCompared = 8

// CompareRequest asks other memories the question that the serving one was asked.
type CompareRequest struct {
	Scope abi.MemoryScope `json:"scope"`
	Query string          `json:"query"`
	// Providers are shadows of the slot, or built-in memories that need neither a server nor a model. At most 8.
	Providers []string `json:"providers"`
	// MaxTokens bounds each context; 0 means 1500.
	MaxTokens int64 `json:"max_tokens,omitempty"`
}

// Validate checks scope, question, providers and budget.
func (x *CompareRequest) Validate() error {
	switch {
	case x.Query == "":
		return abi.NewError(abi.CodeInvalidArgument, "query: missing")
	case len(x.Providers) == 0 || len(x.Providers) > MaxCompared:
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("providers: got %d, want 1 to %d", len(x.Providers),
			MaxCompared))
	case slices.Contains(x.Providers, ""):
		return abi.NewError(abi.CodeInvalidArgument, "providers: an empty name")
	case x.MaxTokens < 0:
		return abi.NewError(abi.CodeInvalidArgument, "max_tokens: want 0 or more")
	}
	return under("scope", x.Scope.Validate())
}

// Comparison has the answers of other memories to one question.
type Comparison struct {
	// Events counts the events of the scope's archive with which each memory was filled, LeftOut those that it was not:
	// they are not in the archive, or there are 5000 newer ones.
	Events  int64            `json:"events"`
	LeftOut int64            `json:"left_out"`
	Answers []ComparedAnswer `json:"answers"`
}

// ComparedAnswer is the answer of one memory. It has a context or an error.
type ComparedAnswer struct {
	Provider string `json:"provider"`
	// Shadow says that the slot's shadow was asked, with what it has: it was not filled for the comparison.
	Shadow           bool    `json:"shadow,omitempty"`
	FormattedContext string  `json:"formatted_context"`
	Tokens           int64   `json:"tokens"`
	LatencyMS        float64 `json:"latency_ms,omitempty"`
	// FillMS is how long it took to fill the memory.
	FillMS float64    `json:"fill_ms,omitempty"`
	Error  *abi.Error `json:"error,omitempty"`
}

// Take sets the context and its figures from a result.
func (x *ComparedAnswer) Take(result *abi.RetrieveResult) {
	x.FormattedContext = result.FormattedContext
	if t := result.Trace; t != nil {
		x.LatencyMS = t.LatencyMS
		if t.TokenCount != nil {
			x.Tokens = *t.TokenCount
		}
	}
}
