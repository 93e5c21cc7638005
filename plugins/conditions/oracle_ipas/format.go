package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/sdk"
)

// route is the name in raw.calls of the configuration.
const route = "config"

// block is an entry as the prompt has it, one line, such as "- hot_drink (personal): green tea [since
// 2026-03-02T17:20:00Z]". The label is context/scenario. The brackets hold since TIME, until TIME, or both, if the
// entry has them. The source is not shown, because it is an event's id, which a caller chose.
func (e *entry) block() sdk.Block {
	who := e.attribute
	if e.context != "" || e.scenario != "" {
		who += " (" + e.context
		if e.scenario != "" {
			who += "/" + e.scenario
		}
		who += ")"
	}
	who = sdk.OneLine(who)
	b := sdk.Block{Before: "- " + who + ": ", Text: sdk.OneLine(e.value), Who: who}
	var notes, short []string
	if e.validFrom != "" {
		notes, short = append(notes, "since "+sdk.UTC(e.validFrom)), append(short, "since "+sdk.Day(e.validFrom))
	}
	if e.validUntil != "" {
		notes, short = append(notes, "until "+sdk.UTC(e.validUntil)), append(short, "until "+sdk.Day(e.validUntil))
	}
	if len(notes) > 0 {
		b.After, b.When = " ["+sdk.OneLine(strings.Join(notes, "; "))+"]", strings.Join(short, " ")
	}
	return b
}

// format fits the first entries into the budget.
func (s *settings) format(c *sdk.Call, entries []*entry, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]sdk.Block, len(entries))
	for i, e := range entries {
		blocks[i] = e.block()
		blocks[i].Item = i
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// formatContext formats the entries of an earlier result, in its order.
//
// Errors: invalid_argument when the result is not one of retrieve, or of another scope.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var entries entryList
	switch calls := r.Result.Raw.Calls; {
	case len(calls) == 1 && calls[0].Route == route:
		if err = fixed.Entries(wirejson.DecodeBytes(calls[0].Body), entries.begin); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls[0].body: "+err.Error())
		}
	case len(calls) > 0:
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"result.raw.calls: want one call, "+route+", as retrieve gives it")
	}
	for i, e := range entries {
		if !e.isOf(c.Scope) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"result.raw.calls[0].body["+sdk.Itoa(i)+"]: the entry is of another scope")
		}
	}
	return s.format(c, entries, r.Budget).Result(r.Result.Evidence), nil
}
