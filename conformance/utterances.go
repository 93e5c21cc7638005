package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// utterance is a turn unlike those of the other clauses.
type utterance struct {
	name string
	// text is what stands between two made-up names in the user's message; "" for nothing.
	text string
	// edit changes the rest of the turn. name is a made-up one, for a second message.
	edit func(e *abi.MemoryEvent, name string)
	// spoken: the first name is in the user's message, the second one in the assistant's.
	spoken bool
	// edges: blanks and newlines stand before and after the message, too.
	edges bool
	// large: the provider may refuse the turn as too_large.
	large bool
}

// texts are what people write. Each may be damaged on its way by another mistake.
func texts() []utterance {
	return []utterance{
		{name: "accents", text: "a café, Zoë and a cafe\u0301 with Åse"},
		{name: "emoji", text: "👩\u200d👩\u200d👧 and 🙂"},
		{name: "right to left", text: "שלום \u200fعالم\u200e"},
		{name: "CJK", text: "你好，世界 と こんにちは 안녕"},
		{name: "lines", text: "one\ntwo\n\n\tthree"},
		{name: "blanks", text: "two  and   three"},
		{name: "quotes", text: `"double" 'single' back\slash \n {{name}} %s $1`},
		{name: "markup", text: `<b>bold</b> &amp; <i>`},
		{name: "returns", text: "one\r\ntwo"},
		{name: "typography", text: "“so” – it’s ½ of ﬁve…\u00a0Ⅳ"},
		{name: "links", text: "https://example.com/a+b%20c?q=%C3%A9&r=1#s"},
		{name: "blanks around a message", text: "code", edges: true},
		{name: "case", text: "SHOUTED and camelCase"},
		{name: "300 bytes", text: strings.Repeat("0123456789", 30)},
		{name: "10 KB with characters of 1 to 4 bytes", text: strings.Repeat("aä€😀", 1000), large: true},
	}
}

// shapes are turns of other forms than a message and its answer.
func shapes() []utterance {
	text := func(s string) *string { return &s }
	add := func(more ...abi.Message) func(*abi.MemoryEvent, string) {
		return func(e *abi.MemoryEvent, _ string) { e.Messages = append(e.Messages, more...) }
	}
	call := abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "call-1", Name: "look_up",
		Arguments: `{"query":"caf\u00e9","deep":{"list":[1,2,{"x":null}]}}`}}}
	return []utterance{
		{name: "a tool is called and answers", edit: add(call, abi.Message{Role: abi.RoleTool, ToolCallID: "call-1",
			Name: "look_up", Content: text(`{"found":[]}`)}, abi.Message{Role: abi.RoleAssistant, Content: text("Done.")})},
		{name: "a message without content that calls a tool", edit: add(call)},
		{name: "an empty message", edit: add(abi.Message{Role: abi.RoleUser, Content: text("")})},
		{name: "a speaker with a name", edit: func(e *abi.MemoryEvent, _ string) { e.Messages[0].Name = "Zoë" }},
		{name: "a message of the system", edit: func(e *abi.MemoryEvent, _ string) {
			e.Messages = append([]abi.Message{{Role: abi.RoleSystem, Content: text("Be brief.")}}, e.Messages...)
		}},
		{name: "one message", edit: func(e *abi.MemoryEvent, _ string) { e.Messages = e.Messages[:1] }},
		{name: "the assistant speaks first", edit: func(e *abi.MemoryEvent, _ string) { slices.Reverse(e.Messages) }},
		{name: "twelve messages", edit: func(e *abi.MemoryEvent, _ string) {
			for range 5 {
				e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: text("And then?")},
					abi.Message{Role: abi.RoleAssistant, Content: text("Then we had tea.")})
			}
		}},
		{name: "something is told in the last message", edit: func(e *abi.MemoryEvent, name string) {
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: text("My dog is called " + name + ".")})
		}},
		{name: "the assistant tells something", spoken: true, edit: func(e *abi.MemoryEvent, name string) {
			e.Messages[1].Content = text("I found it: your dog is called " + name + ".")
		}},
		{name: "metadata, 40 levels deep", edit: func(e *abi.MemoryEvent, _ string) {
			e.Metadata = map[string]abi.Raw{"é": abi.Raw("9007199254740993"), "deep": abi.Raw(strings.Repeat(`{"a":[`, 20) +
				strings.Repeat("]}", 20))}
		}},
		{name: "labels in other alphabets", edit: func(e *abi.MemoryEvent, _ string) {
			e.Scenario, e.Context, e.Attribute = "Küche \"1\"", "日本", "🍵 a/b"
		}},
		{name: "ids of 512 bytes", edit: func(e *abi.MemoryEvent, _ string) {
			pad := func(id string) string { return strings.Repeat("i", abi.MaxIDBytes-len(id)) + id }
			e.EventID, e.SessionID, e.TurnID = pad(e.EventID), pad(e.SessionID), pad(e.TurnID)
		}},
		{name: "ids with separators, quotes and emoji", edit: func(e *abi.MemoryEvent, _ string) {
			e.EventID, e.SessionID, e.TurnID = e.EventID+` /:"'*..🙂`, e.SessionID+" ?&=#é", e.TurnID+"\t%00"
		}},
		{name: "a time with offset and fraction", edit: func(e *abi.MemoryEvent, _ string) {
			if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
				e.Timestamp = at.In(time.FixedZone("", 5*3600+1800)).Format("2006-01-02T15:04:05.000001Z07:00")
			}
		}},
		{name: "a turn of 1 MB", large: true, edit: func(e *abi.MemoryEvent, name string) {
			e.Messages[0].Content = text(*e.Messages[0].Content + strings.Repeat(" and äöü 😀", 1<<16) + " " + name)
		}},
	}
}

// checkUtterances is clause 16.
func checkUtterances(b *bench) {
	plain := b.recordUtterance(utterance{name: "a plain turn"}, b.scope("plain", "p"))
	b.part("text", "what people write reaches the backend as it was written", func() outcome {
		return b.recordUtterances("t", texts(), plain)
	})
	b.part("shapes", "turns of every form are taken: tools, empty messages, long ids, deep metadata",
		func() outcome { return b.recordUtterances("s", shapes(), plain) })
	b.part("times", "turns that come out of order, and turns of one session, are all kept", func() outcome {
		return b.outOfOrder(plain)
	})
	b.part("batch", "every event of a batch is kept, and its receipt stands at its place", func() outcome {
		return b.wholeBatch(plain)
	})
	b.part("bad_event", "an event of a batch that fails takes no other with it, and is not called stored",
		func() outcome { return b.badEvent(plain) })
	b.part("question", "a question in any alphabet, and a long one, is asked as it was put", b.questions)
}

// utteranceTurn is a turn of clause 16 and its result.
type utteranceTurn struct {
	utterance
	names []string
	// marker is a name, the text and another name, as they stand in the message.
	marker  string
	receipt *abi.WriteReceipt
	err     error
	// carried: the host saw a name of the turn in a native call that is not a read. whole: the whole marker stood in
	// one.
	carried, markerWhole bool
	// twice: the marker stood twice in one text. mixed says which role or order the messages had instead of theirs.
	twice        bool
	orderProblem string
	// lost are names that were in no such call.
	lost  []string
	scope abi.MemoryScope
}

// recordUtterance records one turn and looks at what was sent.
func (b *bench) recordUtterance(s utterance, scope abi.MemoryScope) *utteranceTurn {
	d := &utteranceTurn{utterance: s, names: []string{b.kit.names.name(), b.kit.names.name()}, scope: scope}
	told := b.kit.target.Probe.Wordings[0](d.names[0])
	if s.text != "" {
		d.marker = d.names[0] + ": " + s.text + " :" + d.names[0]
		told += " " + d.marker
	}
	e := b.event(scope, told)
	if s.edges {
		d.marker = "\n\t " + told + " \n"
		e.Messages[0].Content = &d.marker
	}
	if s.edit != nil {
		s.edit(e, d.names[1])
	}
	if !strings.Contains(string(abi.Marshal(e)), d.names[1]) {
		d.names = d.names[:1]
	}
	mark := b.wire.mark()
	d.receipt, d.err = b.record(b.ctx, e)
	sent := answeredCalls(changes(b.wire.since(mark)))
	d.compareWithCalls(sent)
	return d
}

// compareWithCalls compares a turn with the native calls.
func (d *utteranceTurn) compareWithCalls(sent []exchange) {
	for _, name := range d.names {
		if anyCarries(sent, name) {
			d.carried = true
		} else {
			d.lost = append(d.lost, name)
		}
	}
	for _, x := range sent {
		body := bodyValue(x.call.Body)
		d.markerWhole = d.markerWhole || holdsText(body, d.marker)
		d.twice = d.twice || d.marker != "" && anywhere(body, func(v any) bool {
			s, ok := v.(string)
			return ok && strings.Count(s, d.marker) > 1
		})
	}
	d.orderProblem = orderProblem(sent, d.names)
	// A long text may go in pieces.
	if d.large && len(d.marker) > 200 {
		d.markerWhole = holdsIn(sent, d.marker[:99]) && holdsIn(sent, d.marker[len(d.marker)-99:]) && !anyCarries(sent, "\ufffd")
	}
}

// orderProblem compares the roles and order of a turn with what was sent: names[0] is in the user's text, names[1] in
// the assistant's. It returns "" if they agree, or if what was sent does not show them.
func orderProblem(sent []exchange, names []string) string {
	if len(names) < 2 {
		return ""
	}
	for _, x := range sent {
		body, ok := decode(x.call.Body)
		if !ok {
			continue
		}
		for i, want := range []string{string(abi.RoleUser), string(abi.RoleAssistant)} {
			if role := roleOf(body, names[i], names[1-i]); role != "" && role != want {
				return fmt.Sprintf("what the %s said was sent with the role %q", want, role)
			}
		}
		text := string(x.call.Body)
		if first, second := strings.Index(text, names[0]), strings.Index(text, names[1]); second >= 0 && first > second {
			return "the messages were sent in another order"
		}
	}
	return ""
}

// roleOf returns the role in the object whose text contains name and not other; "" if there is none.
func roleOf(value any, name, other string) (role string) {
	anywhere(value, func(v any) bool {
		object, ok := v.(map[string]any)
		if !ok {
			return false
		}
		holds, said := false, ""
		for _, inner := range object {
			s, _ := inner.(string)
			holds = holds || strings.Contains(s, name) && !strings.Contains(s, other)
			if s == string(abi.RoleUser) || s == string(abi.RoleAssistant) {
				said = s
			}
		}
		if holds && role == "" {
			role = said
		}
		return false
	})
	return role
}

// holdsIn reports whether one of the calls contains a text.
func holdsIn(sent []exchange, text string) bool {
	return slices.ContainsFunc(sent, func(x exchange) bool {
		return holdsText(bodyValue(x.call.Body), strings.ToValidUTF8(text, ""))
	})
}

// holdsText reports whether a value contains a text, also in JSON inside one of its strings.
func holdsText(value any, text string) bool {
	return anywhereInside(value, func(v any) bool { s, ok := v.(string); return ok && strings.Contains(s, text) })
}

// recordUtterances records each turn in a separate scope.
func (b *bench) recordUtterances(run string, list []utterance, plain *utteranceTurn) outcome {
	if plain.err != nil {
		return refused("record_event of a plain turn", plain.err)
	}
	done := make([]*utteranceTurn, len(list))
	parallel(len(list), 4, func(i int) { done[i] = b.recordUtterance(list[i], b.scope(run+fmt.Sprint(i), "p")) })
	for _, d := range done {
		if o := b.judge(d, plain); o != nil {
			return *o
		}
	}
	return passed("%d turns, as they were", len(done))
}

// judge wants a turn to have been taken, sent whole, and found. plain is a turn of the usual form: what became of it is
// what may be asked of the others.
func (b *bench) judge(d, plain *utteranceTurn) *outcome {
	bad := func(format string, args ...any) *outcome {
		o := failed("%s: "+format, append([]any{d.smallest()}, args...)...)
		return &o
	}
	code := abi.CodeOf(d.err)
	switch {
	case d.err != nil && d.large && (code == abi.CodeTooLarge || code == abi.CodeBackend && abi.AsError(d.err).Native != nil):
		return nil // too large for the backend, which says so
	case code == abi.CodeBackend && abi.AsError(d.err).Native != nil && abi.AsError(d.err).NothingStored:
		return nil // the backend refuses such turns, and the caller learns that nothing is stored
	case d.err != nil:
		o := refused(d.smallest()+": record_event", d.err)
		return &o
	case plain.receipt.Status == abi.StatusNotRetained:
		return nil
	case d.receipt.Status == abi.StatusNotRetained:
		return bad("not_retained, and a plain turn is retained")
	case plain.carried && len(d.lost) > 0:
		return bad("%s, and %q is in no native call that the host saw, as a plain turn is", d.receipt.Status, d.lost[0])
	case plain.carried && d.text != "" && !d.markerWhole:
		return bad("%s, and the text is not in the native calls as it was written", d.receipt.Status)
	case d.twice:
		return bad("%s, and a text of the native calls has it twice", d.receipt.Status)
	case d.spoken && d.orderProblem != "":
		return bad("%s, and %s", d.receipt.Status, d.orderProblem)
	case plain.carried:
		return nil
	}
	return b.checkStateHasTurn(d)
}

// smallest names the turn for people, with its text.
func (d *utteranceTurn) smallest() string {
	if d.text == "" {
		return d.name
	}
	return fmt.Sprintf("%s %s", d.name, short(fmt.Sprintf("%q", d.text), 80))
}

// checkStateHasTurn looks for a turn that was not seen to leave: the provider keeps it in the host's state.
func (b *bench) checkStateHasTurn(d *utteranceTurn) *outcome {
	if o := b.wait(d.scope); o != nil {
		return o
	}
	result, err := b.ask(d.scope)
	if err != nil {
		o := refused("retrieve after "+d.smallest(), err)
		return &o
	}
	if !holds(result, d.names[0]) {
		return nil // a rule or a model chose what is kept
	}
	if d.text == "" || d.large {
		return nil
	}
	raw, _ := rawValue(result)
	oneLine := func(v any) bool { // notes of a line each are fine in the host's state
		s, ok := v.(string)
		return ok && strings.Contains(strings.Join(strings.Fields(s), " "), strings.Join(strings.Fields(d.marker), " "))
	}
	if hasWholeMarker(raw, d.names[0]) && !holdsText(raw, d.marker) && !anywhere(raw, oneLine) {
		o := failed("%s: the text is kept, and not as it was written", d.smallest())
		return &o
	}
	return nil
}

// hasWholeMarker reports whether a text of raw has a name twice, as a marker has it.
func hasWholeMarker(raw any, name string) bool {
	return anywhere(raw, func(v any) bool {
		s, ok := v.(string)
		return ok && strings.Count(s, name) >= 3
	})
}

// outOfOrder records turns in another order than that of their times, two of them in one session.
func (b *bench) outOfOrder(plain *utteranceTurn) outcome {
	if plain.err != nil {
		return refused("record_event of a plain turn", plain.err)
	}
	s, session := b.scope("times", "p"), b.session()
	for i, back := range []time.Duration{0, 48 * time.Hour, 24 * time.Hour, 24 * time.Hour} {
		d := b.recordUtterance(utterance{name: fmt.Sprintf("turn %d of a session, %v earlier than the first", i+1, back),
			edit: func(e *abi.MemoryEvent, _ string) {
				at, _ := time.Parse(time.RFC3339, e.Timestamp)
				e.Timestamp, e.SessionID = at.Add(-back).Format(time.RFC3339), session
			}}, s)
		if o := b.judge(d, plain); o != nil {
			return *o
		}
		if o := b.findsAll(d.scope, plain, d.names...); o != nil {
			return *o
		}
	}
	return passed("4 turns")
}

// findsAll requires that each name is found by the usual question or by its own words, if a plain turn is found that
// way.
func (b *bench) findsAll(s abi.MemoryScope, plain *utteranceTurn, names ...string) *outcome {
	if plain.receipt.Status == abi.StatusNotRetained {
		return nil
	}
	if pending := b.wait(plain.scope); pending != nil {
		return pending
	}
	if !b.answers(plain.scope, plain.names[0]) {
		return nil
	}
	pending := b.wait(s)
	for _, name := range names {
		if !b.answers(s, name) {
			if pending != nil { // it may still be found later
				return pending
			}
			o := failed("%s was recorded in %s, and is not found by its own words", name, scopeName(s))
			return &o
		}
	}
	return nil
}

// foundBy waits until the scope is ready, and then asks as answers does.
func (b *bench) foundBy(s abi.MemoryScope, name string) bool {
	_ = b.wait(s)
	return b.answers(s, name)
}

// answers asks for a name by the usual question, and by its own words.
func (b *bench) answers(s abi.MemoryScope, name string) bool {
	for _, q := range []string{b.kit.target.Probe.Question, b.kit.target.Probe.Wordings[0](name)} {
		if r, err := b.retrieve(&abi.RetrieveRequest{Query: q, Scope: s}); err == nil && holds(r, name) {
			return true
		}
	}
	return false
}

// wholeBatch records a batch of several sessions.
func (b *bench) wholeBatch(plain *utteranceTurn) outcome {
	if plain.err != nil {
		return refused("record_event of a plain turn", plain.err)
	}
	const size = 12
	s := b.scope("batch", "p")
	batch, names, session := &abi.EventBatch{}, make([]string, size), b.session()
	for i := range size {
		names[i] = b.kit.names.name()
		e := b.event(s, b.kit.target.Probe.Wordings[0](names[i]))
		if i%3 > 0 {
			e.SessionID = session
		}
		batch.Events = append(batch.Events, *e)
	}
	b.wrote(s)
	mark := b.wire.mark()
	out, err := b.slot.RecordEvents(b.ctx, batch)
	if err != nil {
		return refused("record_events", err)
	}
	sent := answeredCalls(changes(b.wire.since(mark)))
	for i, r := range out.Receipts {
		switch {
		case r.Error != nil:
			return refused(fmt.Sprintf("event %d of a batch of %d", i+1, size), r.Error)
		case r.Receipt.EventID != batch.Events[i].EventID:
			return failed("receipt %d of a batch is of event %q, want %q", i+1, r.Receipt.EventID, batch.Events[i].EventID)
		case r.Receipt.Status == abi.StatusNotRetained && plain.receipt.Status != abi.StatusNotRetained:
			return failed("event %d of a batch of %d is not_retained, and a single turn is retained", i+1, size)
		case plain.carried && !anyCarries(sent, names[i]):
			return failed("event %d of a batch of %d is %s, and the host saw it in no native call", i+1, size,
				r.Receipt.Status)
		}
		if o := distinctIDs(out.Receipts[:i], r.Receipt); o != nil {
			return *o
		}
	}
	if o := b.findsAll(s, plain, names[0], names[size/2], names[size-1]); o != nil {
		return *o
	}
	return passed("%d events", size)
}

// distinctIDs wants a receipt to have final ids that no receipt before it has.
func distinctIDs(before []abi.ReceiptOrError, r *abi.WriteReceipt) *outcome {
	if r.NativeIDsKind != abi.NativeIDsFinal || len(r.NativeIDs) == 0 {
		return nil
	}
	for _, other := range before {
		if other.Receipt != nil && slices.Equal(other.Receipt.NativeIDs, r.NativeIDs) {
			o := failed("two events of a batch have the native ids %q", r.NativeIDs)
			return &o
		}
	}
	return nil
}

// badEvent records a batch of which the backend refuses the first event.
func (b *bench) badEvent(plain *utteranceTurn) outcome {
	if plain.err != nil {
		return refused("record_event of a plain turn", plain.err)
	}
	if !plain.carried {
		return notChecked("no native call carries a turn: the backend can refuse none")
	}
	s := b.scope("bad", "p")
	batch, names := &abi.EventBatch{}, make([]string, 3)
	for i := range names {
		names[i] = b.kit.names.name()
		batch.Events = append(batch.Events, *b.event(s, b.kit.target.Probe.Wordings[0](names[i])))
	}
	b.wrote(s)
	if _, err := b.slot.SetupScope(b.ctx, s); err != nil {
		return refused("setup_scope", err)
	}
	refuse := &writeRefuser{injection: injection{injected: someFaults("422")[0], kit: b.kit}, name: names[0]}
	mark := b.wire.mark()
	var out *abi.BatchReceipts
	var err error
	b.wire.during(refuse.intercept, func() { out, err = b.slot.RecordEvents(b.ctx, batch) })
	sent := changes(b.wire.since(mark))
	switch {
	case err != nil:
		return refused("record_events with an event that the backend refuses", err)
	case refuse.hits == 0:
		return notChecked("the refused event left in no native call of its own")
	}
	for i, r := range out.Receipts {
		taken := anyCarries(answeredCalls(sent), names[i])
		switch {
		case r.Error == nil && !taken && (r.Receipt.Status == abi.StatusCommitted || r.Receipt.Status == abi.StatusQueued):
			return failed("event %d of a batch of 3 was refused with 422 by the backend, and its receipt says %s", i+1,
				r.Receipt.Status)
		case r.Error != nil && r.Error.Code == abi.CodeInternal:
			return refused(fmt.Sprintf("event %d of a batch of 3, the first of which is refused", i+1), r.Error)
		case r.Error != nil && i != 0 && taken:
			return failed("event %d of a batch of 3 was taken by the backend, and is answered %v", i+1, r.Error)
		}
	}
	// The refused event is uncertain, so readiness would wait for it.
	if next := out.Receipts[1]; next.Error == nil && next.Receipt.Status == abi.StatusCommitted {
		if r, err := b.ask(s); err == nil && b.foundBy(plain.scope, plain.names[0]) && !holds(r, names[1]) {
			return failed("%s is committed, in a batch of which another event was refused, and is not found", names[1])
		}
	}
	return passed("its own receipt is an error")
}

// writeRefuser refuses the calls that carry a name and are no reads.
type writeRefuser struct {
	injection
	name string
}

// intercept implements host.Interceptor.
func (f *writeRefuser) intercept(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
	x := exchange{call: call}
	if call.Class == abi.ClassRead || !x.carries(f.name) {
		return send(ctx)
	}
	return f.injection.intercept(ctx, call, send)
}

// questions asks in other alphabets and at length.
func (b *bench) questions() outcome {
	s := b.scope("plain", "p")
	for _, q := range []string{"Wie heißt meine Katze? 猫の名前は? 🐈 \"Zoë\" שלום", strings.Repeat("What is my cat called? ",
		600) + "Please."} {
		mark := b.wire.mark()
		_, err := b.retrieve(&abi.RetrieveRequest{Query: q, Scope: s})
		if abi.CodeOf(err) == abi.CodeTooLarge && len(q) > 8000 {
			continue
		}
		if err != nil {
			return refused(fmt.Sprintf("retrieve with the query %s (%d bytes)", short(fmt.Sprintf("%q", q), 60), len(q)), err)
		}
		for _, x := range b.wire.since(mark) {
			body, ok := decode(x.call.Body)
			if ok && len(q) < 200 && begins(body, q) && !holdsText(body, q) {
				return failed("the query %q left as another one: %s", q, short(string(x.call.Body), 300))
			}
		}
	}
	return passed("2 questions")
}

// begins reports whether a text of a value holds the first word of a question, or its name.
func begins(value any, q string) bool {
	return anywhere(value, func(v any) bool {
		s, ok := v.(string)
		return ok && (strings.Contains(strings.ToLower(s), strings.ToLower(q[:4])) || strings.Contains(s, "Zo"))
	})
}
