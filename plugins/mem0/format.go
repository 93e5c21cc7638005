package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// block is a memory as the prompt shows it, with mem0's details and a shortened id:
//
//   - I moved to oat milk last week. [2025-03-10T09:30:00Z | score 0.63 | a063983a]
//
// A reranker's score is shown after mem0's own score, under its own name: "score 0.63 | rerank 0.90". In the frames
// compact and minimal:
//
//	m1 [2025-03-10, superseded] I moved to oat milk last week.
func (m *memory) block(id string) sdk.Block {
	b := sdk.Block{Before: "- ", Text: sdk.Indent(m.text), When: sdk.Day(m.created)}
	var facts []string
	if m.created != "" {
		facts = append(facts, sdk.UTC(m.created))
	}
	if m.score != nil {
		facts = append(facts, "score "+hundredths(*m.score))
	}
	if m.reranked != nil {
		facts = append(facts, "rerank "+hundredths(*m.reranked))
	}
	facts = append(facts, id)
	if m.replaced {
		facts = append(facts, "superseded")
		b.When = strings.TrimPrefix(b.When+", superseded", ", ")
	}
	b.After = " [" + strings.Join(facts, " | ") + "]"
	return b
}

func hundredths(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// format fits memories, best first, into the budget.
func (s *settings) format(c *sdk.Call, rows []*memory, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks := make([]string, len(rows)), make([]sdk.Block, len(rows))
	for i, m := range rows {
		ids[i] = clean(m.id)
	}
	for i, id := range sdk.ShortIDs(ids) {
		blocks[i] = rows[i].block(id)
		blocks[i].Item = i
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// formatContext formats an earlier result again. No call is made.
//
// Errors: invalid_argument if the result does not come from retrieve.
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
	return s.format(c, rows, r.Budget).Result(r.Result.Evidence), nil
}
