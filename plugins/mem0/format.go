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
	var facts []string
	if m.created != "" {
		facts = append(facts, m.created)
	}
	if m.score != nil {
		facts = append(facts, "score "+hundredths(*m.score))
	}
	if m.reranked != nil {
		facts = append(facts, "rerank "+hundredths(*m.reranked))
	}
	facts = append(facts, clean(m.id))
	if m.replaced {
		facts = append(facts, "superseded")
	}
	return sdk.EscapeText("- " + strings.ReplaceAll(m.text, "\n", "\n  ") + " [" + strings.Join(facts, " | ") + "]\n")
}

func hundredths(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

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
// Errors: invalid_argument where the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var rows []*memory
	for _, call := range r.Result.Raw.Calls {
		if call.Route != "search" && call.Route != "platform_search" {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is not a call of "+
				"retrieve")
		}
		found, _, err := readRows(call.Route, call.Body)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		rows = append(rows, found...)
	}
	fitted := s.format(c, rows, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
