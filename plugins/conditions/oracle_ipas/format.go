package main

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// route is what raw.calls names: the configuration.
const route = "config"

// render is an entry as the prompt has it, one line, such as "- hot_drink (personal): green tea [since
// 2026-03-02T18:20:00+01:00; source e7]". The label is context/scenario, the brackets hold what is given of: since
// TIME; until TIME; source ID.
func render(e *entry) string {
	var b strings.Builder
	b.WriteString("- " + e.attribute)
	if e.context != "" || e.scenario != "" {
		b.WriteString(" (" + e.context)
		if e.scenario != "" {
			b.WriteString("/" + e.scenario)
		}
		b.WriteByte(')')
	}
	b.WriteString(": " + e.value)
	var notes []string
	if e.validFrom != "" {
		notes = append(notes, "since "+e.validFrom)
	}
	if e.validUntil != "" {
		notes = append(notes, "until "+e.validUntil)
	}
	if e.source != "" {
		notes = append(notes, "source "+e.source)
	}
	if len(notes) > 0 {
		b.WriteString(" [" + strings.Join(notes, "; ") + "]")
	}
	return sdk.EscapeText(sdk.OneLine(b.String())) + "\n"
}

// format fits entries into the budget: the first ones.
func (s *settings) format(c *sdk.Call, entries []*entry, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(entries))
	for i, e := range entries {
		blocks[i] = render(e)
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
	var entries []*entry
	switch calls := r.Result.Raw.Calls; {
	case len(calls) == 1 && calls[0].Route == route:
		if entries, err = readEntries(wirejson.DecodeBytes(calls[0].Body)); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls[0].body: "+err.Error())
		}
	case len(calls) > 0:
		return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: want one call, "+route+", as retrieve gives it")
	}
	for i, e := range entries {
		if !e.isOf(c.Scope) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"result.raw.calls[0].body["+sdk.Itoa(i)+"]: the entry is of another scope")
		}
	}
	fitted := s.format(c, entries, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
