package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// found is what a retrieval brought, in the order of the prompt: lines[i] is evidence[i] in the prompt.
type found struct {
	evidence []abi.Evidence
	lines    []line
}

// line is one item in the prompt, with its line end, under a heading that stands over the items of its kind.
type line struct{ heading, text string }

// The headings.
const (
	overRepresentation = "Honcho's representation of the user; a time in brackets is that of the latest message of " +
		"the batch, UTC"
	overCard        = "Honcho's card of the user"
	overSummary     = "Honcho's summary of this session"
	overMessages    = "Messages of this session, the newest first"
	overConclusions = "Conclusions that Honcho's search found, with the time of derivation"
	overSearch      = "Messages that Honcho's search found"
)

func (f *found) add(e abi.Evidence, heading, text string) {
	e.Rank = int64(len(f.evidence) + 1)
	f.evidence, f.lines = append(f.evidence, e), append(f.lines, line{heading, text + "\n"})
}

// readItems reads the items out of raw, which is all that formatting goes by: the same raw gives the same text. It
// holds them to the scope of a retrieval; nil is for a result that was held to it already.
//
// Errors: isolation_breach; backend in a retrieval, else invalid_argument, for what cannot be read.
func readItems(raw *abi.RawResult, of *retrieval) (*found, error) {
	f := new(found)
	for i := range raw.Calls {
		call, at := &raw.Calls[i], "/calls/"+sdk.Itoa(i)+"/body"
		switch err := f.readCall(call, at, of); {
		case err == nil:
		case abi.CodeOf(err) == abi.CodeIsolationBreach:
			return nil, err
		case of != nil:
			return nil, sdk.Unusable(call.Route, 200, call.Body, "cannot be read: "+err.Error())
		default:
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw"+at+": "+err.Error())
		}
	}
	return f, nil
}

func (f *found) readCall(call *abi.RawCall, at string, of *retrieval) error {
	switch call.Route {
	case "context", "representation", "peer_context":
		return f.readProse(call, at, of)
	case "conclusions_query":
		list, err := readList(call.Body, readConclusion)
		for i, x := range list {
			if of != nil && (x.observer != of.user || x.observed != of.user) {
				return breach(call.Route, "a conclusion about another peer", x.raw)
			}
			e := x.evidence()
			e.Pointer = at + "/" + sdk.Itoa(i)
			f.add(e, overConclusions, "["+bracket(x.createdAt, x.level, x.id)+"] "+oneParagraph(x.content))
		}
		return err
	case "search", "peer_search":
		list, err := readList(call.Body, readMessage)
		for i, m := range list {
			if of != nil && (m.workspace != of.workspace || of.fixed != "" && m.peer != of.user) {
				return breach(call.Route, "a message of another scope", m.raw)
			}
			f.addMessage(m, at+"/"+sdk.Itoa(i), overSearch)
		}
		return err
	}
	return errors.New(call.Route + " is not a call of retrieve")
}

// readProse reads what session context, peer context and representation bring: what was derived first, then card and
// summary, then messages, the newest first, since a budget that is short keeps what stands first.
func (f *found) readProse(call *abi.RawCall, at string, of *retrieval) error {
	var representation, alone, kind, content, createdAt, id string
	var card []string
	var raw []abi.Raw
	err := wire.Read(call.Body, "peer_representation", &representation, "representation", &alone, "peer_card", &card,
		"summary", wire.Fields{"content", &content, "summary_type", &kind, "created_at", &createdAt}, "messages", &raw)
	if err != nil {
		return err
	}
	messages, err := readAll(raw, readMessage)
	if err != nil {
		return err
	}
	wire.Pick(call.Body, "id", &id)
	if of != nil && call.Route == "context" && !of.empty {
		if id == "" || raw == nil {
			return errors.New("it has no id, or no messages")
		}
		if id != of.session {
			return breach(call.Route, "another session", call.Body)
		}
		for _, m := range messages {
			if m.workspace != of.workspace || m.session != of.session {
				return breach(call.Route, "a message of another workspace or session", m.raw)
			}
		}
	}
	f.addFacts(representation, at+"/peer_representation")
	f.addFacts(alone, at+"/representation")
	for i, text := range card {
		e := abi.Evidence{Pointer: at + "/peer_card/" + sdk.Itoa(i), Group: "card", NativeType: "peer_card", Text: text}
		f.add(e, overCard, "- "+oneParagraph(text))
	}
	if content != "" {
		e := abi.Evidence{Pointer: at + "/summary", Group: "summary", NativeType: kind, Text: content,
			CreatedAt: createdAt,
			TimeBasis: abi.TimeDerived}
		f.add(e, overSummary, "["+bracket(createdAt, kind)+"] "+oneParagraph(content))
	}
	for i, m := range slices.Backward(messages) {
		f.addMessage(m, at+"/messages/"+sdk.Itoa(i), overMessages)
	}
	return nil
}

func (f *found) addFacts(text, at string) {
	for _, x := range parseRepresentation(text) {
		e := abi.Evidence{Pointer: at, Group: x.section, NativeType: "conclusion",
			Text: strings.TrimSpace(text[x.start:x.end]),
			Span: &abi.Span{Start: int64(x.start), End: int64(x.end)}, CreatedAt: x.at}
		if x.at != "" {
			e.TimeBasis = abi.TimeEvent
		}
		heading := overRepresentation
		if x.section != "" {
			heading += "\n" + x.section + ":"
		}
		f.add(e, heading, oneParagraph(e.Text))
	}
}

func (f *found) addMessage(m message, at, heading string) {
	e := m.evidence()
	e.Pointer = at
	f.add(e, heading, "["+bracket(m.createdAt, m.peer, m.id)+"] "+oneParagraph(m.content))
}

func (x *conclusion) evidence() abi.Evidence {
	return abi.Evidence{Group: x.level, NativeID: x.id, NativeType: "conclusion", Text: x.content,
		CreatedAt: x.createdAt,
		TimeBasis: abi.TimeDerived}
}

func (m *message) evidence() abi.Evidence {
	e := abi.Evidence{Group: "messages", NativeID: m.id, NativeType: "message", Text: m.content, CreatedAt: m.createdAt,
		TimeBasis: abi.TimeEvent}
	if m.event != "" {
		e.SourceEventIDs = []string{m.event}
	}
	return e
}

// bracket joins what is known of an item.
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
func oneParagraph(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\r", " "), "\n", "\n  ")
}
