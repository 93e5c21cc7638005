package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// format fits items into a budget: the first ones. Of an item that is too large alone the beginning is kept. A heading
// stands with the first item under it and is never left alone. The session's messages, which are the last items and the
// newest of them first, are shown in order of time.
func (b *backend) format(items *found, budget abi.ContextBudget) sdk.Fitted {
	frame := sdk.ContextOf(b.config, b.Scope)
	fitted := frame.FitFirst(b.Call, blocksOf(items.lines), budget)
	messages := slices.IndexFunc(items.lines, func(l line) bool { return l.heading == overMessages })
	if fitted.Cut || messages < 0 || fitted.End-messages < 2 {
		return fitted
	}
	for kept := fitted.End; kept >= messages; kept-- {
		lines := slices.Clone(items.lines[:kept])
		slices.Reverse(lines[messages:])
		again := frame.FitFirst(b.Call, blocksOf(lines), abi.ContextBudget{})
		// Tokenizers do not add up: in another order the same lines may be a token too many.
		if again.Truncated = kept < len(items.lines); budget.MaxTokens == nil || again.Tokens <= *budget.MaxTokens {
			return again
		}
	}
	return fitted
}

// blocksOf are lines as blocks of the prompt.
func blocksOf(lines []line) []string {
	blocks := make([]string, len(lines))
	for i, l := range lines {
		if i == 0 || lines[i-1].heading != l.heading {
			l.text = l.heading + "\n" + l.text
		}
		blocks[i] = sdk.EscapeText(l.text)
	}
	return blocks
}

// formatContext formats an earlier result again.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(b *backend, r *abi.FormatRequest) (*abi.FormatResult, error) {
	items, err := readItems(&r.Result.Raw, nil)
	if err != nil {
		return nil, err
	}
	fitted := b.format(items, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
