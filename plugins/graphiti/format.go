package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// line is a fact as the prompt has it: its text, when it held and whether it still does, since when Graphiti knows it,
// and which events or episodes it came from.
//
//   - user_a prefers window seats [SUPERSEDED: valid 2025-03-01T09:30:00Z to 2025-04-10T08:00:00Z;
//     recorded 2026-11-21T04:10:56Z; from events ev-1; fact 8be2a280-...]
//
// An entity or a community has Graphiti's summary, an episode what was said. The text cannot open or close the
// context's element.
func (x *item) line(kind string, events []string) string {
	buf := append(make([]byte, 0, 256), "- "...)
	add := func(before, text string) {
		if text != "" {
			buf = append(append(buf, before...), sdk.OneLine(text)...)
		}
	}
	switch kind {
	case "fact":
		add("", x.text)
		add(" [", x.validity())
		add("; recorded ", x.createdAt.text)
		add("; closed ", x.expiredAt.text)
		add("; from events ", strings.Join(events, ", "))
		if len(events) == 0 {
			add("; from episodes ", strings.Join(x.episodes, ", "))
		}
		add("; score ", x.scored())
		add("; fact ", x.uuid)
	case "episode":
		add("", x.said())
		buf = append(buf, " [said"...)
		add(" ", x.validAt.text)
		add("; event ", x.name)
		add("; score ", x.scored())
		add("; episode ", x.uuid)
	default:
		buf = append(append(buf, sdk.OneLine(x.name)...), ": "...)
		add("", x.text)
		buf = append(append(buf, " ["...), kind...)
		add(" ", x.uuid)
		add("; score ", x.scored())
	}
	return sdk.EscapeText(string(append(buf, "]\n"...)))
}

// validity is when a fact held.
func (x *item) validity() string {
	from, to, prefix := x.validAt.text, x.invalidAt.text, ""
	if x.superseded() {
		prefix = "SUPERSEDED: "
	}
	switch {
	case from == "" && to == "":
		return prefix + "undated"
	case from == "":
		return prefix + "valid until " + to
	case to == "":
		return prefix + "valid since " + from
	}
	return prefix + "valid " + from + " to " + to
}

// scored is the reranker's score, where there is one.
func (x *item) scored() string {
	if x.score == nil {
		return ""
	}
	return strconv.FormatFloat(*x.score, 'g', 4, 64)
}

// format fits the items, in the backend's order, into the budget: the first ones.
func (f *found) format(c *sdk.Call, config *abi.GuestConfig, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, f.count())
	f.each(func(n int, l *hits, _ int, x *item) { blocks[n] = x.line(l.kind, f.sources[x.uuid]) })
	return sdk.ContextOf(config, c.Scope).FitFirst(c, blocks, budget)
}

// formatRequest is what formatting needs of an abi.FormatRequest. Evidence and trace are skipped: their decoders would
// add 12 KB to the module.
type formatRequest struct {
	raw    abi.RawResult
	budget abi.ContextBudget
}

// Decode implements abi.Decodable.
func (r *formatRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return fields{
		{"budget", func(d *wirejson.Decoder) error { return r.budget.Decode(d, m) }},
		{"result", fields{{"raw", func(d *wirejson.Decoder) error { return r.raw.Decode(d, m) }}}},
	}.read(d)
}

// formatContext formats an earlier result, without a native call.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *formatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	f := new(found)
	for i := range r.raw.Calls {
		err := f.add(r.raw.Calls[i].Route, r.raw.Calls[i].Body)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
	}
	fitted := f.format(c, s.config, r.budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
