package main

import (
	"strings"

	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// render is a memory as the prompt has it, with what mem0 says of it:
//
//   - I moved to oat milk last week. [2025-03-10T09:30:00+00:00 | score 0.63 | a063983a-fa27-431e-b5df-90412b186bde]
//
// A reranker's score stands beside it by its own name: "score 0.63 | rerank 0.90". It is written behind what buf holds.
func render(buf []byte, m *memory) []byte {
	text, id, begin := m.text, m.id, len(buf)
	plain := words.Plain(text) && words.Plain(id)
	if !plain {
		text, id = strings.ReplaceAll(text, "\n", "\n  "), clean(id)
	}
	buf = sdk.Append(buf, "- ")
	buf = sdk.Append(buf, text)
	buf = sdk.Append(buf, " [")
	if m.created != "" {
		buf = sdk.Append(buf, m.created)
		buf = sdk.Append(buf, " | ")
	}
	if m.score.told {
		buf = sdk.AppendHundredths(sdk.Append(buf, "score "), m.score.value)
		buf = sdk.Append(buf, " | ")
	}
	if m.reranked.told {
		buf = sdk.AppendHundredths(sdk.Append(buf, "rerank "), m.reranked.value)
		buf = sdk.Append(buf, " | ")
	}
	buf = sdk.Append(buf, id)
	if m.replaced {
		buf = sdk.Append(buf, " | superseded")
	}
	buf = sdk.Append(buf, "]\n")
	if plain { // the rest is ours, or a time
		return buf
	}
	return sdk.Append(buf[:begin], sdk.EscapeText(string(buf[begin:])))
}

// format fits memories, best first, into the budget.
func (s *settings) format(c *sdk.Call, rows []*memory, budget abi.ContextBudget) sdk.Fitted {
	room := 0
	for _, m := range rows {
		room += len(m.text) + len(m.created) + len(m.id) + 64
	}
	blocks, all := make([]string, len(rows)), make([]byte, 0, room)
	for i, m := range rows {
		begin := len(all)
		all = render(all, m)
		blocks[i] = words.View(all[begin:])
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
		found, _, err := readItems(call.Route, call.Body, false)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		rows = append(rows, found...)
	}
	fitted := s.format(c, rows, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
