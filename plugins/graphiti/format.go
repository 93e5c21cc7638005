package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// block is an item as the prompt shows it: a fact's text, when it was valid and whether it still is, and in the frame
// full since when Graphiti knows it; ids are shortened.
//
//   - user_a prefers window seats [SUPERSEDED: valid 2025-03-01T09:30:00Z to 2025-04-10T08:00:00Z;
//     recorded 2026-11-21T04:10:56Z; fact 8be2a280]
//
// and in the others
//
//	m1 [2025-03-01 to 2025-04-10, superseded] user_a prefers window seats
//
// An entity or a community shows Graphiti's summary after its name, an episode the original text. An episode's name is
// not shown, because it is the event's id, which a caller chose.
func (x *item) block(kind, id string) sdk.Block {
	b := sdk.Block{Before: "- ", Text: sdk.OneLine(x.text)}
	var facts []string
	add := func(before, text string) {
		if text != "" {
			facts = append(facts, before+sdk.OneLine(text))
		}
	}
	switch kind {
	case "fact":
		b.When = x.shortValidity()
		add("", x.validity())
		add("recorded ", x.createdAt.text)
		add("closed ", x.expiredAt.text)
		add("score ", x.rerankScore())
		add("fact ", id)
	case "episode":
		b.Text, b.When = sdk.OneLine(x.episodeText()), sdk.Day(x.validAt.text)
		add("said ", x.validAt.text)
		add("score ", x.rerankScore())
		add("episode ", id)
	default:
		if b.Text == "" { // there is no summary
			b.Text = sdk.OneLine(x.name)
		} else {
			b.Who = sdk.OneLine(x.name)
			b.Before += b.Who + ": "
		}
		add(kind+" ", id)
		add("score ", x.rerankScore())
	}
	b.After = " [" + strings.Join(facts, "; ") + "]"
	return b
}

// shortValidity formats validity briefly: "2025-03-01", "2025-03-01 to 2025-04-10, superseded", "until 2025-04-10,
// superseded".
func (x *item) shortValidity() string {
	text := sdk.Day(x.validAt.text)
	if to := sdk.Day(x.invalidAt.text); to != "" && text != "" {
		text += " to " + to
	} else if to != "" {
		text = "until " + to
	}
	if !x.superseded() {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "superseded"
}

// validity formats when a fact was valid.
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

// rerankScore formats the reranker's score, if there is one.
func (x *item) rerankScore() string {
	if x.score == nil {
		return ""
	}
	return strconv.FormatFloat(*x.score, 'g', 4, 64)
}

// format fits the items into the budget, each list within its share, and shows them in the backend's order.
func (f *results) format(c *sdk.Call, config *abi.GuestConfig, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks := make([]string, f.count()), make([]sdk.Block, f.count())
	f.each(func(n int, _ *resultList, _ int, x *item) { ids[n] = x.uuid })
	ids = sdk.ShortIDs(ids)
	f.each(func(n int, l *resultList, _ int, x *item) {
		blocks[n] = x.block(l.kind, ids[n])
		blocks[n].Item = n
	})
	lists, weights := f.shares()
	fitted := sdk.ContextOf(config, c.Scope).FitShares(c, blocks, lists, weights, budget)
	fitted.Truncated = fitted.Truncated || f.shortened
	return fitted
}

// formatRequest is the part of an abi.FormatRequest that formatting needs. The trace is skipped, because its decoder
// would add to the module's size.
type formatRequest struct {
	raw      abi.RawResult
	evidence []abi.Evidence
	budget   abi.ContextBudget
}

// Decode implements abi.Decodable.
func (r *formatRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return fields{
		{"budget", func(d *wirejson.Decoder) error { return r.budget.Decode(d, m) }},
		{"result", fields{{"raw", func(d *wirejson.Decoder) error { return r.raw.Decode(d, m) }},
			{"evidence", func(d *wirejson.Decoder) error {
				return d.Arr(func(d *wirejson.Decoder) error {
					r.evidence = append(r.evidence, abi.Evidence{})
					return r.evidence[len(r.evidence)-1].Decode(d, m)
				})
			}}}},
	}.read(d)
}

// formatContext formats the items of an earlier result's evidence, without a native call.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *formatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	f := new(results)
	for i := range r.raw.Calls {
		err := f.add(r.raw.Calls[i].Route, r.raw.Calls[i].Body)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
	}
	counts := make([]int, len(f.lists))
	for i := range f.lists {
		for at := range r.evidence {
			if r.evidence[at].Group == f.lists[i].group {
				counts[i]++
			}
		}
	}
	return f.keep(counts).format(c, s.config, r.budget).Result(r.evidence), nil
}
