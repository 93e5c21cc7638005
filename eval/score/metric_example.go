package score

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// example is what a provider answers in a small made-up world, and what a metric makes of it. Every metric has some: they
// are its test, and its examples in docs/metrics.md.
type example struct {
	says  string
	items items
	value float64 // NaN: the retrieval has none
}

// items are what a context shows, one below the other: each with its text and the events that it names.
type items []struct{ text, sources string }

// exampleEvents are what Mila said, by session; the last in another context than the probe's.
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

// exampleOf is the probe of the examples with its person; one without an answer unless answerable is set.
func exampleOf(answerable bool) *probe {
	person := &persona{id: "mila", cluster: "mila", events: map[string]*event{}}
	holding := map[uint64]int{}
	for _, e := range exampleEvents {
		countEvents(holding, &pack.Event{Messages: []abi.Message{{Role: abi.RoleUser, Content: &e.text}}})
	}
	for i, e := range exampleEvents {
		row := &pack.Event{Messages: []abi.Message{{Role: abi.RoleUser, Content: &e.text}}}
		person.events[e.id] = &event{number: i, session: e.session, context: e.context, content: contentWords(e.text),
			said: saidWords(row, holding)}
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

// retrieval is the answer of the example's provider, whose trace counts 12 tokens, 3 of them of the frame, and 100 too few.
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
