package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// fit renders the items under their groups' own names and keeps as many from the front as the budget allows:
//
//	## text_mem
//	- [LongTermMemory | said 2026-05-01T10:00:00Z | score 0.71 | id 6b0c4a1e-...] The user moved to Lyon.
//	## pref_mem
//	- [PreferenceMemory | ...] ...
func (s *settings) fit(c *sdk.Call, items []found, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(items))
	last := ""
	for i, m := range items {
		if m.group != last {
			blocks[i] = "## " + m.group + "\n"
			last = m.group
		}
		blocks[i] += s.render(m.item)
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// render is one memory. Times are said, when the user said it, or else ingested, when MemOS took it in.
func (s *settings) render(m *item) string {
	var about []string
	if m.kind != "" {
		about = append(about, m.kind)
	}
	if m.raw() {
		about = append(about, "raw")
	}
	if at := m.said(); at != "" {
		about = append(about, "said "+at)
	} else if m.createdAt != "" {
		about = append(about, "ingested "+m.createdAt)
	}
	if m.relativity != nil && *m.relativity != 0 && s.rerank {
		about = append(about, "score "+strconv.FormatFloat(*m.relativity, 'f', 2, 64))
	}
	if m.id != "" {
		about = append(about, "id "+m.id)
	}
	text := "[" + sdk.OneLine(strings.Join(about, " | ")) + "] " + strings.TrimRight(m.memory, "\n")
	return sdk.EscapeText("- "+strings.ReplaceAll(text, "\n", "\n  ")) + "\n"
}

// formatContext formats an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var items []found
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if !strings.HasPrefix(call.Route, "search_") {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		a, ok := openAnswer(call.Body)
		if !ok {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: the body is no answer of MemOS")
		}
		groups, err := parseGroups(call.Route, a)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		items = append(items, listed(groups)...)
	}
	fitted := s.fit(c, items, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
