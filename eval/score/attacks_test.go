package score

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// distinctWords are the different words of a history, sorted. In the order in which they were first said they would hold
// most messages of synth word for word: its evidence is made of words that nobody said before.
func distinctWords(events []*pack.Event) string {
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
	slices.Sort(list)
	return strings.Join(list, " ")
}

// claimed are items that name every event of a history and show a text of their own choice.
func claimed(events []*pack.Event, text func(*pack.Event) string) []abi.Evidence {
	var list []abi.Evidence
	for _, e := range events {
		list = append(list, abi.Evidence{Text: text(e), NativeID: e.EventID, SourceEventIDs: []string{e.EventID}})
	}
	return list
}

// TestNoTrickWinsAVerdict: the reference shows the evidence of three probes in four honestly. A trick that names everything
// may not win the sealed comparison of evidence, and an honest memory that shows all of it does.
func TestNoTrickWinsAVerdict(t *testing.T) {
	_, p := synthetic(t, map[string]string{"personas": "12", "sessions": "4", "turns": "3"})
	tricks := map[string]func(events []*pack.Event) []abi.Evidence{
		"dots and a list of words": func(events []*pack.Event) []abi.Evidence {
			return append(claimed(events, func(*pack.Event) string { return "." }), abi.Evidence{Text: distinctWords(events)})
		},
		"ids on a list of words": func(events []*pack.Event) []abi.Evidence {
			return claimed(events, func(*pack.Event) string { return distinctWords(events) })
		},
		"duplicated items": func(events []*pack.Event) []abi.Evidence {
			return slices.Repeat(claimed(events, func(*pack.Event) string { return "remembered" }), 3)
		},
		"all ids on one item": func(events []*pack.Event) []abi.Evidence {
			one := abi.Evidence{Text: distinctWords(events)}
			for _, e := range events {
				one.SourceEventIDs = append(one.SourceEventIDs, e.EventID)
			}
			return []abi.Evidence{one}
		},
		"first words of every event": func(events []*pack.Event) []abi.Evidence {
			return claimed(events, func(e *pack.Event) string {
				words := strings.Fields(*e.Messages[0].Content)
				return strings.Join(words[:min(len(words), len(words)/3+1)], " ")
			})
		},
		"words sorted": func(events []*pack.Event) []abi.Evidence {
			return claimed(events, func(e *pack.Event) string {
				words := strings.Fields(*e.Messages[0].Content)
				slices.Sort(words)
				return strings.Join(words, " ")
			})
		},
		"answers in ids": func(events []*pack.Event) []abi.Evidence {
			list := claimed(events, func(*pack.Event) string { return "-" })
			for i := range list {
				list[i].NativeID = *events[i].Messages[0].Content
			}
			return list
		},
	}
	for _, metric := range []string{"recall@tokens", "content"} {
		n := 0
		l := labOf(t, "providers: [honest, usual]\nbudgets: [4000]\nprimary: {metric: "+metric+", budget: 4000, reference: usual}")
		var names []string
		for _, name := range abi.SortedKeys(tricks) {
			label := strings.ReplaceAll(name, " ", "_")
			names = append(names, label)
			l.Providers = append(l.Providers, l.Providers[0])
			l.Providers[len(l.Providers)-1].Label = label
		}
		m := scoredOf(t, l, p, func(label string, probe *pack.Probe, _ int64, events []*pack.Event) answered {
			switch label {
			case "honest":
				return answered{items: asItems(evidenceOf(probe, events)...)}
			case "usual":
				if n++; n%4 == 0 {
					return answered{items: asItems(events[:1]...)}
				}
				return answered{items: asItems(evidenceOf(probe, events)...)}
			}
			return answered{items: tricks[strings.ReplaceAll(label, "_", " ")](events)}
		})
		require.NotNil(t, m.Primary)
		for _, c := range m.Primary.Comparisons {
			if c.Label == "honest" {
				assert.Equal(t, stats.Better, c.Verdict, "%s: the comparison can be won", metric)
			} else {
				assert.NotEqual(t, stats.Better, c.Verdict, "%s: %s", metric, c.Label)
			}
		}
		if metric == "recall@tokens" {
			notes := strings.Join(m.Notes, "\n")
			for _, label := range names {
				if label != "all_ids_on_one_item" { // names more than three: no item of it counts, and fan-out shows it
					assert.Contains(t, notes, label+", 4000 tokens", "the report names it")
				}
			}
		}
	}
}

func TestOrderOfWords(t *testing.T) {
	said := allWords("my sister keeps two hens behind the shed")
	for text, want := range map[string]float64{
		"My sister keeps two hens behind the shed.": 1, "shed the behind hens two keeps sister my": 0, "": 0,
		"sister my keeps two hens behind": 0.5, "keeps two hens": 0, "my sister keeps two x behind the shed": 0.5,
	} {
		assert.InDelta(t, want, inOrder(said, allWords(fold(text).text)), 1e-12, text)
	}
	assert.InDelta(t, 1, inOrder(allWords("hello there"), allWords("oh hello there you")), 1e-12)
	assert.InDelta(t, 1, inOrder(said, allWords("my sister keeps two"), allWords("keeps two hens behind the shed")), 1e-12)
	assert.Zero(t, inOrder(nil, said))
}

func TestDerivedItems(t *testing.T) {
	p := &probe{Probe: &pack.Probe{AfterSession: 3, Gold: pack.Gold{Answerable: true, Answers: [][]string{{"Zorvex"}},
		Evidence: [][]string{{"e1"}}}}, persona: person()}
	p.persona.events["e1"].said = [][]uint64{allWords("our cat zorvex sleeps in the oven all day long")}
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
