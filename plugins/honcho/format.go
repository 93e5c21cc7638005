package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// format fits items into a budget: the first ones. Of an item that is too large alone the beginning is kept. A heading
// stands with the first item under it and is never left alone.
func (b *backend) format(items *found, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(items.lines))
	for i, l := range items.lines {
		if i == 0 || items.lines[i-1].heading != l.heading {
			l.text = l.heading + "\n" + l.text
		}
		blocks[i] = sdk.EscapeText(l.text)
	}
	return sdk.ContextOf(b.config, b.Scope).FitFirst(b.Call, blocks, budget)
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
