package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// route is what raw.calls names: the slot's own state.
const route = "state"

// render is a turn as the prompt has it:
//
//	[2026-01-12T09:03:00+01:00 | session s1 | work/food | event e1]
//	user: ...
//	assistant calls search [call_1]: {"q":"tea"}
//	tool search [call_1]: ...
//	assistant: ...
//
// The label is context/scenario. The attribute is not shown: it says what the turn reveals, which is for the reader
// to find.
func render(e *abi.MemoryEvent) string {
	var b strings.Builder
	b.WriteString("[" + e.Timestamp + " | session " + sdk.OneLine(e.SessionID))
	if e.Context != "" || e.Scenario != "" {
		b.WriteString(" | " + sdk.OneLine(e.Context))
		if e.Scenario != "" {
			b.WriteString("/" + sdk.OneLine(e.Scenario))
		}
	}
	b.WriteString(" | event " + sdk.OneLine(e.EventID) + "]\n")
	for i := range e.Messages {
		m := &e.Messages[i]
		speaker := string(m.Role)
		if m.Name != "" {
			speaker += " " + sdk.OneLine(m.Name)
		}
		if m.ToolCallID != "" {
			speaker += " [" + sdk.OneLine(m.ToolCallID) + "]"
		}
		if m.Content != nil {
			b.WriteString(speaker + ": ")
			b.WriteString(*m.Content)
			b.WriteByte('\n')
		}
		for j := range m.ToolCalls {
			call := &m.ToolCalls[j]
			b.WriteString(speaker + " calls " + sdk.OneLine(call.Name) + " [" + sdk.OneLine(call.ID) + "]: ")
			b.WriteString(call.Arguments)
			b.WriteByte('\n')
		}
	}
	return sdk.EscapeText(b.String())
}

// format fits rendered turns, oldest first, into the budget: the newest ones.
func (s *settings) format(c *sdk.Call, blocks []string, budget abi.ContextBudget) sdk.Fitted {
	return sdk.ContextOf(s.config, c.Scope).FitNewest(c, blocks, budget)
}

// formatContext formats the turns of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if call.Route != route {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		var turns abi.EventBatch
		if err := abi.Unmarshal(append(append([]byte(`{"events":`), call.Body...), '}'), &turns); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		for j := range turns.Events {
			blocks = append(blocks, render(&turns.Events[j]))
		}
	}
	fitted := s.format(c, blocks, s.budget(r.Budget))
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
