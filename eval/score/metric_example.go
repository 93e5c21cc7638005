package score

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
)

// example is an answer of a provider in a small made-up world, and a metric's value for it. Every metric has some: they
// are its tests, and its examples in docs/reference/metrics.md.
type example struct {
	says  string
	items items
	value float64 // NaN: the retrieval has none
}

// items are shown in a context in this order: each has a text and the events that it names.
type items []struct{ text, sources string }

// exampleEvents are what Mila said, by session; the last one in another context than the probe's.
var exampleEvents = []struct {
	id, text, context string
	session           int
}{
	{"e1", "I live in Porto, near the old market.", "", 1},
	{"e2", "We moved, and I live in Lagos now.", "", 2},
	{"e3", "My sister Rui lives with me.", "", 2},
	{"e4", "At home we keep two hens.", "home", 3},
}

// exampleProbe is asked ten days after Mila moved.
var exampleProbe = pack.Probe{ProbeID: "p1", AfterSession: 3, Query: "Where does Mila live, and with whom?", Context: "work",
	AsOf: "2026-02-20T09:00:00Z",
	Gold: pack.Gold{Answerable: true, Evidence: [][]string{{"e2"}, {"e3"}}, Answers: [][]string{{"Lagos"}, {"sister"}},
		Stale:     []pack.StaleValue{{Value: "Porto", EventID: "e1", SupersededAt: "2026-02-10T09:00:00Z"}},
		Forbidden: []pack.ForbiddenValue{{Text: "behind the mirror"}}}}

// exampleForeign is evidence of another cluster's probe.
const exampleForeign = "The hens moved to another farm."

// exampleOf returns the probe of the examples and its person. It has an answer only if answerable is set.
func exampleOf(answerable bool) *probe {
	person := &persona{id: "mila", cluster: "mila", events: map[string]*event{}}
	holding := map[uint64]int{}
	for _, e := range exampleEvents {
		countEvents(holding, &pack.Event{Messages: []abi.Message{{Role: abi.RoleUser, Content: &e.text}}})
	}
	for i, e := range exampleEvents {
		row := &pack.Event{Messages: []abi.Message{{Role: abi.RoleUser, Content: &e.text}}}
		person.events[e.id] = &event{number: i, session: e.session, context: e.context, content: contentWords(e.text),
			said: evidenceWords(row, holding)}
	}
	row := exampleProbe
	if !answerable {
		row.Gold = pack.Gold{}
	}
	p := &probe{Probe: &row, persona: person, foreign: [][][]uint64{{contentWords(exampleForeign)}}}
	p.prepare(time.Time{})
	p.pairUp(map[string]string{"e1": "e2", "e2": "e1", "e3": "e4", "e4": "e3"})
	return p
}

// retrieval is the answer of the example's provider. Its trace counts 12 tokens, 3 of them for the frame, and a
// shortfall of 100.
func (e *example) retrieval() *retrieval {
	total, frame, shortfall := int64(12), int64(3), int64(100)
	r := &retrieval{trace: &abi.Trace{TokenCount: &total, FrameTokens: &frame, BudgetShortfall: &shortfall}}
	for i, x := range e.items {
		start := int64(len(r.context) + len("- "))
		r.context += "- " + x.text + "\n"
		r.evidence = append(r.evidence, abi.Evidence{Rank: int64(i + 1), Text: x.text, SourceEventIDs: strings.Fields(x.sources),
			Shown: &abi.Shown{Start: start, End: start + int64(len(x.text)), Whole: true}})
	}
	return r
}

// exampleConversation is a conversation with a scripted person in the example's world: its topic, and the agent's answers,
// until the person accepts or gives up. Without an answer the agent has failed.
type exampleConversation struct {
	says, about string
	answers     []string
	value       float64
}

// exampleWishes are Mila's preferences, with the times when she stated them. Conversations take place ten days after
// she moved.
var exampleWishes = pack.Preferences{
	{Attribute: "town", Value: "Porto", From: "2026-02-01T09:00:00Z", Until: "2026-02-10T09:00:00Z"},
	{Attribute: "town", Value: "Lagos", From: "2026-02-10T09:00:00Z"},
	{Attribute: "editor", Context: "work", Value: "Vim", From: "2026-02-01T09:00:00Z"},
	{Attribute: "editor", Context: "home", Value: "Nano", From: "2026-02-10T09:00:00Z"},
	{Attribute: "lunch", Context: "work", Value: "soup", From: "2026-02-01T09:00:00Z", Until: "2026-02-10T09:00:00Z"},
	{Attribute: "lunch", Context: "work", Value: "salad", From: "2026-02-10T09:00:00Z"},
	{Attribute: "lunch", Context: "home", Value: "bread", From: "2026-02-01T09:00:00Z"},
}

type exampleOpening struct{ about, attribute, context, says string }

// exampleOpenings are what Mila says first, by topic.
var exampleOpenings = []exampleOpening{
	{"town", "town", "", "Call me a taxi home."},
	{"editor at work", "editor", "work", "I am at work. Open my editor."},
	{"lunch at work", "lunch", "work", "I am at work. Get me my lunch."},
	{"shoe size", "shoe_size", "", "What is my shoe size?"},
}

// conversation is a conversation between a scripted Mila and an agent, with the probe that it is about.
func (e *exampleConversation) conversation() (*probe, *conversation) {
	i := slices.IndexFunc(exampleOpenings, func(o exampleOpening) bool { return o.about == e.about })
	o := exampleOpenings[i]
	row := &pack.Probe{ProbeID: e.about, Query: o.says, Opening: o.says, Attribute: o.attribute, Context: o.context,
		AsOf: exampleProbe.AsOf}
	p := &probe{Probe: row, setting: simulate.NewSetting(row, exampleWishes)}
	t := &journal.Transcript{ProbeID: row.ProbeID, Ended: journal.EndedSubject}
	user, _ := simulate.Scripted{}.Open(context.Background(), p.setting) // a scripted person returns no errors
	says := user.Opening()
	for _, answer := range e.answers {
		r, _ := user.React(context.Background(), answer)
		t.Exchanges = append(t.Exchanges, journal.Exchange{User: says, Agent: answer, Action: r.Action})
		says, t.Ended = r.Text, journal.EndedTurns
		switch r.Action {
		case journal.ActionAccept:
			t.Ended = journal.EndedAccepted
		case journal.ActionGiveUp:
			t.Ended = journal.EndedGivenUp
		}
	}
	return p, newConversation(p, t, simulate.DefaultTurns)
}
