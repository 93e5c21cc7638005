package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/sdk"
)

// route is the name in raw.calls of the configuration.
const route = "config"

// format fits the profile's text into the budget: whole, or its beginning. The result is "" for nil.
func (s *settings) format(c *sdk.Call, p *profile, budget abi.ContextBudget) sdk.Fitted {
	var blocks []sdk.Block
	if p != nil && p.text != "" {
		blocks = []sdk.Block{{Text: p.text, Document: true}}
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// formatContext formats the profile of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve, or of another scope.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var p *profile
	var list profiles
	switch calls := r.Result.Raw.Calls; {
	case len(calls) == 1 && calls[0].Route == route:
		if err = fixed.Entry(wirejson.DecodeBytes(calls[0].Body), list.begin); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls[0].body: "+err.Error())
		}
		p = list[0]
		if !p.isOf(c.Scope) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"result.raw.calls[0].body: the profile is of another scope")
		}
	case len(calls) > 0:
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"result.raw.calls: want one call, "+route+", as retrieve gives it")
	}
	return s.format(c, p, r.Budget).Result(r.Result.Evidence), nil
}
