package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// lines are texts that are written one behind the other into one buffer, of which each is a part: the lines of a context, pointers, requests.
type lines struct {
	buf []byte
	// strange: somebody else's text in the line that is being written is not plain, so that there may be something to escape.
	strange bool
}

// add writes a, and then b: there is nearly always a word before what is written. What may have to be escaped goes by label.
func (l *lines) add(a, b string) { l.buf = sdk.Append(sdk.Append(l.buf, a), b) }

// field writes a field of a JSON object: all that stands before its value, and the value.
func (l *lines) field(before string, value abi.Raw) {
	l.add(before, words.View(value))
}

// label writes somebody else's text as a part of a line, behind a word of ours.
func (l *lines) label(before, s string) {
	if !words.Plain(s) {
		l.strange = true
		s = sdk.OneLine(s)
	}
	l.add(before, s)
}

// since is what was written from begin on.
func (l *lines) since(begin int) string { return words.View(l.buf[begin:]) }

// line is what was written from begin on, unable to open or close the context's element.
func (l *lines) line(begin int) string {
	line := l.since(begin)
	if l.strange {
		l.strange = false
		line = sdk.EscapeText(line)
	}
	return line
}

// factLine writes a fact as the prompt has it: what, when it held, whether it still does, since when Graphiti knows it, where it came from.
//
//   - user_a prefers window seats [SUPERSEDED: valid 2025-03-01T09:30:00Z to 2025-04-10T08:00:00Z; recorded 2026-11-21T04:10:56Z; from events ev-1; fact 8be2a280-...]
func (l *lines) factLine(x *item, sources []string) string {
	begin := len(l.buf)
	l.label("- ", x.text)
	valid := " [valid "
	if x.superseded() {
		valid = " [SUPERSEDED: valid "
	}
	from, to := x.validAt.text, x.invalidAt.text
	switch {
	case from == "" && to == "":
		l.add(strings.TrimSuffix(valid, "valid "), "undated")
	case from == "":
		l.add(valid, "until ")
		l.add(to, "")
	case to == "":
		l.add(valid, "since ")
		l.add(from, "")
	default:
		l.add(valid, from)
		l.add(" to ", to)
	}
	if at := x.createdAt.text; at != "" {
		l.add("; recorded ", at)
	}
	if at := x.expiredAt.text; at != "" {
		l.add("; closed ", at)
	}
	if len(sources) > 0 {
		l.label("; from events ", joined(sources))
	} else if len(x.episodes) > 0 {
		l.label("; from episodes ", joined(x.episodes))
	}
	if x.score != nil {
		l.add(x.scored(), "")
	}
	l.label("; fact ", x.uuid)
	l.add("]\n", "")
	return l.line(begin)
}

func joined(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list, ", ")
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
	count := f.count()
	blocks := make([]string, count)
	l := lines{buf: make([]byte, 0, 256*count)}
	n := 0
	for i := range f.lists {
		hits := &f.lists[i]
		for j := range hits.items {
			switch x := &hits.items[j]; hits.kind {
			case "fact":
				var sources []string
				if f.sources != nil {
					sources = f.sources[x.uuid]
				}
				blocks[n] = l.factLine(x, sources)
			case "episode":
				blocks[n] = x.episodeLine()
			default:
				blocks[n] = x.nodeLine(hits.kind)
			}
			n++
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
