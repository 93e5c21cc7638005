package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// results are the items of a retrieval, most important first: lines[i] is evidence[i] in the prompt.
type results struct {
	*backend
	evidence []abi.Evidence
	lines    []line
	// session are messages of the requesting session, in Honcho's order, until they are added after the others.
	session []timedMessage
	// messageTimes maps message ids to their times.
	messageTimes map[string]string
}

// timedMessage is a message, its time, and its JSON Pointer in raw.
type timedMessage struct {
	message
	time time.Time
	at   string
}

// line is an item's text in the prompt apart from its content: a heading above the items of its kind, and a label,
// which is the level of a conclusion, the kind of a summary or the peer who wrote a message.
type line struct{ heading, label string }

// The headings.
const (
	headRepresentation  = "Honcho's representation of " // the user, or a speaker's name
	representationTimes = "; a time in brackets is that of the latest message of the batch, UTC"
	headCard            = "Honcho's card of " // as above
	headSummary         = "Honcho's summary of this session, with the time of its last message"
	headPast            = "Honcho's summaries of earlier sessions, with the time of their last message"
	headMessages        = "Messages of this session"
	headChat            = "Honcho's answer to the query, by its own model"
	headConclusions     = "Conclusions that Honcho's search found, with the time of derivation"
	headSearch          = "Messages that Honcho's search found"
)

func (f *results) add(e abi.Evidence, heading, label string) {
	e.Rank = int64(len(f.evidence) + 1)
	f.evidence, f.lines = append(f.evidence, e), append(f.lines, line{heading, label})
}

// readItems reads the items from raw, which is all that formatting uses: the same raw gives the same text. It checks
// them against the scope of a retrieval; nil is for a result that has been checked already.
//
// Errors: isolation_breach; for unreadable items, backend in a retrieval, else invalid_argument.
func readItems(b *backend, raw *abi.RawResult, of *retrieval) (*results, error) {
	f := &results{backend: b, messageTimes: map[string]string{}}
	for i := range raw.Calls {
		f.noteTimes(&raw.Calls[i])
	}
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
	f.addSession()
	return f, nil
}

// noteTimes records the times of messages that may be the last of a summary.
func (f *results) noteTimes(call *abi.RawCall) {
	if call.Route != "context" && call.Route != "message" {
		return
	}
	for _, m := range append(wire.Items(wire.At(call.Body, "messages")), call.Body) {
		var id, at string
		wire.Pick(m, "id", &id, "created_at", &at)
		f.messageTimes[id] = at
	}
}

func (f *results) readCall(call *abi.RawCall, at string, of *retrieval) error {
	switch call.Route {
	case "context", "representation", "peer_context":
		return f.readProse(call, at, of)
	case "conclusions_query":
		list, err := readList(call.Body, readConclusion)
		for i, x := range list {
			if of != nil && !of.ofPeople(&x) {
				return breach(call.Route, "a conclusion about another peer", x.raw)
			}
			e := x.evidence()
			e.Pointer = at + "/" + sdk.Itoa(i)
			f.add(e, headConclusions, x.level)
		}
		return err
	case "search", "peer_search":
		list, err := readList(call.Body, readMessage)
		for i, m := range list {
			if of != nil && (m.workspace != of.workspace || of.shared() && m.peer != of.agent && !slices.Contains(of.people(), m.peer)) {
				return breach(call.Route, "a message of another scope", m.raw)
			}
			f.addMessage(m, at+"/"+sdk.Itoa(i), headSearch)
		}
		return err
	case "summaries":
		return f.readSummaries(call.Body, at)
	case "message": // a summary has its time
		return nil
	case "dialectic":
		var chat string
		err := wire.Read(call.Body, "content", &chat)
		if chat != "" {
			e := abi.Evidence{Pointer: at + "/content", Group: readChat, NativeType: "dialectic answer", Text: chat}
			f.add(e, headChat, "")
		}
		return err
	}
	return errors.New(call.Route + " is not a call of retrieve")
}

// readProse reads the answers of session context, peer context and representation: the card, the conclusions, the
// summary. Messages come after the results of other calls, because a short budget keeps what comes first.
func (f *results) readProse(call *abi.RawCall, at string, of *retrieval) error {
	var representation, alone, id, peer string
	var card []string
	var summary abi.Raw
	var raw []abi.Raw
	err := wire.Read(call.Body, "peer_representation", &representation, "representation", &alone, "peer_card", &card,
		"summary", &summary, "messages", &raw, "peer_id", &peer)
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
	if of != nil && call.Route == "peer_context" && !of.empty && !slices.Contains(of.people(), peer) {
		return breach(call.Route, "the context of another peer", call.Body)
	}
	about := "the user"
	if name := f.nameOf(peer); name != "" {
		about = sdk.OneLine(name)
	}
	for i, text := range card {
		e := abi.Evidence{Pointer: at + "/peer_card/" + sdk.Itoa(i), Group: "card", NativeType: "peer_card", Text: text}
		f.add(e, headCard+about, "")
	}
	f.addFacts(representation, at+"/peer_representation", about)
	f.addFacts(alone, at+"/representation", about)
	for i, m := range messages {
		when, _ := abi.ParseTime(m.createdAt)
		f.session = append(f.session, timedMessage{m, when, at + "/messages/" + sdk.Itoa(i)})
	}
	return f.addSummary(summary, at+"/summary", headSummary)
}

// readSummaries reads the summaries of a session. Only the one that covers the most becomes an item.
func (f *results) readSummaries(body abi.Raw, at string) error {
	latest := latestSummary(body)
	name := "/short_summary"
	if wire.Text(wire.At(latest, "summary_type")) == "honcho_chat_summary_long" {
		name = "/long_summary"
	}
	return f.addSummary(latest, at+name, headPast)
}

// addSummary adds a summary with the time of the last message that it covers or, if that is not known, the time at
// which it was made.
func (f *results) addSummary(summary abi.Raw, at, heading string) error {
	if summary == nil {
		return nil
	}
	var content, kind, made, last string
	err := wire.Read(summary, "content", &content, "summary_type", &kind, "created_at", &made, "message_id", &last)
	if err != nil || content == "" {
		return err
	}
	e := abi.Evidence{Pointer: at, Group: "summary", NativeType: kind, Text: content, CreatedAt: made,
		TimeBasis: abi.TimeDerived}
	if messageTime := f.messageTimes[last]; messageTime != "" {
		e.CreatedAt, e.UpdatedAt, e.TimeBasis = messageTime, made, abi.TimeEvent
	}
	f.add(e, heading, kind)
	return nil
}

// addSession adds the messages of the requesting session, newest first, so that a short budget keeps these. The prompt
// shows them in order of time.
func (f *results) addSession() {
	slices.Reverse(f.session)
	slices.SortStableFunc(f.session, func(a, b timedMessage) int { return b.time.Compare(a.time) })
	for _, m := range f.session {
		f.addMessage(m.message, m.at, headMessages)
	}
}

func (f *results) addFacts(text, at, about string) {
	for _, x := range parseRepresentation(text) {
		e := abi.Evidence{Pointer: at, Group: x.section, NativeType: "conclusion",
			Text: strings.TrimSpace(text[x.start:x.end]),
			Span: &abi.Span{Start: int64(x.start), End: int64(x.end)}, CreatedAt: x.at}
		if x.at != "" {
			e.TimeBasis = abi.TimeEvent
		}
		heading := headRepresentation + about + representationTimes
		if x.section != "" {
			heading += "\n" + x.section + ":"
		}
		f.add(e, heading, "")
	}
}

func (f *results) addMessage(m message, at, heading string) {
	e := m.evidence()
	e.Pointer = at
	who := m.peer
	if strings.TrimSpace(m.name) != "" {
		who = m.name
	}
	f.add(e, heading, who)
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

// bracket joins an item's details.
func bracket(parts ...string) string {
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, strings.Join(strings.Fields(p), " "))
		}
	}
	return strings.Join(known, " ")
}
