package score

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// distinctWords returns the distinct words in a history, in order of first occurrence.
func distinctWords(events []*pack.Event) []string {
	var list []string
	seen := map[string]bool{}
	for _, e := range events {
		for i := range e.Messages {
			for _, w := range strings.Fields(*e.Messages[i].Content) {
				if !seen[strings.ToLower(w)] {
					seen[strings.ToLower(w)] = true
					list = append(list, w)
				}
			}
		}
	}
	return list
}

// sortedWords returns the same, sorted.
func sortedWords(events []*pack.Event) string {
	return strings.Join(slices.Sorted(slices.Values(distinctWords(events))), " ")
}

// claimed returns items that name every event of a history and show an arbitrary text.
func claimed(events []*pack.Event, text func(*pack.Event) string) []abi.Evidence {
	var list []abi.Evidence
	for _, e := range events {
		list = append(list, abi.Evidence{Text: text(e), NativeID: e.EventID, SourceEventIDs: []string{e.EventID}})
	}
	return list
}

// tricks are ways to look like a memory without being one, each with what the report says about it.
var tricks = []struct {
	name   string
	answer func(events []*pack.Event) fabricatedAnswer
	named  string // part of a note or of a verdict's name
}{
	{"dots and a list of words", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: append(claimed(events, func(*pack.Event) string { return "." }), abi.Evidence{Text: sortedWords(events)})}
	}, "is not in what they show"},
	{"dots and a list of words as they were said", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: append(claimed(events, func(*pack.Event) string { return "." }),
			abi.Evidence{Text: strings.Join(distinctWords(events), " ")})}
	}, "is not in what they show"},
	{"the list of words on each item", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: claimed(events[max(0, len(events)-6):], func(*pack.Event) string {
			return strings.Join(distinctWords(events), " ")
		})}
	}, "is not in what they show"},
	{"duplicated items", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: slices.Repeat(claimed(events, func(*pack.Event) string { return "remembered" }), 3)}
	}, "is not in what they show"},
	{"all ids on one item", func(events []*pack.Event) fabricatedAnswer {
		one := abi.Evidence{Text: sortedWords(events)}
		for _, e := range events {
			one.SourceEventIDs = append(one.SourceEventIDs, e.EventID)
		}
		return fabricatedAnswer{items: []abi.Evidence{one}}
	}, "no item names 1 to 3 source events"},
	{"first words of every event", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: claimed(events, func(e *pack.Event) string {
			words := strings.Fields(*e.Messages[0].Content)
			return strings.Join(words[:min(len(words), len(words)/3+1)], " ")
		})}
	}, "is not in what they show"},
	{"words of each event sorted", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: claimed(events, func(e *pack.Event) string {
			return strings.Join(slices.Sorted(slices.Values(strings.Fields(*e.Messages[0].Content))), " ")
		})}
	}, "is not in what they show"},
	{"answers in ids", func(events []*pack.Event) fabricatedAnswer {
		list := claimed(events, func(*pack.Event) string { return "-" })
		for i := range list {
			list[i].NativeID = *events[i].Messages[0].Content
		}
		return fabricatedAnswer{items: list}
	}, "is not in what they show"},
	{"evidence that is not shown", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: asItems(events...), hidden: true}
	}, ""},
	{"more than the budget", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: append(asItems(events...), abi.Evidence{Text: strings.Repeat("more ", 4000)})}
	}, "failed and count as wrong"},
	{"nothing, for half of the people", func(events []*pack.Event) fabricatedAnswer {
		if strings.Contains(events[0].EventID, "-0") {
			return fabricatedAnswer{err: abi.NewError(abi.CodeInternal, "cannot")}
		}
		return fabricatedAnswer{items: asItems(events...)}
	}, "failed and count as wrong"},
	{"what was said in the test session", func(events []*pack.Event) fabricatedAnswer {
		return fabricatedAnswer{items: asItems(events...), breached: true}
	}, "changed behind the read-only wall"},
	{"slow readiness", func([]*pack.Event) fabricatedAnswer { return fabricatedAnswer{pending: true} }, "before memory was ready"},
	{"silence", func([]*pack.Event) fabricatedAnswer { return fabricatedAnswer{} }, ""},
}

// TestNoTrickWinsAVerdict: the reference shows the evidence for three of four probes, with earlier values. A trick may
// not win any comparison, whatever its metric, and an honest memory that shows all evidence wins the comparisons on
// evidence. The report names the trick.
func TestNoTrickWinsAVerdict(t *testing.T) {
	brief.Leave(t)
	_, p := simulatetest.Synth(t, map[string]string{"personas": "10", "sessions": "8", "turns": "2"})
	l := labOf(t, "providers: [honest, usual]\nbudgets: [2000]")
	trickOf := map[string]int{}
	for i := range tricks {
		l.Providers = append(l.Providers, l.Providers[0])
		label := strings.ReplaceAll(tricks[i].name, " ", "_")
		l.Providers[len(l.Providers)-1].Label, trickOf[label] = label, i
	}
	n := 0
	folder := fabricate(t, l, p, func(label string, probe *pack.Probe, _ int64, events []*pack.Event) fabricatedAnswer {
		evidence := evidenceOf(probe, events)
		switch label {
		case "honest":
			return fabricatedAnswer{items: asItems(evidence...)}
		case "usual":
			for _, s := range probe.Gold.Stale {
				evidence = append(evidence, eventOf(events, s.EventID))
			}
			if n++; n%4 == 0 {
				evidence = events[:1]
			}
			return fabricatedAnswer{items: asItems(evidence...)}
		}
		return tricks[trickOf[label]].answer(events)
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	s, err := load(folder, p, nil)
	require.NoError(t, err)
	for i := range metrics {
		metric := &metrics[i]
		if !metric.comparable() || metric.behave != nil || metric.chance != nil || metric.Name == "content_false" || metric.Name == "forbidden_shown" {
			continue
		}
		t.Run(metric.Name, func(t *testing.T) {
			for _, trick := range s.columns[2:] { // each in a separate comparison, which two providers can win
				compared := &familyBuilder{s.timeline, l.Seed, []*column{s.columns[0], s.columns[1], trick}, s.columns[1]}
				judged := &Metrics{Columns: m.Columns, Exploratory: []Family{compared.family(metric.Name, 0, 2000)}}
				judged.withhold()
				require.Len(t, judged.Exploratory[0].Comparisons, 2)
				assert.Equal(t, stats.Better, judged.Exploratory[0].Comparisons[0].Verdict, "it can be won")
				assert.NotEqual(t, stats.Better, judged.Exploratory[0].Comparisons[1].Verdict, trick.Label)
			}
		})
	}
	for label, i := range trickOf {
		f := m.column(label).Budgets[0].Overall["recall@tokens"]
		said := strings.Join(m.Notes, "\n") + strings.Join(m.column(label).Notes, "\n") + f.Reason
		if f.Failed > 0 {
			said += "failed and count as wrong"
		}
		assert.Contains(t, said, tricks[i].named, "the report names %s", label)
	}
}

func eventOf(events []*pack.Event, id string) *pack.Event {
	return events[slices.IndexFunc(events, func(e *pack.Event) bool { return e.EventID == id })]
}

func TestOrderOfWords(t *testing.T) {
	message := func(text string, own ...bool) *evidenceMessage {
		m := &evidenceMessage{words: allWords(text), own: own, runs: runsOf(allWords(text))}
		m.own = append(m.own, make([]bool, len(m.words)-len(own))...)
		return m
	}
	said := message("my sister keeps two hens behind the shed")
	for text, want := range map[string]float64{
		"My sister keeps two hens behind the shed.": 1, "shed the behind hens two keeps sister my": 0, "": 0,
		"sister my keeps two hens behind": 0.5, "keeps two hens": 0, "my sister keeps two x behind the shed": 0.5,
	} {
		assert.InDelta(t, want, said.inOrder(allWords(fold(text).text)), 1e-12, text)
	}
	assert.InDelta(t, 1, message("hello there").inOrder(allWords("oh hello there you")), 1e-12)
	assert.InDelta(t, 1, said.inOrder(allWords("my sister keeps two"), allWords("keeps two hens behind the shed")), 1e-12)
	assert.Zero(t, message("").inOrder(said.words))
	assert.Zero(t, message("these days I drink tea", false, false, false, false, true).inOrder(allWords("these days I drink water")),
		"its own word is not there")

	e := &event{said: []evidenceMessage{*said, *message("yes tea")}}
	for text, want := range map[string]float64{
		"ann: my sister keeps two hens behind the shed": 8.0 / 9, "yes tea": 1, "ann: yes tea": 2.0 / 3, "": 0,
		"a list of words my sister keeps two": 4.0 / 8,
	} {
		assert.InDelta(t, want, e.ownWords(allWords(fold(text).text)), 1e-12, text)
	}
}

func TestDerivedItems(t *testing.T) {
	cat := "our cat zorvex sleeps in the oven all day long"
	p := &probe{Probe: &pack.Probe{AfterSession: 3, Gold: pack.Gold{Answerable: true, Answers: [][]string{{"Zorvex"}},
		Evidence: [][]string{{"e1"}}}}, persona: person()}
	p.persona.events["e1"].said = evidenceWords(&pack.Event{Messages: []abi.Message{
		{Content: &cat}}}, nil)
	p.prepare(time.Time{})
	const text = "Cat: Zorvex. Something else."
	item := func(from, to string, sources ...string) abi.Evidence {
		start := int64(strings.Index(text, from))
		return abi.Evidence{SourceEventIDs: sources, Shown: &abi.Shown{Start: start, End: int64(strings.Index(text, to) + len(to))}}
	}
	for _, c := range []struct {
		name              string
		items             []abi.Evidence
		recall, derivedAt float64
	}{
		{"a fact", []abi.Evidence{item("Cat", "Zorvex.", "e1")}, 0, 1},
		{"a fact of another event", []abi.Evidence{item("Cat", "Zorvex.", "e2")}, 0, 0},
		{"another fact of the event", []abi.Evidence{item("Something", "else.", "e1")}, 0, 0},
		{"a span that two items share", []abi.Evidence{item("Cat", "Zorvex.", "e1"), item("Cat", "else.", "e2")}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := (&timeline{}).measure(p, &retrieval{evidence: c.items, context: text}).values
			assert.InDelta(t, c.recall, v[place["recall@tokens"]], 1e-12)
			assert.InDelta(t, c.derivedAt, v[place["derived@tokens"]], 1e-12)
		})
	}
}
