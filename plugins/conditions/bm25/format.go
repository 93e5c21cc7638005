package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// route is what raw.calls names: the slot's own state.
const route = "state"

// format fits messages, best first, into the budget: the best ones, and shows them best first or oldest first.
func (s *settings) format(c *sdk.Call, found []*scored, budget abi.ContextBudget) sdk.Fitted {
	context := sdk.ContextOf(s.config, c.Scope)
	for {
		fitted := context.FitFirst(c, blocks(found), budget)
		if !s.byTime || fitted.End < 2 {
			fitted.Truncated = fitted.Truncated || fitted.End < len(found)
			return fitted
		}
		shown := slices.Clone(found[:fitted.End])
		slices.SortStableFunc(shown, func(a, b *scored) int { return a.at.Compare(b.at) })
		text := ""
		for _, block := range blocks(shown) {
			text += block
		}
		fitted.Text = context.Wrap(text)
		fitted.Tokens = c.CountTokens(fitted.Text)
		if budget.MaxTokens == nil || fitted.Tokens <= *budget.MaxTokens {
			return fitted
		}
		// A tokenizer may count the same lines in another order a little higher: the last one goes.
		budget.MaxItems = sdk.Ptr(int64(fitted.End - 1))
	}
}

func blocks(messages []*scored) []string {
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = m.render()
	}
	return list
}

// formatContext formats the messages of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var found []*scored
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if call.Route != route {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		err := wirejson.DecodeBytes(call.Body).Arr(func(d *wirejson.Decoder) error {
			m := new(scored)
			err := object.Read(d, nil, m.members()...)
			m.at = timeOf(m.timestamp)
			found = append(found, m)
			return err
		})
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
	}
	fitted := s.format(c, found, s.budget(r.Budget))
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
