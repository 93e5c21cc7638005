package score

import "fmt"

// The ranking metrics are a family: four by cutoff and one without, by events and by sessions.
var (
	_ = register(rankingMetrics("")...)
	_ = register(rankingMetrics("session.")...)
)

// rankingMetrics returns the metrics of the items' order, by events or by sessions.
func rankingMetrics(level string) []metric {
	what, session := "an item that names it", level != ""
	if session {
		what = "an item of its session, sessions in the order of their first item"
	}
	var list []metric
	add := func(name, says string, of func(*rankScores) float64, examples ...example) {
		m := metric{Entry: Entry{Name: level + name, Group: "retrieval", Unit: "share", Better: "more", Attribution: true,
			Headline: level+name == "recall@10" || level+name == "mrr", What: says},
			applies: (*probe).hasEvidence, none: noEvidence, agrees: "content", otherwise: DependsOnAttribution, examples: examples,
			measure: func(m *measurement) float64 { return of(m.ranks().events) }}
		if session {
			m.applies, m.examples = (*probe).hasSessions, nil
			m.measure = func(m *measurement) float64 { return of(m.ranks().sessions) }
			m.chance = func(p *probe) float64 { return of(&p.chance) }
		}
		list = append(list, m)
	}
	second := items{{"I live in Porto, near the old market.", "e1"}, {"We moved, and I live in Lagos now.", "e2"}}
	for i, k := range cutoffs {
		name := func(metric string) string { return fmt.Sprintf("%s@%d", metric, k) }
		within := fmt.Sprintf("among the first %d, by %s", k, what)
		example := func(value float64) example {
			if k == 1 {
				value = 0
			}
			return example{"one of two groups, by the second item", second, value}
		}
		add(name("hit"), "probes of which a gold group is served "+within,
			func(s *rankScores) float64 { return s.hit[i] }, example(1))
		add(name("recall"), "gold groups that are served "+within,
			func(s *rankScores) float64 { return s.recall[i] }, example(0.5))
		add(name("all"), "probes of which every gold group is served "+within,
			func(s *rankScores) float64 { return s.all[i] }, example(0))
		add(name("ndcg"), "discounted gain of gold groups when first served, of the ideal, "+within,
			func(s *rankScores) float64 { return s.ndcg[i] }, example(discount(2)/(1+discount(2))))
	}
	add("mrr", "1 over the rank at which the first gold group is served, by "+what,
		func(s *rankScores) float64 { return s.mrr }, example{"the second item", second, 0.5})
	return list
}
