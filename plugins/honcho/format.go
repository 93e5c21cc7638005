package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// blocksOf renders items. A heading stands with the first item under it and is never left alone.
func blocksOf(lines []line) []string {
	blocks := make([]string, len(lines))
	for i := range lines {
		l := &lines[i]
		text := l.text
		if i == 0 || !lines[i-1].heading.is(l.heading) {
			text = l.heading.String() + "\n" + text
		}
		if !l.plain {
			text = sdk.EscapeText(text)
		}
		blocks[i] = text
	}
	return blocks
}

// format fits items into a budget: the first ones. Of an item that is too large alone the beginning is kept.
func (s *settings) format(c *sdk.Call, items *found, budget abi.ContextBudget) sdk.Fitted {
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocksOf(items.lines), budget)
}

// formatContext formats an earlier result again.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	items, err := readItems(&r.Result.Raw, nil)
	if err != nil {
		return nil, err
	}
	fitted := s.format(c, items, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
