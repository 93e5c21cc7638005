package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// factLine is a fact as the prompt has it: what, when it held, whether it still does, since when Graphiti knows it, where it came from.
//
//   - user_a prefers window seats [SUPERSEDED: valid 2025-03-01T09:30:00Z to 2025-04-10T08:00:00Z; recorded 2026-11-21T04:10:56Z; from events ev-1; fact 8be2a280-...]
func (x *item) factLine(sources []string) string {
	var b strings.Builder
	b.Grow(len(x.text) + 256)
	b.WriteString("- " + sdk.OneLine(x.text) + " [")
	if x.superseded() {
		b.WriteString("SUPERSEDED: ")
	}
	from, to := x.validAt.text, x.invalidAt.text
	switch {
	case from == "" && to == "":
		b.WriteString("undated")
	case from == "":
		b.WriteString("valid until " + to)
	case to == "":
		b.WriteString("valid since " + from)
	default:
		b.WriteString("valid " + from + " to " + to)
	}
	if at := x.createdAt.text; at != "" {
		b.WriteString("; recorded " + at)
	}
	if at := x.expiredAt.text; at != "" {
		b.WriteString("; closed " + at)
	}
	if len(sources) > 0 {
		b.WriteString("; from events " + sdk.OneLine(strings.Join(sources, ", ")))
	} else if len(x.episodes) > 0 {
		b.WriteString("; from episodes " + sdk.OneLine(strings.Join(x.episodes, ", ")))
	}
	b.WriteString(x.scored() + "; fact " + sdk.OneLine(x.uuid) + "]\n")
	return sdk.EscapeText(b.String())
}

// nodeLine is an entity or a community with Graphiti's summary of it.
func (x *item) nodeLine(kind string) string {
	return sdk.EscapeText("- " + sdk.OneLine(x.name) + ": " + sdk.OneLine(x.text) + " [" + kind + " " + sdk.OneLine(x.uuid) + x.scored() + "]\n")
}

// episodeLine is an episode as it was recorded.
func (x *item) episodeLine() string {
	line := "- " + sdk.OneLine(x.text) + " [said"
	if x.validAt.text != "" {
		line += " " + x.validAt.text
	}
	return sdk.EscapeText(line + "; event " + sdk.OneLine(x.name) + x.scored() + "; episode " + sdk.OneLine(x.uuid) + "]\n")
}

// scored is the reranker's score, where there is one.
func (x *item) scored() string {
	if x.score == nil {
		return ""
	}
	return "; score " + strconv.FormatFloat(*x.score, 'g', 4, 64)
}

// format fits the items, in the backend's order, into the budget: the first ones.
func (s *settings) format(c *sdk.Call, f *found, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, 0, f.count())
	for i := range f.lists {
		l := &f.lists[i]
		for j := range l.items {
			switch x := &l.items[j]; l.kind {
			case "fact":
				blocks = append(blocks, x.factLine(f.sources[x.uuid]))
			case "episode":
				blocks = append(blocks, x.episodeLine())
			default:
				blocks = append(blocks, x.nodeLine(l.kind))
			}
		}
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// formatRequest is what formatting needs of an abi.FormatRequest. Evidence and trace are skipped: their decoders alone would be 12 KB of the module.
type formatRequest struct {
	raw    abi.RawResult
	budget abi.ContextBudget
}

// Decode implements abi.Decodable.
func (r *formatRequest) Decode(d *jsontext.Decoder, m abi.Mode) error {
	return d.Obj(func(d *jsontext.Decoder, key string) error {
		switch {
		case key == "budget":
			return r.budget.Decode(d, m)
		case key == "result" && d.Next() == jsontext.Object:
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "raw" {
					return d.Skip()
				}
				return r.raw.Decode(d, m)
			})
		}
		return d.Skip()
	})
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
		call := &r.raw.Calls[i]
		if err := f.add(call.Route, call.Body); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
	}
	fitted := s.format(c, f, r.budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
