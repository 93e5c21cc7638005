package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// found is what a retrieval brought, in the order of the prompt: lines[i] is how evidence[i] stands there.
type found struct {
	evidence []abi.Evidence
	lines    []line
}

// line is one item in the prompt, under a heading that stands over the items of its kind.
type line struct {
	heading heading
	text    string // with its line end
	// plain tells that nothing in it, nor in its heading's section, can want escaping.
	plain bool
}

// heading is one of the headings below; section is the level of a representation's section, else empty.
type heading struct {
	of      int
	section string
}

const (
	overRepresentation = iota
	overCard
	overSummary
	overMessages
	overConclusions
	overSearch
)

var headings = [...]string{
	overRepresentation: "Honcho's representation of the user; a time in brackets is that of the latest message of the batch, UTC",
	overCard:           "Honcho's card of the user",
	overSummary:        "Honcho's summary of this session",
	overMessages:       "Messages of this session, the newest first",
	overConclusions:    "Conclusions that Honcho's search found, with the time of derivation",
	overSearch:         "Messages that Honcho's search found",
}

func (h heading) is(other heading) bool { return h.of == other.of && h.section == other.section }

func (h heading) String() string {
	if h.section == "" {
		return headings[h.of]
	}
	return headings[h.of] + "\n" + h.section + ":"
}

// more makes room for n further items, to be filled in.
func (f *found) more(n int) ([]abi.Evidence, []line) {
	at := len(f.lines)
	switch {
	case n == 0:
	case at == 0:
		f.evidence, f.lines = make([]abi.Evidence, n), make([]line, n)
	default:
		f.evidence, f.lines = append(f.evidence, make([]abi.Evidence, n)...), append(f.lines, make([]line, n)...)
	}
	return f.evidence[at:], f.lines[at:]
}

// add puts other items behind these.
func (f *found) add(other *found) {
	switch {
	case len(other.lines) == 0:
	case len(f.lines) == 0:
		*f = *other
	default:
		f.evidence, f.lines = append(f.evidence, other.evidence...), append(f.lines, other.lines...)
	}
}

// readItems reads the items out of raw, which is all that formatting goes by: the same raw gives the same text. first are those of the first call where they
// have been read already, else nil.
func readItems(raw *abi.RawResult, first *found) (*found, error) {
	all := new(found)
	for i := range raw.Calls {
		some, err := first, error(nil)
		if some == nil {
			some, err = readCall(&raw.Calls[i], bodyOf(i))
		}
		if err != nil {
			return nil, err
		}
		first = nil
		all.add(some)
	}
	for i := range all.evidence {
		all.evidence[i].Rank = int64(i + 1)
	}
	return all, nil
}

// bodyOf is where the answer to a call stands in raw.
//
//go:noinline
func bodyOf(call int) string {
	if call == 0 { // most retrievals make one
		return "/calls/0/body"
	}
	return "/calls/" + sdk.Itoa(call) + "/body"
}

//go:noinline
func readCall(call *abi.RawCall, at string) (*found, error) {
	var err error
	some := new(found)
	switch call.Route {
	case "context", "representation", "peer_context":
		p := prose{at: at}
		err = eachField(jsontext.DecodeBytes(call.Body), p.readField)
		some = p.all()
	case "conclusions_query":
		err = some.readConclusions(call.Body, at)
	case "search", "peer_search":
		err = some.readMessages(call.Body, at, overSearch)
	default:
		return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
	}
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw"+at+": "+err.Error())
	}
	return some, nil
}

// prose is what session context, peer context and representation bring. at is where they stand in raw.
type prose struct {
	at                             string
	facts, card, summary, messages found

	of   *retrieval // to whose scope a session context is held; nil for what was held to it already
	held int        // how many of its fields were held to that
}

// all is what was derived first, then card and summary, then messages, the newest first, since a budget that is short keeps what stands first.
func (p *prose) all() *found {
	all := &p.facts
	all.add(&p.card)
	all.add(&p.summary)
	all.add(&p.messages)
	return all
}

// readField reads one of its fields. Of a name that occurs twice the last one counts.
//
// Errors: isolation_breach for another session, and for a message that is not of the scope.
func (p *prose) readField(d *jsontext.Decoder, key string) error {
	switch key {
	case "peer_representation", "representation":
		var text string
		err := readText(d, &text)
		if p.facts = (found{}); err == nil {
			p.facts.readFacts(text, p.at+"/"+key)
		}
		return err
	case "peer_card":
		p.card = found{}
		return p.card.readCard(d, p.at+"/peer_card")
	case "summary":
		p.summary = found{}
		return p.summary.readSummary(d, p.at+"/summary")
	case "messages":
		p.held++
		return p.readMessages(d)
	case "id":
		if p.of == nil {
			break
		}
		p.held++
		id := ""
		err := readText(d, &id)
		if err == nil && id != p.of.session {
			err = breach("context", "another session", p.of.result.Raw.Calls[0].Body)
		}
		return err
	}
	return d.Skip()
}

//go:noinline
func (p *prose) readMessages(d *jsontext.Decoder) error {
	var list []message
	err := eachItem(d, func(d *jsontext.Decoder) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		list = append(list, message{})
		m := &list[len(list)-1]
		if err = m.read(raw); err == nil && p.of != nil && (m.workspace != p.of.native.workspace || m.session != p.of.session) {
			err = breach("context", "a message of another workspace or session", m.raw)
		}
		return err
	})
	p.messages = found{}
	p.messages.putMessages(list, p.at+"/messages", overMessages)
	return err
}

func (f *found) readFacts(text, at string) {
	facts := parseRepresentation(text)
	evidence, lines := f.more(len(facts))
	spans := make([]abi.Span, len(facts))
	for i := range facts {
		x, e := &facts[i], &evidence[i]
		e.Pointer, e.Group, e.NativeType, e.Text = at, x.section, "conclusion", sdk.TrimSpace(text[x.start:x.end])
		spans[i] = abi.Span{Start: int64(x.start), End: int64(x.end)}
		e.Span = &spans[i]
		if e.CreatedAt = x.at; x.at != "" {
			e.TimeBasis = abi.TimeEvent
		}
		l := &lines[i]
		l.heading, l.plain = heading{overRepresentation, x.section}, x.plain
		switch {
		case !x.plain:
			l.text = oneParagraph(e.Text) + "\n"
		case x.end < len(text) && len(e.Text) == x.end-x.start:
			l.text = text[x.start : x.end+1] // as it stands there
		default:
			l.text = e.Text + "\n"
		}
	}
}

func (f *found) readCard(d *jsontext.Decoder, at string) error {
	n := 0
	return eachItem(d, func(d *jsontext.Decoder) error {
		var text string
		err := readText(d, &text)
		evidence, lines := f.more(1)
		e := &evidence[0]
		e.Pointer, e.Group, e.NativeType, e.Text = at+"/"+sdk.Itoa(n), "card", "peer_card", text
		lines[0] = line{heading: heading{of: overCard}, text: "- " + oneParagraph(text) + "\n"}
		n++
		return err
	})
}

func (f *found) readSummary(d *jsontext.Decoder, at string) error {
	if d.Next() == jsontext.Null { // what most sessions have
		return d.Null()
	}
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
		return err
	}
	evidence, lines := f.more(1)
	e := &evidence[0]
	e.Pointer, e.Group, e.NativeType, e.Text, e.CreatedAt, e.TimeBasis = at, "summary", kind, content, createdAt, abi.TimeDerived
	lines[0] = line{heading: heading{of: overSummary}, text: "[" + bracket(createdAt, kind) + "] " + oneParagraph(content) + "\n"}
	return nil
}

func (f *found) readConclusions(body abi.Raw, at string) error {
	raw, err := readList(body)
	if err != nil {
		return err
	}
	list, err := readConclusions(raw)
	evidence, lines := f.more(len(list))
	for i := range list {
		x := &list[i]
		evidence[i].Pointer = at + "/" + sdk.Itoa(i)
		x.describe(&evidence[i])
		lines[i] = line{heading: heading{of: overConclusions}, text: "[" + bracket(x.createdAt, x.level, x.id) + "] " + oneParagraph(x.content) + "\n"}
	}
	return err
}

func (f *found) readMessages(body abi.Raw, at string, under int) error {
	raw, err := readList(body)
	if err != nil {
		return err
	}
	list, err := readMessages(raw)
	f.putMessages(list, at, under)
	return err
}

// putMessages adds messages: those that a search found in its order, a session's the newest first.
func (f *found) putMessages(list []message, at string, under int) {
	evidence, lines := f.more(len(list))
	for i := range list {
		m, to := &list[i], i
		if under == overMessages {
			to = len(list) - 1 - i
		}
		evidence[to].Pointer = at + "/" + sdk.Itoa(i)
		m.describe(&evidence[to])
		lines[to] = line{heading: heading{of: under}, text: "[" + bracket(m.createdAt, m.peer, m.id) + "] " + oneParagraph(m.content) + "\n"}
	}
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
	known, some := "", false
	for _, p := range parts {
		if p == "" {
			continue
		}
		if !words.Plain(p) || words.First(p, 0, ' ', ' ', ' ') < len(p) { // there may be blanks to make one of
			p = strings.Join(strings.Fields(p), " ")
		}
		if some {
			p = known + " " + p
		}
		known, some = p, true
	}
	return known
}

// oneParagraph indents the lines of a text behind the first, so that none looks like an item or a heading of its own.
//
//go:noinline
func oneParagraph(text string) string {
	if words.First(text, 0, '\n', '\r', '\n') == len(text) {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\r", " "), "\n", "\n  ")
}
