package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// item is one thing that a retrieval brought, in the order of the prompt.
type item struct {
	evidence abi.Evidence
	// heading stands over the items of its kind; line is how the item stands in the prompt.
	heading, line string
}

// readItems reads the items out of raw, which is all that formatting goes by: the same raw gives the same text.
func readItems(raw *abi.RawResult) (items []*item, err error) {
	for i := range raw.Calls {
		call := &raw.Calls[i]
		at := "/calls/" + strconv.Itoa(i) + "/body"
		var more []*item
		switch call.Route {
		case "context", "representation", "peer_context":
			more, err = proseItems(call.Body, at)
		case "conclusions_query":
			more, err = conclusionItems(call.Body, at)
		case "search", "peer_search":
			more, err = messageItems(call.Body, at, "Messages that Honcho's search found")
		default:
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw"+at+": "+err.Error())
		}
		items = append(items, more...)
	}
	for i := range items {
		items[i].evidence.Rank = int64(i + 1)
	}
	return items, nil
}

// headings by the level of a representation's section.
const representationHeading = "Honcho's representation of the user; a time in brackets is that of the latest message of the batch, UTC"

// proseItems reads session context, peer context and representation: what was derived first, then card and summary, then messages, the newest first, since
// a budget that is short keeps what stands first.
func proseItems(body abi.Raw, at string) (items []*item, err error) {
	var card, summary, messages []*item
	err = eachField(jsontext.DecodeBytes(body), func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "peer_representation", "representation":
			var text string
			if err = readText(d, &text); err == nil {
				items = append(items, factItems(text, at+"/"+key)...)
			}
		case "peer_card":
			n := 0
			err = eachItem(d, func(d *jsontext.Decoder) error {
				var line string
				err := readText(d, &line)
				card = append(card, newItem(at+"/peer_card/"+strconv.Itoa(n), "card", "peer_card", line, "Honcho's card of the user", "- "+oneParagraph(line)))
				n++
				return err
			})
		case "summary":
			summary, err = summaryItems(d, at+"/summary")
		case "messages":
			var raw jsontext.Raw
			if raw, err = d.Raw(); err == nil {
				messages, err = messageItems(abi.Raw(raw), at+"/messages", "Messages of this session, the newest first")
			}
		default:
			err = d.Skip()
		}
		return err
	})
	items = append(append(items, card...), summary...)
	for i := len(messages) - 1; i >= 0; i-- {
		items = append(items, messages[i])
	}
	return items, err
}

func factItems(text, at string) (items []*item) {
	for _, f := range parseRepresentation(text) {
		line := strings.TrimSpace(text[f.start:f.end])
		heading := representationHeading
		if f.section != "" {
			heading += "\n" + f.section + ":"
		}
		it := newItem(at, f.section, "conclusion", line, heading, oneParagraph(line))
		it.evidence.Span = &abi.Span{Start: int64(f.start), End: int64(f.end)}
		if it.evidence.CreatedAt = f.at; f.at != "" {
			it.evidence.TimeBasis = abi.TimeEvent
		}
		items = append(items, it)
	}
	return items
}

func summaryItems(d *jsontext.Decoder, at string) ([]*item, error) {
	var kind, content, createdAt string
	err := eachField(d, func(d *jsontext.Decoder, key string) error {
		switch key {
		case "content":
			return readText(d, &content)
		case "summary_type":
			return readText(d, &kind)
		case "created_at":
			return readText(d, &createdAt)
		}
		return d.Skip()
	})
	if err != nil || content == "" {
		return nil, err
	}
	it := newItem(at, "summary", kind, content, "Honcho's summary of this session", "["+bracket(createdAt, kind)+"] "+oneParagraph(content))
	it.evidence.CreatedAt, it.evidence.TimeBasis = createdAt, abi.TimeDerived
	return []*item{it}, nil
}

func conclusionItems(body abi.Raw, at string) (items []*item, err error) {
	raw, err := readList(body)
	if err != nil {
		return nil, err
	}
	found, err := readConclusions(raw)
	for i := range found {
		x := &found[i]
		it := newItem(at+"/"+strconv.Itoa(i), "", "", "", "Conclusions that Honcho's search found, with the time of derivation",
			"["+bracket(x.createdAt, x.level, x.id)+"] "+oneParagraph(x.content))
		x.describe(&it.evidence)
		items = append(items, it)
	}
	return items, err
}

func messageItems(body abi.Raw, at, heading string) (items []*item, err error) {
	raw, err := readList(body)
	if err != nil {
		return nil, err
	}
	found, err := readMessages(raw)
	for i := range found {
		m := &found[i]
		it := newItem(at+"/"+strconv.Itoa(i), "", "", "", heading, "["+bracket(m.createdAt, m.peer, m.id)+"] "+oneParagraph(m.content))
		m.describe(&it.evidence)
		items = append(items, it)
	}
	return items, err
}

// newItem is an item at a place in raw.
//
//go:noinline
func newItem(pointer, group, kind, text, heading, line string) *item {
	it := &item{heading: heading, line: line}
	it.evidence.Pointer, it.evidence.Group, it.evidence.NativeType, it.evidence.Text = pointer, group, kind, text
	return it
}

// describe fills in what a conclusion is.
func (x *conclusion) describe(e *abi.Evidence) {
	e.Group, e.NativeID, e.NativeType, e.Text, e.CreatedAt, e.TimeBasis = x.level, x.id, "conclusion", x.content, x.createdAt, abi.TimeDerived
}

// describe fills in what a message is.
func (m *message) describe(e *abi.Evidence) {
	e.Group, e.NativeID, e.NativeType, e.Text, e.CreatedAt, e.TimeBasis = "messages", m.id, "message", m.content, m.createdAt, abi.TimeEvent
	if m.event != "" {
		e.SourceEventIDs = []string{m.event}
	}
}

// bracket joins what is known of an item; nothing takes the place of what is not.
//
//go:noinline
func bracket(parts ...string) string {
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, strings.Join(strings.Fields(p), " "))
		}
	}
	return strings.Join(known, " ")
}

// oneParagraph indents the lines of a text behind the first, so that none looks like an item or a heading of its own.
//
//go:noinline
func oneParagraph(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\r", " "), "\n", "\n  ")
}
