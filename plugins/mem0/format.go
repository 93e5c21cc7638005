package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// render is a memory as the prompt has it, with what mem0 says of it:
//
//   - I moved to oat milk last week. [2025-03-10T09:30:00+00:00 | score 0.63 | a063983a-fa27-431e-b5df-90412b186bde]
//
// A reranker's score stands beside it by its own name: "score 0.63 | rerank 0.90".
func render(m *memory) string {
	facts := make([]string, 0, 4)
	if m.created != "" {
		facts = append(facts, m.created)
	}
	if m.score != nil {
		facts = append(facts, "score "+strconv.FormatFloat(*m.score, 'f', 2, 64))
	}
	if m.reranked != nil {
		facts = append(facts, "rerank "+strconv.FormatFloat(*m.reranked, 'f', 2, 64))
	}
	facts = append(facts, clean(m.id))
	if m.replaced {
		facts = append(facts, "superseded")
	}
	return sdk.EscapeText("- " + strings.ReplaceAll(m.text, "\n", "\n  ") + " [" + strings.Join(facts, " | ") + "]\n")
}

// format fits memories, best first, into the budget.
func (s *settings) format(c *sdk.Call, rows []*memory, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(rows))
	for i, m := range rows {
		blocks[i] = render(m)
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// formatContext formats an earlier result again. No call is made.
//
// Errors: invalid_argument where the result is none of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var rows []*memory
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if call.Route != "search" && call.Route != "platform_search" {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		found, _, err := readItems(call.Route, call.Body)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		rows = append(rows, found...)
	}
	fitted := s.format(c, rows, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
