package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// route is the name in raw.calls of the slot's own state.
const route = "state"

// block is a turn as the prompt has it:
//
//	[2026-01-12T08:03:00Z | work/food]
//	user: ...
//	assistant calls search (1): {"q":"tea"}
//	tool search (1): ...
//	assistant: ...
//
// and in the frames compact and minimal with "[2026-01-12 08:03 | work/food] " before its first line, without the date
// if the turn above has the same date. Further lines of a message are indented, so that no message can look like
// another speaker's or like another turn. The label is context/scenario. Ids of sessions, events and calls were chosen
// by callers and are not shown: calls are numbered within the turn. The attribute is not shown either: it names what
// the turn reveals, which the agent has to find out from the text.
func block(e *abi.MemoryEvent) sdk.Block {
	label := ""
	if e.Context != "" || e.Scenario != "" {
		label = " | " + sdk.OneLine(e.Context)
		if e.Scenario != "" {
			label += "/" + sdk.OneLine(e.Scenario)
		}
	}
	t := transcript{}
	for i := range e.Messages {
		t.add(&e.Messages[i])
	}
	return sdk.Block{Before: "[" + sdk.UTC(e.Timestamp) + label + "]\n", Text: strings.TrimSuffix(t.text.String(), "\n"),
		When: sdk.Minute(e.Timestamp) + label}
}

// transcript returns the messages of a turn, and the ids of their calls in order.
type transcript struct {
	text  strings.Builder
	calls []string
}

func (t *transcript) add(m *abi.Message) {
	speaker := string(m.Role)
	if m.Name != "" {
		speaker += " " + sdk.OneLine(m.Name)
	}
	if i := slices.Index(t.calls, m.ToolCallID); i >= 0 {
		speaker += " (" + sdk.Itoa(i+1) + ")"
	}
	if m.Content != nil {
		t.line(speaker, *m.Content)
	}
	for j := range m.ToolCalls {
		call := &m.ToolCalls[j]
		t.calls = append(t.calls, call.ID)
		t.line(speaker+" calls "+sdk.OneLine(call.Name)+" ("+sdk.Itoa(len(t.calls))+")", call.Arguments)
	}
}

func (t *transcript) line(speaker, text string) {
	t.text.WriteString(speaker + ": " + sdk.Indent(text) + "\n")
}

// format fits the newest turns into the budget and shows them oldest first.
func (s *settings) format(c *sdk.Call, blocks []sdk.Block, budget abi.ContextBudget) sdk.Fitted {
	for i := range blocks {
		blocks[i].Item = i
	}
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
	var blocks []sdk.Block
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
			blocks = append(blocks, block(&turns.Events[j]))
		}
	}
	return s.format(c, blocks, s.budget(r.Budget)).Result(r.Result.Evidence), nil
}
